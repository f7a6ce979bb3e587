//! The table `[sweep]` of a scenario file: axes, metrics, and assertions over the curves.
//!
//! ```toml
//! [sweep]
//! over = ["block=32..1024*2", "gpu=v100-sxm2,h100-sxm5"]   # as `--over`
//! metrics = ["dram__bytes_read.sum"]                            # optional: columns beside the cycles
//! plot = { metric = "cycles", x = "block", log_x = true }       # optional: what --plot draws without its own options
//! # plot = { launches = true }: a curve for each launch; launches = ["up", "down"]: for these
//!
//! [[sweep.assert]]
//! metric = "cycles"
//! shape = "falling"
//! ```

use serde::Deserialize;

use super::{Axis, CurveAssert};
use crate::scenario::nearest;

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
    /// The launches with a curve each. `None` draws all launches together.
    pub launches: Option<DrawnLaunches>,
    /// The axis along x.
    pub x: Option<String>,
    /// The label of x. `None` gives the name of the axis, with its unit.
    pub x_label: Option<String>,
    /// True for a logarithmic x axis.
    #[serde(default)]
    pub log_x: bool,
    /// True for a logarithmic y axis.
    #[serde(default)]
    pub log_y: bool,
}

/// The launches with a curve each.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(untagged, expecting = "`true`, or names of launches")]
pub enum DrawnLaunches {
    /// `true`: all that count in totals. `false`: none.
    All(bool),
    /// These, by their names. A launch without a name has that of its kernel. Equal names get their index.
    Named(Vec<String>),
}

impl DrawnLaunches {
    /// The indices of the launches. `names` has the name of each launch, and `None` for one that only warms up.
    ///
    /// # Errors
    /// If a name is that of no launch. The text says which.
    pub fn indices(&self, names: &[Option<&str>]) -> Result<Vec<usize>, String> {
        let counted = || (0..names.len()).filter(|&n| names[n].is_some());
        match self {
            DrawnLaunches::All(is_drawn) => Ok(counted().filter(|_| *is_drawn).collect()),
            DrawnLaunches::Named(drawn) => {
                let find = |name: &String| {
                    let found = counted().find(|&n| names[n] == Some(name));
                    let near = || nearest(name, names.iter().copied().flatten());
                    let hint = || near().map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                    found.ok_or_else(|| format!("sweep.plot.launches: no launch is named `{name}`{}", hint()))
                };
                drawn.iter().map(find).collect()
            }
        }
    }
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
    fn launches_are_drawn_by_name_and_warm_ups_are_not() {
        let names = [None, Some("up"), Some("down")];
        let indices = |text: &str| {
            let spec: PlotSpec = toml::from_str(&format!("launches = {text}")).unwrap();
            spec.launches.unwrap().indices(&names)
        };
        assert_eq!(indices("true"), Ok(vec![1, 2]));
        assert_eq!(indices("false"), Ok(vec![]));
        assert_eq!(indices("[\"down\", \"up\"]"), Ok(vec![2, 1]));
        let says = indices("[\"dawn\"]").unwrap_err();
        assert_eq!(
            says,
            "sweep.plot.launches: no launch is named `dawn`; did you mean `down`?"
        );
        let says = toml::from_str::<PlotSpec>("launches = 3").unwrap_err().to_string();
        assert!(says.contains("`true`, or names of launches"), "{says}");
    }

    #[test]
    fn unknown_key_and_wrong_axis_are_refused() {
        let says = |text: &str| toml::from_str::<Spec>(text).unwrap_err().to_string();
        assert!(says("ofer = []").contains("unknown field `ofer`"));
        assert!(says("over = [\"block\"]").contains("`block` is not an axis"));
    }
}
