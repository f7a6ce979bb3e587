//! Charts as self-contained SVG: axes, lines, steps, layers, a legend, and a tooltip for each mark.
//!
//! A [`Plot`] takes its axes first, then its series. A value outside an axis is drawn at the end of the axis. [`maud`] escapes labels.
//! The SVG is written by hand: a chart is a few paths and labels, and a plotting library would add fonts and rasterizers.

mod axis;

pub use axis::{Axis, Scale};

use std::fmt::Write;

use maud::{Escaper, Markup, PreEscaped};

/// Colours of series, which colour-blind readers can distinguish (Okabe and Ito).
pub const COLOURS: [&str; 8] = [
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#666666", "#b8a800",
];

/// Dashes of lines, in pixels: one pattern for each group of [`COLOURS`].
const DASHES: [&str; 4] = ["", "7 4", "2 3", "9 3 2 3"];

/// Number of lines that look different.
pub const STYLES: usize = COLOURS.len() * DASHES.len();

/// The colour of series `n`.
pub fn colour(n: usize) -> &'static str {
    COLOURS[n % COLOURS.len()]
}

/// The look of a line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Stroke {
    colour: &'static str,
    /// Empty for a solid line.
    dashes: &'static str,
}

/// The look of line `n`. Up to [`STYLES`] lines look different.
pub fn stroke(n: usize) -> Stroke {
    let dashes = DASHES[n / COLOURS.len() % DASHES.len()];
    Stroke {
        colour: colour(n),
        dashes,
    }
}

/// A solid line.
impl From<&'static str> for Stroke {
    fn from(colour: &'static str) -> Self {
        Stroke { colour, dashes: "" }
    }
}

impl Stroke {
    /// The attributes of an SVG path.
    fn attributes(self) -> String {
        let Stroke { colour, dashes } = self;
        let dashes = match dashes {
            "" => String::new(),
            dashes => format!(r#" stroke-dasharray="{dashes}""#),
        };
        format!(r#"fill="none" stroke="{colour}" stroke-width="2"{dashes}"#)
    }
}

/// Space around the plotting area, in pixels: left, right, top, bottom.
const MARGINS: [f64; 4] = [64.0, 16.0, 34.0, 42.0];

/// Width of a character, in pixels. SVG cannot measure text: this fits the font size of 12.
const CHARACTER: f64 = 7.0;

/// Width of a bold character, relative to a plain one.
const BOLD: f64 = 1.15;

/// Width of a mark in the legend, in pixels. The mark of a dashed line has two periods of the longest pattern.
fn mark_width(is_dashed: bool) -> f64 {
    if is_dashed { 34.0 } else { 11.0 }
}

/// Distance of two lines of a legend, in pixels.
const LINE: f64 = 18.0;

/// Distance of two lines of a label, in pixels.
const LABEL_LINE: f64 = 15.0;

/// Text with its special characters escaped.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    let _ = Escaper::new(&mut out).write_str(text);
    out
}

/// A chart under construction.
pub struct Plot {
    width: f64,
    height: f64,
    x: Axis,
    y: Axis,
    title: String,
    body: String,
    legend: Vec<(String, Stroke)>,
    /// Width of a legend at the right side, in pixels. 0 for a legend above the plotting area.
    side: f64,
}

impl Plot {
    /// Creates an empty chart with a width and a height in pixels.
    pub fn new(title: &str, (width, height): (u32, u32), x: Axis, y: Axis) -> Self {
        Plot {
            width: f64::from(width),
            height: f64::from(height),
            x,
            y,
            title: title.to_owned(),
            body: String::new(),
            legend: Vec::new(),
            side: 0.0,
        }
    }

    /// Puts the legend at the right side, one series below the other. `longest` is the number of characters of the longest name, `lines`
    /// the number of series.
    pub fn with_side_legend(self, longest: usize, lines: usize) -> Self {
        let side = Self::side(longest, lines);
        Plot { side, ..self }
    }

    /// The width in pixels of a legend at the right side.
    pub fn side(longest: usize, lines: usize) -> f64 {
        CHARACTER * longest as f64 + mark_width(lines > COLOURS.len()) + 13.0
    }

    /// The least height in pixels of a chart with a legend at the right side.
    pub fn least_height(lines: usize) -> f64 {
        // The legend ends above the labels of x.
        MARGINS[2] + LINE * lines as f64 + MARGINS[3]
    }

    fn right(&self) -> f64 {
        self.width - MARGINS[1] - self.side
    }

    /// The label of y takes a second line if one is too short for it.
    fn left(&self) -> f64 {
        MARGINS[0] + LABEL_LINE * (self.y_label().len() - 1) as f64
    }

    /// The lines of the label of y: one or two.
    fn y_label(&self) -> Vec<&str> {
        let label = self.y.label();
        if CHARACTER * label.chars().count() as f64 <= self.height {
            return vec![label];
        }
        let spaces = label.match_indices(' ').map(|(at, _)| at);
        // The space nearest the middle leaves two lines of like length.
        match spaces.min_by_key(|at| (2 * at).abs_diff(label.len())) {
            Some(at) => vec![&label[..at], &label[at + 1..]],
            None => vec![label],
        }
    }

    fn bottom(&self) -> f64 {
        self.height - MARGINS[3]
    }

    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let (w, h) = (self.right() - self.left(), self.bottom() - MARGINS[2]);
        // In SVG, y grows downwards.
        (self.left() + self.x.place(x) * w, self.bottom() - self.y.place(y) * h)
    }

    fn path(&self, points: impl Iterator<Item = (f64, f64)>) -> String {
        let mut path = String::new();
        for (n, (x, y)) in points.map(|point| self.at(point)).enumerate() {
            let _ = write!(path, "{}{x:.1} {y:.1}", if n == 0 { "M" } else { "L" });
        }
        path
    }

    /// Adds a line through points in the units of the axes.
    pub fn line(&mut self, name: &str, stroke: impl Into<Stroke>, points: &[(f64, f64)]) {
        let stroke = stroke.into();
        self.unnamed_line(name, stroke, points);
        self.legend.push((name.to_owned(), stroke));
    }

    /// Adds a line without an entry in the legend. The name is its tooltip.
    pub fn unnamed_line(&mut self, name: &str, stroke: impl Into<Stroke>, points: &[(f64, f64)]) {
        let path = self.path(points.iter().copied());
        let _ = writeln!(
            self.body,
            r#"<path d="{path}" {}><title>{}</title></path>"#,
            stroke.into().attributes(),
            escaped(name)
        );
    }

    /// Adds a dot at each point, with its own tooltip.
    pub fn dots(&mut self, colour: &str, points: &[((f64, f64), String)]) {
        for (point, tooltip) in points {
            let (x, y) = self.at(*point);
            let _ = writeln!(
                self.body,
                r#"<circle cx="{x:.1}" cy="{y:.1}" r="3.5" fill="{colour}"><title>{}</title></circle>"#,
                escaped(tooltip)
            );
        }
    }

    /// Adds filled steps. Each point's height lasts up to the next point, and the last one up to `end`.
    pub fn steps(&mut self, name: &str, colour: &'static str, points: &[(f64, f64)], end: f64) {
        let Some(&(first, _)) = points.first() else { return };
        // The outline runs along the tops and closes along the bottom of the axis.
        // On a logarithmic axis, the bottom is not 0.
        let floor = self.y.from();
        let ends = points.iter().skip(1).map(|point| point.0).chain([end]);
        let tops = points.iter().zip(ends).flat_map(|(&(x, y), end)| [(x, y), (end, y)]);
        let outline = [(first, floor)].into_iter().chain(tops).chain([(end, floor)]);
        let path = self.path(outline);
        let _ = writeln!(
            self.body,
            r#"<path d="{path}Z" fill="{colour}" fill-opacity="0.3" stroke="{colour}" stroke-width="1.2"><title>{}</title></path>"#,
            escaped(name)
        );
        self.legend.push((name.to_owned(), colour.into()));
    }

    /// Adds stacked layers of steps. `edges` has one value more than each layer has heights.
    pub fn layers(&mut self, layers: &[(&str, &str, Vec<f64>)], edges: &[f64]) {
        let mut floor = vec![0.0; edges.len().saturating_sub(1)];
        for (name, colour, heights) in layers {
            let top: Vec<f64> = floor
                .iter()
                .zip(heights)
                .map(|(floor, height)| floor + height)
                .collect();
            let step = |(n, y): (usize, &f64)| [(edges[n], *y), (edges[n + 1], *y)];
            let upper = top.iter().enumerate().flat_map(step);
            let lower: Vec<_> = floor.iter().enumerate().flat_map(step).collect();
            // The outline runs along the upper edge, then back along the lower one.
            let path = self.path(upper.chain(lower.into_iter().rev()));
            let _ = writeln!(
                self.body,
                r#"<path d="{path}Z" fill="{colour}"><title>{}</title></path>"#,
                escaped(name)
            );
            floor = top;
        }
    }

    fn axes(&self) -> String {
        let mut out = String::new();
        let (left, right, top, bottom) = (self.left(), self.right(), MARGINS[2], self.bottom());
        for (value, label) in self.x.ticks() {
            let (x, _) = self.at((value, self.y.from()));
            // A label at the end of the axis moves left, so that the edge of the chart does not cut it off.
            let centre = x.min(self.width - CHARACTER * label.chars().count() as f64 / 2.0);
            let _ = writeln!(
                out,
                r##"<path d="M{x:.1} {top}V{bottom}" class="grid" stroke="#ddd"/><text x="{centre:.1}" y="{:.1}" text-anchor="middle">{label}</text>"##,
                bottom + 16.0
            );
        }
        for (value, label) in self.y.ticks() {
            let (_, y) = self.at((self.x.from(), value));
            let _ = writeln!(
                out,
                r##"<path d="M{left} {y:.1}H{right}" class="grid" stroke="#ddd"/><text x="{:.1}" y="{:.1}" text-anchor="end">{label}</text>"##,
                left - 6.0,
                y + 4.0
            );
        }
        let _ = writeln!(
            out,
            r##"<path d="M{left} {top}V{bottom}H{right}" class="axis" fill="none" stroke="#444"/>"##
        );
        let _ = writeln!(
            out,
            r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            (left + right) / 2.0,
            self.height - 8.0,
            escaped(self.x.label())
        );
        for (n, line) in self.y_label().into_iter().enumerate() {
            let _ = writeln!(
                out,
                r#"<text transform="translate({:.0} {:.1}) rotate(-90)" font-size="{:.1}" text-anchor="middle">{}</text>"#,
                14.0 + LABEL_LINE * n as f64,
                (top + bottom) / 2.0,
                Self::font(line, 12.0, self.height),
                escaped(line)
            );
        }
        out
    }

    fn legend(&self) -> String {
        let mut out = String::new();
        let (mut x, mut y) = (self.width - MARGINS[1], 12.0);
        // Above the plot, the legend is aligned to the right, so the last name is placed first.
        let is_dashed = |(_, stroke): &(String, Stroke)| !stroke.dashes.is_empty();
        let has_dashes = self.legend.iter().any(is_dashed);
        let mark = mark_width(has_dashes);
        for (n, (name, stroke)) in self.legend.iter().enumerate().rev() {
            if self.side > 0.0 {
                (x, y) = (self.right() + 12.0, MARGINS[2] + LINE * n as f64);
            } else {
                x -= CHARACTER * name.chars().count() as f64 + mark + 13.0;
            }
            let drawn = match has_dashes {
                false => format!(
                    r#"<rect x="{x:.1}" y="{y:.0}" width="{mark}" height="11" fill="{}"/>"#,
                    stroke.colour
                ),
                true => format!(r#"<path d="M{x:.1} {:.1}h{mark}" {}/>"#, y + 5.5, stroke.attributes()),
            };
            let _ = writeln!(
                out,
                r#"{drawn}<text x="{:.1}" y="{:.0}">{}</text>"#,
                x + mark + 4.0,
                y + 10.0,
                escaped(name)
            );
        }
        out
    }

    /// Font size of a text, smaller than `size` if the text is longer than `room` pixels.
    fn font(text: &str, size: f64, room: f64) -> f64 {
        let wanted = CHARACTER / 12.0 * size * text.chars().count() as f64;
        size * (room / wanted).min(1.0)
    }

    /// Returns the chart as one `svg` element.
    pub fn finish(self) -> Markup {
        let Plot {
            width, height, title, ..
        } = &self;
        // Later elements cover earlier ones: the grid is below the curves, and the legend above.
        PreEscaped(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
                 font-family=\"sans-serif\" font-size=\"12\" role=\"img\" aria-label=\"{0}\">\n\
                 <rect class=\"paper\" width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
                 <text x=\"{1:.1}\" y=\"22\" font-size=\"{5:.1}\" font-weight=\"bold\">{0}</text>\n{2}{3}{4}</svg>\n",
            escaped(title),
            self.left(),
            self.axes(),
            self.body,
            self.legend(),
            Self::font(title, 14.0, (width - self.left()) / BOLD)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot() -> Plot {
        // The plotting area is 100 by 100 pixels, from (64, 34).
        let size = (64 + 16 + 100, 34 + 42 + 100);
        let axis = |label| Axis::new(label, Scale::Linear, 0.0, 10.0);
        Plot::new("a < b", size, axis("x"), axis("y & z"))
    }

    #[test]
    fn line_from_corner_to_corner_runs_over_the_plotting_area() {
        let mut plot = plot();
        plot.line("up", colour(0), &[(0.0, 0.0), (10.0, 10.0)]);
        let text = plot.finish().into_string();
        assert!(text.contains(r#"d="M64.0 134.0L164.0 34.0""#), "{text}");
    }

    #[test]
    fn label_at_the_end_of_an_axis_stays_inside_the_chart() {
        // The area ends at 164 of 180. Two characters have 14 pixels and are centred there; six have 42, so their centre is at 159.
        let last = |label: &str| {
            let x = Axis::new("x", Scale::Linear, 0.0, 10.0).with_ticks(vec![(10.0, label.to_owned())]);
            let size = (64 + 16 + 100, 34 + 42 + 100);
            let plot = Plot::new("t", size, x, Axis::new("y", Scale::Linear, 0.0, 10.0));
            plot.finish().into_string()
        };
        for (label, centre) in [("10", "164.0"), ("100000", "159.0")] {
            let text = last(label);
            let tick = format!(r#"<text x="{centre}" y="150.0" text-anchor="middle">{label}</text>"#);
            assert!(text.contains(&tick), "{text}");
        }
    }

    #[test]
    fn side_legend_takes_its_width_from_the_plotting_area() {
        // Two characters take 14 pixels beside 24 of the legend: the area ends at 180 - 16 - 38 = 126.
        let mut plot = plot().with_side_legend(2, 1);
        plot.line("up", colour(0), &[(0.0, 0.0), (10.0, 10.0)]);
        plot.dots(colour(0), &[((10.0, 10.0), "x < 11".to_owned())]);
        let text = plot.finish().into_string();
        assert!(text.contains(r#"d="M64.0 134.0L126.0 34.0""#), "{text}");
        assert!(
            text.contains(r#"<circle cx="126.0" cy="34.0""#) && text.contains("x &lt; 11"),
            "{text}"
        );
        assert!(text.contains(r#"<rect x="138.0" y="34" width="11""#), "{text}");
    }

    #[test]
    fn long_label_of_y_takes_two_lines_and_moves_the_plotting_area() {
        // 176 pixels hold 25 characters of 7 pixels; 29 take a second line of 15 pixels.
        let axis = |label| Axis::new(label, Scale::Linear, 0.0, 10.0);
        let size = (64 + 16 + 100, 34 + 42 + 100);
        let plot = Plot::new("t", size, axis("x"), axis("bytes of a request (B/sector)"));
        let text = plot.finish().into_string();
        assert!(
            text.contains(">bytes of a request</text>") && text.contains(">(B/sector)</text>"),
            "{text}"
        );
        assert!(text.contains("M79 34V134H164"), "{text}");
    }

    #[test]
    fn no_two_lines_look_equal() {
        let all: std::collections::BTreeSet<_> = (0..STYLES).map(stroke).collect();
        assert_eq!(all.len(), 32);
        let mut plot = plot();
        plot.line("ninth", stroke(8), &[(0.0, 0.0), (10.0, 10.0)]);
        let text = plot.finish().into_string();
        // The curve, and its mark in the legend.
        let dashed = r##"stroke="#0072b2" stroke-width="2" stroke-dasharray="7 4""##;
        assert_eq!(text.matches(dashed).count(), 2, "{text}");
    }

    #[test]
    fn steps_keep_their_height_until_the_next_one() {
        let mut plot = plot();
        plot.steps("two", colour(1), &[(0.0, 5.0), (5.0, 10.0)], 10.0);
        let outline = "M64.0 134.0L64.0 84.0L114.0 84.0L114.0 34.0L164.0 34.0L164.0 134.0Z";
        let text = plot.finish().into_string();
        assert!(text.contains(outline), "{text}");
    }

    #[test]
    fn long_text_is_made_as_small_as_its_room() {
        // 7 pixels a character of 12: 100 characters need 700, and half of it is there.
        let text = "x".repeat(100);
        assert!((Plot::font(&text, 12.0, 350.0) - 6.0).abs() < 1e-9);
        assert!((Plot::font(&text, 12.0, 900.0) - 12.0).abs() < 1e-9);
    }

    #[test]
    fn text_is_escaped_and_no_other_file_is_loaded() {
        let text = plot().finish().into_string();
        assert!(text.contains("a &lt; b") && text.contains("y &amp; z"), "{text}");
        assert!(!text.contains("href") && !text.contains("<script"), "{text}");
    }
}
