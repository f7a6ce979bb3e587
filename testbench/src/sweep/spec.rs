//! The table `[sweep]` of a scenario file: axes, metrics, and assertions over the curves.
//!
//! ```toml
//! [sweep]
//! over = ["block=32..1024*2", "gpu=v100-sxm2,h100-sxm5"]   # as `--over`
//! metrics = ["dram__bytes_read.sum"]                            # optional: columns beside the cycles
//! plot = { metric = "cycles", x = "block", log_x = true }       # optional: what --plot draws without its own options
//!
//! [[sweep.assert]]
//! metric = "cycles"
//! shape = "falling"
//! ```

use serde::Deserialize;

use super::{Axis, CurveAssert};

/// The table `[sweep]`.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The axes, the slowest first.
    #[serde(default)]
    pub over: Vec<Axis>,
    /// Metrics of the table, beside the cycles.
    #[serde(default)]
    pub metrics: Vec<String>,
    /// What `--plot` draws.
    #[serde(default)]
    pub plot: PlotSpec,
    /// Assertions over the curves.
    #[serde(default, rename = "assert")]
    pub asserts: Vec<CurveAssert>,
}

/// What `--plot` draws if the command does not say it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlotSpec {
    /// The column along y. `None` draws the cycles.
    pub metric: Option<String>,
    /// The axis along x.
    pub x: Option<String>,
    /// True for a logarithmic x axis.
    #[serde(default)]
    pub log_x: bool,
    /// True for a logarithmic y axis.
    #[serde(default)]
    pub log_y: bool,
}

impl Spec {
    /// Takes over the axes of the command line: one with the name of an axis replaces it, others are added.
    pub fn override_axes(&mut self, axes: &[Axis]) {
        for axis in axes {
            match self.over.iter_mut().find(|own| own.name == axis.name) {
                Some(own) => *own = axis.clone(),
                None => self.over.push(axis.clone()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axis_of_the_command_line_replaces_one_of_the_file_in_its_place() {
        let mut spec: Spec = toml::from_str("over = [\"block=32,64\", \"gpu=tiny\"]").unwrap();
        let axes = ["n=1,2", "block=128"].map(|text| text.parse::<Axis>().unwrap());
        spec.override_axes(&axes);
        let shown: Vec<_> = spec.over.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["block=128", "gpu=tiny", "n=1,2"]);
    }

    #[test]
    fn unknown_key_and_wrong_axis_are_refused() {
        let says = |text: &str| toml::from_str::<Spec>(text).unwrap_err().to_string();
        assert!(says("ofer = []").contains("unknown field `ofer`"));
        assert!(says("over = [\"block\"]").contains("`block` is not an axis"));
    }
}
