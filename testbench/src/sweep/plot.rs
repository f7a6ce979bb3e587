//! The plot of a sweep: one curve for each series, as SVG.

use super::curve::{Curve, default_axis};
use super::table::shown;
use super::{Axis as SweepAxis, Table};
use crate::report::svg::{Axis, Plot, Scale, colour};

/// Most curves of a plot: more cannot be told apart.
const MOST_CURVES: usize = 24;

/// Height of a plot, and width of its plotting area, in pixels.
const SIZE: (u32, u32) = (600, 380);

/// Space above the highest value, as a factor.
const HEADROOM: f64 = 1.05;

/// What a plot shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlotOptions {
    /// The axis of the sweep along x. `None` selects the first one with numbers, or else the first.
    pub x: Option<String>,
    /// The column along y.
    pub y: String,
    /// True for a logarithmic x axis.
    pub log_x: bool,
    /// True for a logarithmic y axis.
    pub log_y: bool,
}

/// Draws a plot. Returns its SVG text.
///
/// # Errors
/// If there is nothing to draw, too many curves, or a value at or below 0 on a logarithmic axis. The text says which.
pub fn plot(title: &str, table: &Table, options: &PlotOptions) -> Result<String, String> {
    let axis = match &options.x {
        Some(name) => table.axes.iter().find(|axis| axis.name == *name),
        None => default_axis(&table.axes),
    };
    let axis = axis.ok_or_else(|| format!("the sweep has no axis `{}`", options.x.as_deref().unwrap_or_default()))?;
    let mut curves = table.curves(&axis.name, &options.y);
    curves.retain(|curve| !curve.points.is_empty());
    if curves.is_empty() {
        return Err(format!("no point has a value of {}", options.y));
    }
    if curves.len() > MOST_CURVES {
        let text = "fix an axis, or choose another one with --x";
        return Err(format!(
            "{} curves, but a plot has at most {MOST_CURVES}; {text}",
            curves.len()
        ));
    }
    let (x, y) = (x_axis(axis, &curves, options)?, y_axis(&curves, options)?);
    // A setting that all curves share tells none apart.
    let is_shared = |name: &str| {
        table
            .axes
            .iter()
            .any(|axis| axis.name == name && axis.values.len() == 1)
    };
    let name_of = |curve: &Curve| {
        let mut series = curve.series.clone();
        series.retain(|(name, _)| !is_shared(name));
        shown(&series)
    };
    let names: Vec<String> = curves.iter().map(name_of).collect();
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    // Room for the legend: 7 pixels a character, and the coloured dash with its gaps.
    let side = if longest > 0 { 7 * longest as u32 + 24 } else { 0 };
    let mut plot = Plot::new(title, (SIZE.0 + side, SIZE.1), x, y);
    if longest > 0 {
        plot = plot.with_side_legend(longest);
    }
    for (n, (curve, name)) in curves.iter().zip(&names).enumerate() {
        let points: Vec<_> = curve.points.iter().map(|point| (point.x, point.y)).collect();
        let dot = |point: &super::curve::CurvePoint| {
            let tooltip = format!("{name} {}={}: {} {}", axis.name, point.setting, options.y, point.y);
            ((point.x, point.y), tooltip.trim_start().to_owned())
        };
        let dots: Vec<_> = curve.points.iter().map(dot).collect();
        match name.is_empty() {
            true => plot.unnamed_line(&options.y, colour(n), &points),
            false => plot.line(name, colour(n), &points),
        }
        plot.dots(colour(n), &dots);
    }
    Ok(plot.finish().into_string())
}

/// The x axis: numbers, or one tick for each setting.
fn x_axis(axis: &SweepAxis, curves: &[Curve], options: &PlotOptions) -> Result<Axis, String> {
    let Some(_) = axis.numbers() else {
        if options.log_x {
            return Err(format!(
                "the settings of `{}` are not all numbers, so --log-x cannot be",
                axis.name
            ));
        }
        let ticks = axis
            .values
            .iter()
            .zip(1..)
            .map(|(value, place)| (f64::from(place), value.clone()));
        // Half a place of room at both ends.
        let end = axis.values.len() as f64 + 0.5;
        return Ok(Axis::new(&axis.name, Scale::Linear, 0.5, end).with_ticks(ticks.collect()));
    };
    let (least, most) = range(curves.iter().flat_map(|curve| &curve.points).map(|point| point.x));
    let scale = scale(options.log_x, least, &axis.name)?;
    let drawn = Axis::new(&axis.name, scale, least, most);
    // The settings are the ticks if they lie far enough apart: powers of two are no round numbers of an axis.
    let numbers = axis.numbers().unwrap_or_default();
    let is_spread = |pair: &[f64]| drawn.place(pair[1]) - drawn.place(pair[0]) > 0.06;
    let mut sorted = numbers.clone();
    sorted.sort_by(f64::total_cmp);
    if !sorted.windows(2).all(is_spread) {
        return Ok(drawn);
    }
    let ticks = numbers.into_iter().zip(axis.values.iter().cloned());
    let ticks = ticks.filter(|(x, _)| (least..=most).contains(x));
    Ok(drawn.with_ticks(ticks.collect()))
}

fn y_axis(curves: &[Curve], options: &PlotOptions) -> Result<Axis, String> {
    let (least, most) = range(curves.iter().flat_map(|curve| &curve.points).map(|point| point.y));
    let scale = scale(options.log_y, least, &options.y)?;
    Ok(match scale {
        // A linear axis includes 0, so that heights compare.
        Scale::Linear => Axis::new(&options.y, scale, least.min(0.0), most * HEADROOM),
        Scale::Log => Axis::new(&options.y, scale, least / HEADROOM, most * HEADROOM),
    })
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
        (least.min(value), most.max(value))
    })
}

fn scale(log: bool, least: f64, name: &str) -> Result<Scale, String> {
    match log {
        true if least <= 0.0 => Err(format!(
            "{name} has the value {least}, which a logarithmic axis cannot show"
        )),
        true => Ok(Scale::Log),
        false => Ok(Scale::Linear),
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::tests::table;
    use super::*;

    fn options(x: Option<&str>) -> PlotOptions {
        PlotOptions {
            x: x.map(str::to_owned),
            y: "cycles".to_owned(),
            log_x: false,
            log_y: false,
        }
    }

    #[test]
    fn each_series_has_a_curve_a_name_and_its_dots() {
        let table = table(&["gpu=a,b", "n=1,2,4"], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let text = plot("t", &table, &options(None)).unwrap();
        assert_eq!(text.matches("stroke-width=\"2\"").count(), 2);
        assert_eq!(text.matches("<circle").count(), 6);
        assert!(
            text.contains(">gpu=a</text>") && text.contains("gpu=b n=4: cycles 6"),
            "{text}"
        );
    }

    #[test]
    fn setting_that_all_curves_share_is_in_no_legend() {
        let table = table(&["gpu=a,b", "rounds=64", "n=1,2"], &[1.0, 2.0, 3.0, 4.0]);
        let text = plot("t", &table, &options(Some("n"))).unwrap();
        assert!(text.contains(">gpu=a</text>") && !text.contains("rounds=64"), "{text}");
        let one = super::super::table::tests::table(&["rounds=64", "n=1,2"], &[1.0, 2.0]);
        let text = plot("t", &one, &options(Some("n"))).unwrap();
        assert!(!text.contains("<rect x="), "a legend of one curve: {text}");
    }

    #[test]
    fn words_along_x_have_a_tick_each() {
        let table = table(&["gpu=a,b", "n=1,2"], &[1.0, 2.0, 3.0, 4.0]);
        let text = plot("t", &table, &options(Some("gpu"))).unwrap();
        assert!(text.contains(">a</text>") && text.contains(">b</text>"), "{text}");
        assert!(text.contains(">n=2</text>"), "{text}");
    }

    #[test]
    fn what_cannot_be_drawn_is_said() {
        let zero = table(&["n=1,2"], &[0.0, 2.0]);
        let log_y = PlotOptions {
            log_y: true,
            ..options(None)
        };
        assert!(plot("t", &zero, &log_y).unwrap_err().contains("cycles has the value 0"));
        assert!(
            plot("t", &zero, &options(Some("m")))
                .unwrap_err()
                .contains("no axis `m`")
        );
        let words = table(&["gpu=a,b"], &[1.0, 2.0]);
        let log_x = PlotOptions {
            log_x: true,
            ..options(None)
        };
        assert!(plot("t", &words, &log_x).unwrap_err().contains("not all numbers"));
        let many = table(&["a=1..25+1", "n=1,2"], &[1.0; 50]);
        assert!(plot("t", &many, &options(Some("n"))).unwrap_err().contains("25 curves"));
    }
}
