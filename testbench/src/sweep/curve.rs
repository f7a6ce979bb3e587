//! Curves of a sweep, and assertions over them.
//!
//! A curve is one metric along one axis, with all other axes fixed. An assertion holds if it holds for each curve:
//!
//! | Keys | Claim |
//! |---|---|
//! | `shape = "rising"`, `"falling"` | each value is above, or below, the one before; `within` also accepts a step back |
//! | `shape = "flat"` | the greatest value is at most `within` above the least |
//! | `knee = X` | the curve bends most at X (Kneedle: the point farthest from the chord), and there by at least 10 % of its height |
//! | `slope = S` | the least-squares line has this slope; with `log = true`, the power law has this exponent |
//! | `csv = FILE`, `column = NAME` | each value is that of the row with the same settings |
//!
//! `within` is a relative tolerance, such as 0.05 or `"5 %"`.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::table::shown;
use super::{Axis, Point, Table};
use crate::report::saved::{CYCLES, is_column};
use crate::report::units::count;

/// One metric along one axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// The settings of all other axes.
    pub series: Point,
    /// The points with a value, in the order of x.
    pub points: Vec<CurvePoint>,
}

/// One point of a curve.
#[derive(Clone, PartialEq, Debug)]
pub struct CurvePoint {
    /// The setting of the axis.
    pub setting: String,
    /// The number of the setting. Its place on the axis, from 1, if some setting is no number.
    pub x: f64,
    /// The value of the metric.
    pub y: f64,
}

impl Axis {
    /// The settings as numbers. `None` if one is none.
    pub fn numbers(&self) -> Option<Vec<f64>> {
        let number = |value: &String| value.replace('_', "").parse::<f64>().ok().filter(|x| x.is_finite());
        self.values.iter().map(number).collect()
    }
}

impl Table {
    /// The curves of a column along an axis, in the order of the table. Empty if there is no such axis or column.
    pub fn curves(&self, along: &str, column: &str) -> Vec<Curve> {
        let axis = self.axes.iter().position(|axis| axis.name == along);
        let column = self.columns.iter().position(|name| name == column);
        let (Some(axis), Some(column)) = (axis, column) else {
            return Vec::new();
        };
        let values = &self.axes[axis].values;
        let xs = self.axes[axis].numbers();
        let xs = xs.unwrap_or_else(|| (1..=values.len()).map(|place| place as f64).collect());
        let mut curves: Vec<Curve> = Vec::new();
        for row in &self.rows {
            let mut series = row.point.clone();
            // A curve is what remains fixed when the axis moves.
            let (_, setting) = series.remove(axis);
            let n = curves
                .iter()
                .position(|curve| curve.series == series)
                .unwrap_or_else(|| {
                    let points = Vec::new();
                    curves.push(Curve { series, points });
                    curves.len() - 1
                });
            let y = row.values.get(column).and_then(|value| value.number());
            let x = values.iter().position(|value| *value == setting).map(|place| xs[place]);
            if let (Some(x), Some(y)) = (x, y) {
                curves[n].points.push(CurvePoint { setting, x, y });
            }
        }
        for curve in &mut curves {
            // The values of an axis may be in any order.
            curve.points.sort_by(|a, b| a.x.total_cmp(&b.x));
        }
        curves
    }
}

/// A shape of a curve.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// Each value is above the one before.
    Rising,
    /// Each value is below the one before.
    Falling,
    /// All values are alike.
    Flat,
}

/// An assertion over the curves of a sweep: `[[sweep.assert]]`.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurveAssert {
    /// The column: `cycles` or a metric.
    #[serde(default = "cycles")]
    pub metric: String,
    /// The axis. `None` selects the first axis with numbers, or else the first.
    pub along: Option<String>,
    /// The curves, by settings of other axes. Without it, all curves.
    #[serde(default, rename = "where")]
    pub only: BTreeMap<String, toml::Value>,
    /// The shape.
    pub shape: Option<Shape>,
    /// The setting where the curve bends most.
    pub knee: Option<f64>,
    /// The slope.
    pub slope: Option<f64>,
    /// A file with the wanted values, relative to the scenario.
    pub csv: Option<String>,
    /// The column of the file.
    pub column: Option<String>,
    /// Relative tolerance: a share such as 0.05 or `"5 %"`.
    #[serde(default, deserialize_with = "share")]
    pub within: Option<f64>,
    /// True to measure knee and slope with both axes logarithmic.
    #[serde(default)]
    pub log: bool,
}

/// Reads a share: a number, or per cent as text.
fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let value = toml::Value::deserialize(deserializer)?;
    let percent = |text: &str| text.trim().strip_suffix('%')?.trim().parse::<f64>().ok();
    let share = match &value {
        toml::Value::String(text) => percent(text).map(|percent| percent / 100.0),
        toml::Value::Integer(whole) => Some(*whole as f64),
        value => value.as_float(),
    };
    let wrong = || D::Error::custom(format!("`within` is a share such as 0.05 or \"5 %\", not {value}"));
    share.map(Some).ok_or_else(wrong)
}

fn cycles() -> String {
    CYCLES.to_owned()
}

impl CurveAssert {
    /// The axis that the curves run along.
    fn along<'a>(&'a self, axes: &'a [Axis]) -> &'a str {
        let chosen = self.along.as_deref();
        chosen.unwrap_or_else(|| default_axis(axes).map_or("", |axis| axis.name.as_str()))
    }

    /// The fault of the assertion itself. `None` if it can hold and can fail.
    pub fn fault(&self, axes: &[Axis]) -> Option<String> {
        let along = self.along(axes);
        let names = self.only.keys().map(String::as_str).chain([along]);
        if let Some(name) = names
            .into_iter()
            .find(|name| axes.iter().all(|axis| axis.name != *name))
        {
            return Some(format!("the sweep has no axis `{name}`"));
        }
        if !is_column(&self.metric) {
            return Some(format!("no metric is named `{}`", self.metric));
        }
        let claims = [
            self.shape.is_some(),
            self.knee.is_some(),
            self.slope.is_some(),
            self.csv.is_some(),
        ];
        if claims.into_iter().filter(|is_given| *is_given).count() != 1 || self.csv.is_some() != self.column.is_some() {
            return Some("give exactly one of shape, knee, slope, and csv with column".to_owned());
        }
        // Rising and falling are exact by themselves. The other claims compare floats.
        let needs_tolerance = !matches!(self.shape, Some(Shape::Rising | Shape::Falling));
        match self.within {
            None if needs_tolerance => Some("give `within`, a relative tolerance such as 0.1".to_owned()),
            Some(within) if !(0.0..1.0).contains(&within) => {
                Some(format!("`within` is at least 0 and below 1, not {within}"))
            }
            _ => None,
        }
    }

    /// The curves that do not hold, one sentence each. `csv` is the text of the file.
    pub fn failures(&self, table: &Table, csv: Option<&str>) -> Vec<String> {
        let along = self.along(&table.axes);
        let is_wanted = |curve: &Curve| {
            let has = |(axis, value): (&String, &toml::Value)| {
                // Settings are text, but TOML may give `block = 64`.
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                curve.series.contains(&(axis.clone(), value))
            };
            self.only.iter().all(has)
        };
        let curves: Vec<_> = table
            .curves(along, &self.metric)
            .into_iter()
            .filter(is_wanted)
            .collect();
        if curves.is_empty() {
            return vec![format!("{} along {along}: there is no such curve", self.metric)];
        }
        let checked = curves.iter().filter_map(|curve| {
            let series = shown(&curve.series);
            let place = if series.is_empty() {
                String::new()
            } else {
                format!(" at {series}")
            };
            let reason = self.failure(curve, along, csv)?;
            Some(format!("{} along {along}{place}: {reason}", self.metric))
        });
        checked.collect()
    }

    /// Why one curve does not hold.
    fn failure(&self, curve: &Curve, along: &str, csv: Option<&str>) -> Option<String> {
        // The chord alone has no knee.
        let least = if self.knee.is_some() { 3 } else { 2 };
        let n = curve.points.len();
        // A single row of a file can be compared.
        if n < least && (self.csv.is_none() || n == 0) {
            let points = count(n as u64, "point");
            return Some(format!("{points} with a value, and {least} are needed"));
        }
        let within = self.within.unwrap_or(0.0);
        if let Some(shape) = self.shape {
            return shape.failure(&curve.points, within);
        }
        if let Some(wanted) = self.knee {
            return match knee(&curve.points, self.log) {
                None => Some("has no knee: no point is 10 % of the curve's height off its chord".to_owned()),
                Some(found) => {
                    (!is_near(found, wanted, within)).then(|| format!("the knee is at {found}, not at {wanted}"))
                }
            };
        }
        if let Some(wanted) = self.slope {
            let found = slope(&curve.points, self.log);
            return (!is_near(found, wanted, within)).then(|| format!("the slope is {found:.4}, not {wanted}"));
        }
        let column = self.column.as_deref().unwrap_or_default();
        against_file(curve, along, column, within, csv.unwrap_or_default())
    }
}

/// The first axis with numbers, or else the first one.
pub(super) fn default_axis(axes: &[Axis]) -> Option<&Axis> {
    let is_curve = |axis: &&Axis| axis.values.len() > 1 && axis.numbers().is_some();
    axes.iter().find(is_curve).or_else(|| axes.first())
}

fn is_near(found: f64, wanted: f64, within: f64) -> bool {
    (found - wanted).abs() <= within * wanted.abs()
}

impl Shape {
    fn failure(self, points: &[CurvePoint], within: f64) -> Option<String> {
        if self == Shape::Flat {
            let ys = || points.iter().map(|point| point.y);
            let (least, most) = (
                ys().fold(f64::INFINITY, f64::min),
                ys().fold(f64::NEG_INFINITY, f64::max),
            );
            let is_flat = most - least <= within * least.abs();
            return (!is_flat).then(|| format!("is not flat: {least} to {most}"));
        }
        let (word, sign) = match self {
            Shape::Falling => ("falling", -1.0),
            _ => ("rising", 1.0),
        };
        let holds = |pair: &&[CurvePoint]| {
            let gain = sign * (pair[1].y - pair[0].y);
            // Without a tolerance, equal neighbours fail too.
            gain > 0.0 || within > 0.0 && -gain <= within * pair[0].y.abs()
        };
        let pair = points.windows(2).find(|pair| !holds(pair))?;
        let [from, to] = [&pair[0], &pair[1]];
        Some(format!(
            "is not {word}: {} at {}, then {} at {}",
            from.y, from.setting, to.y, to.setting
        ))
    }
}

/// The coordinates of a curve, logarithmic if wanted.
fn coordinates(points: &[CurvePoint], log: bool) -> Vec<(f64, f64)> {
    let scale = |value: f64| if log { value.ln() } else { value };
    points.iter().map(|point| (scale(point.x), scale(point.y))).collect()
}

/// The least distance of a knee from the chord, in heights of the curve. A straight line bends nowhere. Assumed.
const MIN_BEND: f64 = 0.1;

/// The x of the point farthest from the chord, with both axes scaled to 0 to 1. `None` for a line, and for a curve that ends at its first
/// height.
///
/// Satopaa, Albrecht, Irwin, Raghavan: Finding a "Kneedle" in a haystack (2011).
fn knee(points: &[CurvePoint], log: bool) -> Option<f64> {
    let scaled = coordinates(points, log);
    let (&(x0, y0), &(x1, y1)) = (scaled.first()?, scaled.last()?);
    // Scaled, the chord is y = x, and the distance to it is |y - x| up to a constant factor.
    let distance = |&(x, y): &(f64, f64)| ((y - y0) / (y1 - y0) - (x - x0) / (x1 - x0)).abs();
    let distances = scaled.iter().map(distance);
    // A curve that ends at its first height divides by 0.
    let bends = distances.zip(points).filter(|(distance, _)| distance.is_finite());
    let (distance, point) = bends.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (distance >= MIN_BEND).then_some(point.x)
}

/// The slope of the least-squares line.
fn slope(points: &[CurvePoint], log: bool) -> f64 {
    let all = coordinates(points, log);
    let n = all.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| all.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let covariance: f64 = all.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    covariance / all.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>()
}

/// Compares each point with the row of the file that has its settings.
fn against_file(curve: &Curve, along: &str, column: &str, within: f64, csv: &str) -> Option<String> {
    let mut reader = ::csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .from_reader(csv.as_bytes());
    let head = reader.headers().cloned().unwrap_or_default();
    let place = |name: &str| head.iter().position(|known| known == name);
    let Some(value) = place(column) else {
        return Some(format!("the file has no column `{column}`"));
    };
    let rows: Vec<_> = reader.records().filter_map(Result::ok).collect();
    for point in &curve.points {
        let own = (along.to_owned(), point.setting.clone());
        // A column of the file that is no axis does not select rows.
        let settings = curve
            .series
            .iter()
            .chain([&own])
            .filter_map(|(name, value)| Some((place(name)?, value)));
        let settings: Vec<_> = settings.collect();
        let is_it = |row: &&::csv::StringRecord| {
            settings
                .iter()
                .all(|(at, value)| row.get(*at).is_some_and(|cell| is_same(cell, value)))
        };
        let wanted = rows
            .iter()
            .find(is_it)
            .and_then(|row| row.get(value)?.trim().parse::<f64>().ok())
            .filter(|wanted| wanted.is_finite());
        match wanted {
            None => {
                return Some(format!(
                    "the file has no finite number in `{column}` for {}",
                    point.setting
                ));
            }
            Some(wanted) if !is_near(point.y, wanted, within) => {
                return Some(format!("{} at {}, but the file has {wanted}", point.y, point.setting));
            }
            Some(_) => {}
        }
    }
    None
}

/// True for the same text, or the same number.
fn is_same(cell: &str, value: &str) -> bool {
    let cell = cell.trim();
    let numbers = (cell.parse::<f64>(), value.parse::<f64>());
    cell == value || matches!(numbers, (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::super::table::tests::table;
    use super::*;

    fn assertion(text: &str) -> CurveAssert {
        toml::from_str(text).unwrap()
    }

    fn failures(axes: &[&str], ys: &[f64], text: &str) -> Vec<String> {
        let table = table(axes, ys);
        let assertion = assertion(text);
        assert_eq!(assertion.fault(&table.axes), None, "{text}");
        assertion.failures(&table, None)
    }

    #[test]
    fn curve_holds_its_shape_or_names_the_first_step_that_does_not() {
        let rising = [10.0, 11.0, 10.9];
        let says = failures(&["n=1,2,4"], &rising, "shape = \"rising\"");
        assert_eq!(says, ["cycles along n: is not rising: 11 at 2, then 10.9 at 4"]);
        assert_eq!(
            failures(&["n=1,2,4"], &rising, "shape = \"rising\"\nwithin = 0.01"),
            [""; 0]
        );
        assert_eq!(failures(&["n=1,2,4"], &[3.0, 2.0, 1.0], "shape = \"falling\""), [""; 0]);
        // 10.9 is 9 % above 10.
        assert_eq!(
            failures(&["n=1,2,4"], &rising, "shape = \"flat\"\nwithin = 0.1"),
            [""; 0]
        );
        assert_eq!(
            failures(&["n=1,2,4"], &rising, "shape = \"flat\"\nwithin = 0.05").len(),
            1
        );
    }

    #[test]
    fn values_are_taken_in_the_order_of_the_numbers() {
        assert_eq!(failures(&["n=4,1,2"], &[3.0, 1.0, 2.0], "shape = \"rising\""), [""; 0]);
    }

    #[test]
    fn knee_of_a_saturating_curve_is_where_it_stops_rising() {
        let ys: Vec<f64> = (1..=16).map(|x| f64::from(x.min(8))).collect();
        assert_eq!(failures(&["n=1..16+1"], &ys, "knee = 8\nwithin = 0.01"), [""; 0]);
        let says = failures(&["n=1..16+1"], &ys, "knee = 4\nwithin = 0.5");
        assert_eq!(says, ["cycles along n: the knee is at 8, not at 4"]);
        // Neither a constant curve nor a straight line has a knee, and a line with noise of 5 % of its height has none either.
        let none = "cycles along n: has no knee: no point is 10 % of the curve's height off its chord";
        for (ys, knee) in [
            ([5.0; 5], 2),
            ([1.0, 2.0, 3.0, 4.0, 5.0], 5),
            ([1.0, 2.2, 3.0, 3.8, 5.0], 2),
        ] {
            let says = failures(&["n=1..5+1"], &ys, &format!("knee = {knee}\nwithin = 0.9"));
            assert_eq!(says, [none], "{ys:?}");
        }
        assert_eq!(
            failures(&["n=1..5+1"], &[1.0, 2.6, 3.4, 4.2, 5.0], "knee = 2\nwithin = 0"),
            [""; 0]
        );
    }

    #[test]
    fn slope_is_that_of_the_line_or_the_exponent_of_the_power_law() {
        assert_eq!(
            failures(&["n=0,1,2"], &[1.0, 3.0, 5.0], "slope = 2\nwithin = 0"),
            [""; 0]
        );
        let squares = "slope = 2\nlog = true\nwithin = 1e-9";
        assert_eq!(failures(&["n=1,2,4"], &[3.0, 12.0, 48.0], squares), [""; 0]);
        let says = failures(&["n=0,1,2"], &[0.0, 3.0, 6.0], "slope = 2\nwithin = 0.1");
        assert_eq!(says, ["cycles along n: the slope is 3.0000, not 2"]);
    }

    #[test]
    fn each_curve_is_checked_unless_where_selects_some() {
        let (axes, ys) = (&["gpu=a,b", "n=1,2"][..], &[1.0, 2.0, 2.0, 1.0]);
        let says = failures(axes, ys, "shape = \"rising\"");
        assert_eq!(says, ["cycles along n at gpu=b: is not rising: 2 at 1, then 1 at 2"]);
        assert_eq!(
            failures(axes, ys, "shape = \"rising\"\nwhere = { gpu = \"a\" }"),
            [""; 0]
        );
        assert_eq!(
            failures(axes, ys, "shape = \"rising\"\nwhere = { gpu = \"c\" }").len(),
            1
        );
        assert_eq!(
            failures(axes, ys, "along = \"gpu\"\nwhere = { n = 1 }\nshape = \"rising\""),
            [""; 0]
        );
    }

    #[test]
    fn values_are_compared_with_the_row_of_the_same_settings() {
        let file = "# measured\ngpu,n,time\nb,1,50\na,1,10\na,2.0,20\n";
        let table = table(&["gpu=a", "n=1,2"], &[10.5, 21.0]);
        let against = |text: &str| assertion(text).failures(&table, Some(file));
        assert_eq!(against("csv = \"f\"\ncolumn = \"time\"\nwithin = 0.1"), [""; 0]);
        let says = against("csv = \"f\"\ncolumn = \"time\"\nwithin = 0.01");
        assert_eq!(says, ["cycles along n at gpu=a: 10.5 at 1, but the file has 10"]);
        assert!(against("csv = \"f\"\ncolumn = \"x\"\nwithin = 0.1")[0].ends_with("no column `x`"));
        let table = super::super::table::tests::table(&["n=1,3"], &[50.0, 1.0]);
        let says = assertion("csv = \"f\"\ncolumn = \"time\"\nwithin = 0.1").failures(&table, Some(file));
        assert!(says[0].ends_with("no finite number in `time` for 3"), "{says:?}");
        for cell in ["inf", "NaN"] {
            let file = file.replace("b,1,50", &format!("b,1,{cell}"));
            let against = assertion("csv = \"f\"\ncolumn = \"time\"\nwithin = 0.1").failures(&table, Some(&file));
            assert!(against[0].ends_with("no finite number in `time` for 1"), "{against:?}");
        }
    }

    #[test]
    fn assertion_that_says_nothing_or_too_much_is_refused() {
        let axes = ["n=1,2".parse().unwrap()];
        let fault = |text: &str| assertion(text).fault(&axes).unwrap_or_default();
        assert!(fault("along = \"m\"\nshape = \"rising\"").contains("no axis `m`"));
        assert!(fault("metric = \"m\"\nshape = \"rising\"").contains("no metric is named `m`"));
        for text in ["", "shape = \"rising\"\nknee = 1", "csv = \"f\"\nwithin = 0.1"] {
            assert!(fault(text).contains("exactly one of"), "{text}");
        }
        assert!(fault("knee = 4").contains("give `within`"));
        assert!(fault("knee = 4\nwithin = 1.5").contains("not 1.5"));
        assert_eq!(assertion("knee = 4\nwithin = \"5 %\"").within, Some(0.05));
        let wrong = toml::from_str::<CurveAssert>("knee = 4\nwithin = \"5\"").unwrap_err();
        assert!(
            wrong.to_string().contains("a share such as 0.05 or \"5 %\", not \"5\""),
            "{wrong}"
        );
    }
}
