//! The axes of a sweep: a name and its values, written as `block=32,64,128` or `n=1024..65536*2`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use thiserror::Error;

/// Most points of a sweep, and most values of an axis.
const MOST_POINTS: usize = 1_000_000;

/// The settings of one point: name and value of each axis, in the order of the axes.
pub type Point = Vec<(String, String)>;

/// One axis of a sweep.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct Axis {
    /// The name of the setting: `block`, `gpu`, a preset key, an argument.
    pub name: String,
    /// Its values as text, in order.
    pub values: Vec<String>,
}

/// The fault of an axis.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum AxisError {
    /// The text has no `=`, or nothing before it.
    #[error("`{text}` is not an axis; write NAME=VALUE,VALUE, such as block=32,64,128")]
    NoName {
        /// The text.
        text: String,
    },
    /// A value is empty.
    #[error("axis `{axis}` has an empty value; write NAME=VALUE,VALUE, such as block=32,64,128")]
    EmptyValue {
        /// Name of the axis.
        axis: String,
    },
    /// A range is not two integers with a step that leads from the first to the second.
    #[error(
        "axis `{axis}`: `{range}` is not a range; write FIRST..LAST*FACTOR or FIRST..LAST+STEP with integers, such as \
         32..1024*2 or 0..100+10"
    )]
    BadRange {
        /// Name of the axis.
        axis: String,
        /// The text of the range.
        range: String,
    },
    /// A value is listed twice.
    #[error("axis `{axis}` has the value `{value}` twice; leave one out")]
    Repeated {
        /// Name of the axis.
        axis: String,
        /// The value.
        value: String,
    },
    /// Two axes have one name.
    #[error("two axes are named `{axis}`; write all values in one")]
    RepeatedAxis {
        /// Name of the axes.
        axis: String,
    },
    /// No axis is given.
    #[error("a sweep needs an axis; give --over NAME=VALUE,VALUE, or `over` in the scenario's [sweep]")]
    NoAxis,
    /// The sweep or an axis has more than a million points.
    #[error("more than {MOST_POINTS} points; leave values out")]
    TooMany,
}

impl FromStr for Axis {
    type Err = AxisError;

    /// Reads an axis.
    ///
    /// ```
    /// use warpwave::sweep::Axis;
    /// let values = |text: &str| text.parse::<Axis>().unwrap().values;
    /// assert_eq!(values("gpu=tiny,h100-sxm5"), ["tiny", "h100-sxm5"]);
    /// assert_eq!(values("block=32..256*2"), ["32", "64", "128", "256"]);
    /// assert_eq!(values("n=1,10..31+10"), ["1", "10", "20", "30"]);
    /// ```
    fn from_str(text: &str) -> Result<Axis, AxisError> {
        let no_name = || AxisError::NoName { text: text.to_owned() };
        let (name, list) = text.split_once('=').ok_or_else(no_name)?;
        let name = name.trim();
        if name.is_empty() {
            return Err(no_name());
        }
        let mut values = Vec::new();
        for value in list.split(',').map(str::trim) {
            match is_range(value) {
                true => expand(name, value, &mut values)?,
                false if value.is_empty() => return Err(AxisError::EmptyValue { axis: name.to_owned() }),
                false => values.push(value.to_owned()),
            }
        }
        let mut seen = BTreeSet::new();
        match values.iter().find(|value| !seen.insert(*value)) {
            Some(value) => Err(AxisError::Repeated {
                axis: name.to_owned(),
                value: value.clone(),
            }),
            None => Ok(Axis {
                name: name.to_owned(),
                values,
            }),
        }
    }
}

impl TryFrom<String> for Axis {
    type Error = AxisError;

    fn try_from(text: String) -> Result<Axis, AxisError> {
        text.parse()
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.values.join(","))
    }
}

/// True for a range. A path such as `../gpu.toml` is none: a range begins with a number.
fn is_range(value: &str) -> bool {
    let digits = value.strip_prefix('-').unwrap_or(value);
    digits.starts_with(|c: char| c.is_ascii_digit()) && value.contains("..")
}

/// Appends the values of a range. The last value is included if a step leads to it.
fn expand(axis: &str, range: &str, values: &mut Vec<String>) -> Result<(), AxisError> {
    let bad = || AxisError::BadRange {
        axis: axis.to_owned(),
        range: range.to_owned(),
    };
    let integer = |text: &str| text.trim().replace('_', "").parse::<i64>().map_err(|_| bad());
    let (first, rest) = range.split_once("..").ok_or_else(bad)?;
    let at = rest.find(['*', '+']).ok_or_else(bad)?;
    let (mut value, last) = (integer(first)?, integer(&rest[..at])?);
    let step = integer(&rest[at + 1..])?;
    let is_factor = rest[at..].starts_with('*');
    // Each step must grow, or the loop below would not end.
    let grows = if is_factor { step > 1 && value > 0 } else { step > 0 };
    if !grows || value > last {
        return Err(bad());
    }
    while value <= last {
        if values.len() == MOST_POINTS {
            return Err(AxisError::TooMany);
        }
        values.push(value.to_string());
        let next = match is_factor {
            true => value.checked_mul(step),
            false => value.checked_add(step),
        };
        // Beyond i64, the range has ended.
        let Some(next) = next else { break };
        value = next;
    }
    Ok(())
}

/// Every combination of the values of all axes. The last axis varies fastest.
///
/// # Errors
/// Without an axis, with two axes of one name, or with more than a million points.
pub fn points(axes: &[Axis]) -> Result<Vec<Point>, AxisError> {
    let mut names = BTreeSet::new();
    if let Some(axis) = axes.iter().find(|axis| !names.insert(&axis.name)) {
        return Err(AxisError::RepeatedAxis {
            axis: axis.name.clone(),
        });
    }
    if axes.is_empty() {
        return Err(AxisError::NoAxis);
    }
    // Counted before any point is made, so that a wrong axis costs no memory.
    let n = axes.iter().try_fold(1usize, |n, axis| n.checked_mul(axis.values.len()));
    if n.is_none_or(|n| n > MOST_POINTS) {
        return Err(AxisError::TooMany);
    }
    let mut points = vec![Point::new()];
    for axis in axes {
        let with = |point: &Point, value: &String| {
            let mut point = point.clone();
            point.push((axis.name.clone(), value.clone()));
            point
        };
        let all = points
            .iter()
            .flat_map(|point| axis.values.iter().map(move |value| with(point, value)));
        points = all.collect();
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(text: &str) -> Result<Axis, AxisError> {
        text.parse()
    }

    fn says(text: &str) -> String {
        axis(text).unwrap_err().to_string()
    }

    #[test]
    fn last_axis_varies_fastest() {
        let axes = [axis("a=1,2").unwrap(), axis("b=x,y").unwrap()];
        let points = points(&axes).unwrap();
        let values: Vec<_> = points
            .iter()
            .map(|point| format!("{}{}", point[0].1, point[1].1))
            .collect();
        assert_eq!(values, ["1x", "1y", "2x", "2y"]);
        assert_eq!(points[0][1].0, "b");
    }

    #[test]
    fn path_in_a_parent_folder_is_no_range() {
        assert_eq!(axis("gpu=../a.toml").unwrap().values, ["../a.toml"]);
        assert_eq!(axis("i=-2..2+2").unwrap().values, ["-2", "0", "2"]);
    }

    #[test]
    fn wrong_axis_is_refused_with_the_way_to_write_it() {
        assert!(says("block").contains("`block` is not an axis; write NAME=VALUE"));
        assert!(says("=1").contains("is not an axis"));
        assert!(says("block=1,,2").contains("axis `block` has an empty value"));
        for range in ["1..8", "8..1+1", "0..8*2", "1..8*1", "1..8+0", "1..x+1", "1.5..2+1"] {
            assert!(
                says(&format!("n={range}")).contains(&format!("`{range}` is not a range")),
                "{range}"
            );
        }
        assert!(says("n=1,1..3+1").contains("the value `1` twice"));
        assert_eq!(says("n=0..9000000+1"), AxisError::TooMany.to_string());
    }

    #[test]
    fn sweep_without_an_axis_or_with_one_twice_or_with_too_many_points_is_refused() {
        let wide = |name: &str| axis(&format!("{name}=1..2000+1")).unwrap();
        assert_eq!(points(&[]), Err(AxisError::NoAxis));
        assert_eq!(points(&[wide("a"), wide("b")]), Err(AxisError::TooMany));
        let twice = points(&[axis("a=1").unwrap(), axis("a=2").unwrap()]);
        assert_eq!(twice, Err(AxisError::RepeatedAxis { axis: "a".to_owned() }));
    }

    #[test]
    fn range_up_to_the_greatest_integer_ends() {
        let n = axis(&format!("n=1..{}*2", i64::MAX)).unwrap().values.len();
        assert_eq!(n, 63);
    }
}
