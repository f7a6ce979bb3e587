//! An axis of a chart: maps values to positions, and chooses the ticks and their labels.

/// The map from values to positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Linear.
    Linear,
    /// Logarithmic.
    Log,
}

/// One axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    label: String,
    scale: Scale,
    from: f64,
    to: f64,
    ticks: Option<Vec<(f64, String)>>,
}

/// Approximate number of ticks.
const TICKS: f64 = 5.0;

impl Axis {
    /// Creates an axis over a range. An empty range is widened. A logarithmic axis begins above zero.
    pub fn new(label: &str, scale: Scale, from: f64, to: f64) -> Self {
        let from = if scale == Scale::Log { from.max(1e-9) } else { from };
        let to = match scale {
            _ if to > from => to,
            Scale::Linear => from + 1.0,
            Scale::Log => from * 10.0,
        };
        Axis {
            label: label.to_owned(),
            scale,
            from,
            to,
            ticks: None,
        }
    }

    /// Replaces the round ticks by these values with their labels.
    pub fn with_ticks(self, ticks: Vec<(f64, String)>) -> Self {
        Axis {
            ticks: Some(ticks),
            ..self
        }
    }

    /// The label.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The value at the start.
    pub fn from(&self) -> f64 {
        self.from
    }

    /// The position of a value: 0 at the start, 1 at the end.
    pub fn place(&self, value: f64) -> f64 {
        // Clamped: a value outside the axis is drawn at its end.
        let place = match self.scale {
            Scale::Linear => (value - self.from) / (self.to - self.from),
            Scale::Log => (value.max(1e-9) / self.from).ln() / (self.to / self.from).ln(),
        };
        place.clamp(0.0, 1.0)
    }

    /// Values of the ticks, with their labels.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        if let Some(ticks) = &self.ticks {
            return ticks.clone();
        }
        let values = match self.scale {
            Scale::Linear => self.linear_ticks(),
            Scale::Log => self.log_ticks(),
        };
        values.into_iter().map(|value| (value, short(value))).collect()
    }

    fn linear_ticks(&self) -> Vec<f64> {
        let rough = (self.to - self.from) / TICKS;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        // The factors near 1 here and below absorb rounding, so that a tick at an end stays.
        let step = step.into_iter().find(|step| *step >= rough * 0.999).unwrap_or(rough);
        let first = (self.from / step).ceil() as i64;
        let last = (self.to / step * 1.000_001).floor() as i64;
        (first..=last).map(|n| n as f64 * step).collect()
    }

    /// Powers of ten. If there are few, also 2 and 5 times each power.
    fn log_ticks(&self) -> Vec<f64> {
        let decades = (self.to / self.from).log10();
        // Up to 3.5 decades, three labels per decade have room.
        let factors: &[f64] = if decades < 3.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let powers = self.from.log10().floor() as i32..=self.to.log10().ceil() as i32;
        let all = powers.flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)));
        all.filter(|value| *value >= self.from * 0.999 && *value <= self.to * 1.001)
            .collect()
    }
}

/// Formats a number in a short form: `1.5k`, `20M`.
pub fn short(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        v if v >= 1e9 => (value / 1e9, "G"),
        v if v >= 1e6 => (value / 1e6, "M"),
        v if v >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = match scaled.abs() {
        v if v == v.round() => 0,
        v if v < 0.1 => 3,
        v if v < 1.0 => 2,
        _ => 1,
    };
    format!("{scaled:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<String> {
        axis.ticks().into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn linear_axis_has_round_numbers() {
        assert_eq!(
            labels(&Axis::new("", Scale::Linear, 0.0, 100.0)),
            ["0", "20", "40", "60", "80", "100"]
        );
        assert_eq!(
            labels(&Axis::new("", Scale::Linear, 0.0, 0.9)),
            ["0", "0.20", "0.40", "0.60", "0.80"]
        );
        assert_eq!(
            labels(&Axis::new("", Scale::Linear, 0.0, 50_000.0)),
            ["0", "10k", "20k", "30k", "40k", "50k"]
        );
    }

    #[test]
    fn logarithmic_axis_places_equal_ratios_at_equal_distances() {
        let axis = Axis::new("", Scale::Log, 1.0, 10_000.0);
        assert_eq!(labels(&axis), ["1", "10", "100", "1000", "10k"]);
        assert!((axis.place(100.0) - 0.5).abs() < 1e-12);
        assert_eq!(axis.place(0.1), 0.0);
    }

    #[test]
    fn empty_range_is_widened() {
        assert_eq!(Axis::new("", Scale::Linear, 0.0, 0.0).place(0.5), 0.5);
    }
}
