//! The plot of a sweep: one curve for each series, as SVG.

use super::curve::{Curve, default_axis};
use super::label::{axis_label, column_label};
use super::table::shown;
use super::{Axis as SweepAxis, Table};
use crate::report::svg::{Axis, Plot, STYLES, Scale, colour, stroke};

/// Most curves of a plot: more cannot be told apart.
const MOST_CURVES: usize = STYLES;

/// Height of a plot, and width of its plotting area, in pixels.
const SIZE: (u32, u32) = (600, 380);

/// Width of a character of a tick's label, and the least gap of two labels, as shares of the x axis.
const TICK: (f64, f64) = (0.0135, 0.015);

/// Least distance of two ticks of the y axis, as a share of it.
const Y_TICK: f64 = 0.05;

/// Space above the highest value, as a factor.
const HEADROOM: f64 = 1.05;

/// What a plot shows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PlotOptions {
    /// The axis of the sweep along x. `None` selects the first one with numbers, or else the first.
    pub x: Option<String>,
    /// The label of x. `None` gives the name of the axis, with its unit.
    pub x_label: Option<String>,
    /// The column along y.
    pub y: String,
    /// The launches with a curve each, by index. Empty for one curve of the column.
    pub by_launch: Vec<usize>,
    /// The names of all launches.
    pub launches: Vec<String>,
    /// True for a logarithmic x axis. The axis of three or more powers of two is one in any case.
    pub log_x: bool,
    /// True for a logarithmic y axis.
    pub log_y: bool,
}

impl PlotOptions {
    /// The columns to draw, each with the name of its launch.
    pub(super) fn columns(&self) -> Vec<(String, Option<&str>)> {
        if self.by_launch.is_empty() {
            return vec![(self.y.clone(), None)];
        }
        let column = |&n: &usize| {
            let name = self.launches.get(n).map(String::as_str);
            (format!("launch[{n}].{}", self.y), name)
        };
        self.by_launch.iter().map(column).collect()
    }
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
    let curves = named_curves(table, axis, options);
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
    let longest = curves.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let side = if longest > 0 {
        Plot::side(longest, curves.len()) as u32
    } else {
        0
    };
    let height = SIZE.1.max(Plot::least_height(curves.len()) as u32);
    let mut plot = Plot::new(title, (SIZE.0 + side, height), x, y);
    if longest > 0 {
        plot = plot.with_side_legend(longest, curves.len());
    }
    for (n, (name, curve)) in curves.iter().enumerate() {
        let points: Vec<_> = curve.points.iter().map(|point| (point.x, point.y)).collect();
        let dot = |point: &super::curve::CurvePoint| {
            let tooltip = format!("{name} {}={}: {} {}", axis.name, point.setting, options.y, point.y);
            ((point.x, point.y), tooltip.trim_start().to_owned())
        };
        let dots: Vec<_> = curve.points.iter().map(dot).collect();
        match name.is_empty() {
            true => plot.unnamed_line(&options.y, stroke(n), &points),
            false => plot.line(name, stroke(n), &points),
        }
        plot.dots(colour(n), &dots);
    }
    Ok(plot.finish().into_string())
}

/// The curves with a value, each with its name in the legend: the launch, and the settings that tell it from others.
fn named_curves(table: &Table, axis: &SweepAxis, options: &PlotOptions) -> Vec<(String, Curve)> {
    // A setting that all curves share tells none apart.
    let is_shared = |name: &str| {
        table
            .axes
            .iter()
            .any(|axis| axis.name == name && axis.values.len() == 1)
    };
    let mut named = Vec::new();
    for (column, launch) in options.columns() {
        for curve in table.curves(&axis.name, &column) {
            let mut series = curve.series.clone();
            series.retain(|(name, _)| !is_shared(name));
            let name = format!("{} {}", launch.unwrap_or_default(), shown(&series));
            named.push((name.trim().to_owned(), curve));
        }
    }
    named.retain(|(_, curve)| !curve.points.is_empty());
    named
}

/// True for 1, 2, 4, 8 and so on, and for 0.5, 0.25 and so on.
fn is_power_of_two(value: f64) -> bool {
    // The fraction of the mantissa is below the 12 bits of sign and exponent.
    value.is_normal() && value > 0.0 && value.to_bits() << 12 == 0
}

/// The x axis: numbers, or one tick for each setting.
fn x_axis(axis: &SweepAxis, curves: &[(String, Curve)], options: &PlotOptions) -> Result<Axis, String> {
    let label = options.x_label.clone().unwrap_or_else(|| axis_label(&axis.name));
    let Some(numbers) = axis.numbers() else {
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
        return Ok(Axis::new(&label, Scale::Linear, 0.5, end).with_ticks(ticks.collect()));
    };
    let points = curves.iter().flat_map(|(_, curve)| &curve.points);
    let (least, most) = range(points.map(|point| point.x));
    // Two points lie alike on any axis.
    let is_binary = numbers.len() >= 3 && numbers.iter().all(|x| is_power_of_two(*x));
    let scale = scale(options.log_x || is_binary, least, &axis.name)?;
    let drawn = Axis::new(&label, scale, least, most);
    let mut ticks: Vec<_> = numbers.into_iter().zip(axis.values.iter().cloned()).collect();
    ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
    // The settings are the ticks if they lie far enough apart.
    let is_spread = |pair: &[(f64, String)]| drawn.place(pair[1].0) - drawn.place(pair[0].0) > 0.06;
    if !is_binary && !ticks.windows(2).all(is_spread) {
        return Ok(drawn);
    }
    ticks.retain(|(x, _)| (least..=most).contains(x));
    let half = |tick: &(f64, String)| TICK.0 * tick.1.chars().count() as f64 / 2.0;
    let ticks = apart(&drawn, ticks, |a, b| half(a) + half(b) + TICK.1);
    Ok(drawn.with_ticks(ticks))
}

fn y_axis(curves: &[(String, Curve)], options: &PlotOptions) -> Result<Axis, String> {
    let points = curves.iter().flat_map(|(_, curve)| &curve.points);
    let mut values: Vec<f64> = points.map(|point| point.y).collect();
    let (least, most) = range(values.iter().copied());
    let scale = scale(options.log_y, least, &options.y)?;
    let column = options.y.as_str();
    let label = column_label(column, &options.launches);
    Ok(match scale {
        // A linear axis includes 0, so that heights compare.
        Scale::Linear => Axis::new(&label, scale, least.min(0.0), most * HEADROOM),
        Scale::Log => {
            let drawn = Axis::new(&label, scale, least / HEADROOM, most * HEADROOM);
            if !values.iter().all(|y| is_power_of_two(*y)) {
                return Ok(drawn);
            }
            values.sort_by(f64::total_cmp);
            values.dedup();
            let ticks = values.into_iter().map(|y| (y, y.to_string())).collect();
            let ticks = apart(&drawn, ticks, |_, _| Y_TICK);
            drawn.with_ticks(ticks)
        }
    })
}

/// Leaves out each tick that lies nearer than `least` to the one before it.
fn apart(
    axis: &Axis,
    ticks: Vec<(f64, String)>,
    least: impl Fn(&(f64, String), &(f64, String)) -> f64,
) -> Vec<(f64, String)> {
    let mut kept: Vec<(f64, String)> = Vec::new();
    for tick in ticks {
        let has_room = |last: &(f64, String)| axis.place(tick.0) - axis.place(last.0) >= least(last, &tick);
        if kept.last().is_none_or(has_room) {
            kept.push(tick);
        }
    }
    kept
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
    use crate::report::metrics::Value;

    fn options(x: Option<&str>) -> PlotOptions {
        PlotOptions {
            x: x.map(str::to_owned),
            y: "cycles".to_owned(),
            ..PlotOptions::default()
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
    fn powers_of_two_lie_at_equal_distances_with_a_tick_each() {
        // The plotting area is 520 pixels wide and begins at 64: three steps between 1 and 8.
        let text = plot("t", &table(&["n=1,2,4,8"], &[1.0; 4]), &options(None)).unwrap();
        for (x, label) in [("64.0", "1"), ("237.3", "2"), ("410.7", "4"), ("584.0", "8")] {
            let tick = format!("<text x=\"{x}\" y=\"354.0\" text-anchor=\"middle\">{label}</text>");
            assert!(text.contains(&tick), "{tick}: {text}");
        }
        // With another number among them, the axis is linear: 4 lies in the middle of 1 and 7.
        let text = plot("t", &table(&["n=1,4,7"], &[1.0; 3]), &options(None)).unwrap();
        assert!(
            text.contains("<text x=\"324.0\" y=\"354.0\" text-anchor=\"middle\">4</text>"),
            "{text}"
        );
    }

    #[test]
    fn labels_of_many_powers_of_two_do_not_lie_on_each_other() {
        let text = plot("t", &table(&["n=1..1048576*2"], &[1.0; 21]), &options(None)).unwrap();
        // 26 pixels a step, and 7 a character: the seven characters of the last values take two steps.
        let labels: Vec<_> = text.lines().filter(|line| line.contains("y=\"354.0\"")).collect();
        assert!(labels.len() > 8 && labels.len() < 21, "{labels:?}");
        assert!(text.contains(">1</text>") && text.contains(">2</text>"), "{text}");
    }

    #[test]
    fn powers_of_two_along_a_logarithmic_y_axis_are_its_ticks() {
        let log_y = PlotOptions {
            log_y: true,
            ..options(None)
        };
        let text = plot("t", &table(&["n=1,2,4"], &[4.0, 8.0, 64.0]), &log_y).unwrap();
        let ticks = ["4", "8", "64"].map(|y| text.matches(&format!("text-anchor=\"end\">{y}</text>")).count());
        assert_eq!(
            (ticks, text.matches("text-anchor=\"end\"").count()),
            ([1; 3], 3),
            "{text}"
        );
    }

    #[test]
    fn axes_have_plain_names_with_units() {
        let options = PlotOptions {
            x_label: Some("Stride (elements)".to_owned()),
            ..options(None)
        };
        let text = plot("t", &table(&["args[3]=1,2"], &[1.0, 2.0]), &options).unwrap();
        assert!(
            text.contains(">Stride (elements)</text>") && text.contains(">Core cycles</text>"),
            "{text}"
        );
        assert!(!text.contains(">args[3]</text>"), "{text}");
    }

    #[test]
    fn each_launch_has_a_curve_with_its_name() {
        let mut table = table(&["gpu=a,b", "n=1,2"], &[1.0, 2.0, 3.0, 4.0]);
        table.columns = ["cycles", "launch[0].cycles", "launch[2].cycles"]
            .map(str::to_owned)
            .to_vec();
        for row in &mut table.rows {
            row.values = vec![row.values[0], Value::Number(10.0), Value::Number(20.0)];
        }
        let options = PlotOptions {
            by_launch: vec![0, 2],
            launches: ["up", "over", "down"].map(str::to_owned).to_vec(),
            ..options(Some("n"))
        };
        let text = plot("t", &table, &options).unwrap();
        for name in ["up gpu=a", "up gpu=b", "down gpu=a", "down gpu=b"] {
            assert!(text.contains(&format!(">{name}</text>")), "{name}: {text}");
        }
        assert!(
            text.contains("down gpu=b n=2: cycles 20") && text.contains(">Core cycles</text>"),
            "{text}"
        );
    }

    #[test]
    fn legend_of_many_curves_fits_and_its_marks_differ() {
        let table = table(&["a=1..24+1", "n=1,2"], &[1.0; 48]);
        let text = plot("t", &table, &options(Some("n"))).unwrap();
        // 34 pixels above, 18 for each curve, 42 below.
        assert!(text.contains("height=\"508\""), "{text}");
        let marks = text
            .lines()
            .filter_map(|line| line.split_once("<text")?.0.split_once("stroke="));
        let marks: std::collections::BTreeSet<_> =
            marks.map(|mark| mark.1).filter(|mark| mark.contains("dash")).collect();
        assert_eq!(marks.len(), 16, "{marks:?}");
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
        let many = table(&["a=1..33+1", "n=1,2"], &[1.0; 66]);
        assert!(plot("t", &many, &options(Some("n"))).unwrap_err().contains("33 curves"));
    }
}
