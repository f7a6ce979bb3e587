//! A setting of a point changes the scenario: its launch sizes, or a scalar argument.
//!
//! | Name | Value |
//! |---|---|
//! | `grid`, `block`, `cluster` | `64`, `16x16` or `8x8x4` |
//! | `dynamic_shared_bytes` | bytes |
//! | `max_registers` | most registers of a thread, 16 to 255, for all launches |
//! | `args[N]`, or the kernel's name of the parameter | a number of the argument's type |
//!
//! `launch[N].` before a name selects one launch. Without it, all launches change.

use std::collections::BTreeSet;
use std::ops::Range;

use thiserror::Error;
use warpwave_ptx::{MIN_REGISTER_CAP, Module, Options};

use crate::report::units::count;
use crate::scenario::dtype::Number;
use crate::scenario::{Arg, Launch, SIZES, Scenario, nearest, whole};

/// Name of the setting that caps the registers of a thread.
const REGISTERS: &str = "max_registers";

/// Why a setting does not apply to a scenario.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SettingError {
    /// Nothing has this name.
    #[error(
        "`{name}` is neither `gpu`, a preset key, grid, block, cluster, dynamic_shared_bytes, max_registers, args[N] \
         nor a scalar parameter of the kernel{}", hint(.nearest)
    )]
    Unknown {
        /// The name.
        name: String,
        /// The most similar name.
        nearest: Option<String>,
    },
    /// The value does not have the form of the setting.
    #[error("`{name}` cannot be `{value}`; write {form}")]
    BadValue {
        /// The setting.
        name: String,
        /// The value.
        value: String,
        /// The form of a value.
        form: String,
    },
    /// There is no such launch.
    #[error("`{name}`: the scenario has {}, counted from 0", count(*.n as u64, "launch"))]
    NoLaunch {
        /// The setting.
        name: String,
        /// Launches of the scenario.
        n: usize,
    },
    /// Later settings give a value to each launch of this one.
    #[error("`{name}` has no effect: `{other}` gives the same launch its own value; leave out one of the two")]
    NoEffect {
        /// The setting.
        name: String,
        /// A later setting.
        other: String,
    },
    /// The argument is missing, or is not a scalar.
    #[error("`{name}` is no scalar argument of {entry}; only scalars such as {{ i32 = 4096 }} can change")]
    NotScalar {
        /// The setting.
        name: String,
        /// The launch.
        entry: String,
    },
}

fn hint(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// Applies one setting to a scenario.
///
/// # Errors
/// If the scenario has nothing of this name, or if the value does not fit it.
pub fn apply(scenario: &mut Scenario, name: &str, value: &str) -> Result<(), SettingError> {
    let (launches, key) = launches(scenario, name)?;
    // Sizes first: a parameter named `grid` is reached as `args[N]`.
    if SIZES.contains(&key) {
        return scenario.launches[launches]
            .iter_mut()
            .try_for_each(|launch| set_size(launch, name, key, value));
    }
    if name == REGISTERS {
        // The type `u8` ends at 255, the most registers of a thread.
        let registers = value.parse().ok().filter(|&n| n >= MIN_REGISTER_CAP);
        scenario.max_registers = Some(registers.ok_or_else(|| SettingError::BadValue {
            name: name.to_owned(),
            value: value.to_owned(),
            form: format!("a number of registers from {MIN_REGISTER_CAP} to 255"),
        })?);
        return Ok(());
    }
    if let Some((arg, "")) = indexed("args", key) {
        return scenario.launches[launches]
            .iter_mut()
            .try_for_each(|launch| set_arg(launch, arg, name, value));
    }
    set_parameter(scenario, launches, (name, key), value)
}

/// The launches that a setting changes, and its name without them.
fn launches<'a>(scenario: &Scenario, name: &'a str) -> Result<(Range<usize>, &'a str), SettingError> {
    let n = scenario.launches.len();
    match indexed("launch", name) {
        Some((launch, rest)) if launch < n => Ok((launch..launch + 1, rest.strip_prefix('.').unwrap_or(rest))),
        Some(_) => Err(SettingError::NoLaunch {
            name: name.to_owned(),
            n,
        }),
        None => Ok((0..n, name)),
    }
}

/// Checks that each setting has an effect, if they are applied in this order.
///
/// # Errors
/// If later settings give a value to each launch that the setting names.
pub fn check_effects(scenario: &Scenario, names: &[&str]) -> Result<(), SettingError> {
    let mut places: Vec<BTreeSet<(usize, String)>> = Vec::new();
    for name in names {
        places.push(self::places(scenario, name)?);
    }
    for (n, own) in places.iter().enumerate() {
        let is_later = |place: &(usize, String)| places[n + 1..].iter().position(|later| later.contains(place));
        let later: Option<Vec<_>> = own.iter().map(is_later).collect();
        if let Some(&first) = later.as_ref().and_then(|later| later.first()) {
            return Err(SettingError::NoEffect {
                name: names[n].to_owned(),
                other: names[n + 1 + first].to_owned(),
            });
        }
    }
    Ok(())
}

/// What a setting changes: launches, each with a size or an argument. Empty for a setting of all launches together.
fn places(scenario: &Scenario, name: &str) -> Result<BTreeSet<(usize, String)>, SettingError> {
    let (launches, key) = launches(scenario, name)?;
    let place = match indexed("args", key) {
        Some((arg, "")) => Some(format!("args[{arg}]")),
        _ => SIZES.contains(&key).then(|| key.to_owned()),
    };
    if let Some(place) = place {
        return Ok(launches.map(|launch| (launch, place.clone())).collect());
    }
    let module = scenario.module(Options::default()).ok();
    let place = |launch: usize| {
        let names = parameters(module.as_ref()?, &scenario.launches[launch]);
        let index = names.iter().position(|parameter| parameter == key)?;
        Some((launch, format!("args[{index}]")))
    };
    Ok(launches.filter_map(place).collect())
}

/// The value of a setting in one form for all its spellings: `64`, `64x1` and `64x1x1` are one size, and `1e3` is 1000.
pub(super) fn canonical(name: &str, value: &str) -> String {
    let key = indexed("launch", name).map_or(name, |(_, rest)| rest.strip_prefix('.').unwrap_or(rest));
    match key {
        "grid" | "block" | "cluster" => sizes(value).map(|[x, y, z]| format!("{x}x{y}x{z}")),
        _ => number(value).map(|number| whole(number).to_string()),
    }
    .unwrap_or_else(|| value.to_owned())
}

/// `("launch", "launch[2].block")` gives 2 and `.block`.
fn indexed<'a>(word: &str, name: &'a str) -> Option<(usize, &'a str)> {
    let (index, rest) = name.strip_prefix(word)?.strip_prefix('[')?.split_once(']')?;
    Some((index.parse().ok()?, rest))
}

fn set_size(launch: &mut Launch, name: &str, key: &str, value: &str) -> Result<(), SettingError> {
    let bad = |form: &str| SettingError::BadValue {
        name: name.to_owned(),
        value: value.to_owned(),
        form: form.to_owned(),
    };
    if key == "dynamic_shared_bytes" {
        launch.dynamic_shared_bytes = value.parse().map_err(|_| bad("a number of bytes"))?;
        return Ok(());
    }
    let sizes = sizes(value).ok_or_else(|| bad("one to three sizes from 1 on, such as 256 or 16x16"))?;
    match key {
        "grid" => launch.grid = sizes,
        "block" => launch.block = sizes,
        _ => launch.cluster = Some(sizes),
    }
    Ok(())
}

/// Reads `64`, `16x16` or `8x8x4`. Missing sizes are 1.
fn sizes(value: &str) -> Option<[u32; 3]> {
    let mut sizes = [1; 3];
    for (n, part) in value.split('x').enumerate() {
        // A fourth size has no place, so the value is refused.
        *sizes.get_mut(n)? = part.parse().ok().filter(|&size| size > 0)?;
    }
    Some(sizes)
}

fn set_arg(launch: &mut Launch, index: usize, name: &str, value: &str) -> Result<(), SettingError> {
    let entry = launch.entry.clone().unwrap_or_else(|| "the kernel".to_owned());
    let Some(Arg::Scalar(dtype, bytes)) = launch.args.get_mut(index) else {
        return Err(SettingError::NotScalar {
            name: name.to_owned(),
            entry,
        });
    };
    // A number that does not fit must leave the argument unchanged.
    let mut new = Vec::new();
    match number(value) {
        Some(number) if dtype.append(&mut new, number) => {
            *bytes = new;
            Ok(())
        }
        _ => Err(SettingError::BadValue {
            name: name.to_owned(),
            value: value.to_owned(),
            form: format!("a number of the type {dtype}"),
        }),
    }
}

fn number(value: &str) -> Option<Number> {
    let plain = value.replace('_', "");
    let integer = plain.parse().ok().map(Number::Int);
    integer.or_else(|| plain.parse().ok().map(Number::Float))
}

/// Sets the scalar argument of the parameter with this name in the PTX. Kernels of other launches need not have it.
fn set_parameter(
    scenario: &mut Scenario,
    launches: Range<usize>,
    (name, key): (&str, &str),
    value: &str,
) -> Result<(), SettingError> {
    // Names of parameters do not depend on the code, so any options do.
    let module = scenario.module(Options::default()).ok();
    let (mut known, mut is_found) = (Vec::new(), false);
    for launch in &mut scenario.launches[launches] {
        let names = module
            .as_ref()
            .map_or_else(Vec::new, |module| parameters(module, launch));
        if let Some(index) = names.iter().position(|parameter| parameter == key) {
            set_arg(launch, index, name, value)?;
            is_found = true;
        }
        // For the hint, if no launch has the name.
        known.extend(names);
    }
    let words = SIZES
        .into_iter()
        .chain(["gpu", REGISTERS])
        .chain(known.iter().map(String::as_str));
    match is_found {
        true => Ok(()),
        false => Err(SettingError::Unknown {
            name: name.to_owned(),
            nearest: nearest(key, words),
        }),
    }
}

/// Names of the parameters of a launch's kernel. Empty if it cannot be compiled: the bench says why.
fn parameters(module: &Module, launch: &Launch) -> Vec<String> {
    let entry = match &launch.entry {
        Some(name) => module.entry(name),
        None => module.entries.first(),
    };
    let program = entry.and_then(|entry| entry.program().as_ref().ok());
    let params = program.map(|program| program.requirements().params.iter());
    params.map_or_else(Vec::new, |params| params.map(|param| param.name.clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::dtype::Dtype;

    fn saxpy() -> Scenario {
        Scenario::find("saxpy").expect("a built-in scenario")
    }

    fn says(name: &str, value: &str) -> String {
        apply(&mut saxpy(), name, value).unwrap_err().to_string()
    }

    #[test]
    fn sizes_change_in_all_launches_or_in_one() {
        let mut scenario = saxpy();
        scenario.launches.push(scenario.launches[0].clone());
        apply(&mut scenario, "block", "16x4").unwrap();
        apply(&mut scenario, "launch[1].grid", "3").unwrap();
        apply(&mut scenario, "launch[0].dynamic_shared_bytes", "512").unwrap();
        apply(&mut scenario, "cluster", "2").unwrap();
        let of = |n: usize| (&scenario.launches[n].grid, &scenario.launches[n].block);
        assert_eq!(of(0), (&[40, 1, 1], &[16, 4, 1]));
        assert_eq!(of(1), (&[3, 1, 1], &[16, 4, 1]));
        let [first, second] = &scenario.launches[..] else {
            panic!("two launches")
        };
        assert_eq!((first.dynamic_shared_bytes, second.dynamic_shared_bytes), (512, 0));
        assert_eq!(second.cluster, Some([2, 1, 1]));
    }

    #[test]
    fn scalar_changes_by_index_and_by_the_name_of_its_parameter() {
        let mut scenario = saxpy();
        apply(&mut scenario, "saxpy_param_0", "77").unwrap();
        apply(&mut scenario, "args[1]", "1.5").unwrap();
        let args = &scenario.launches[0].args;
        assert_eq!(args[0], Arg::Scalar(Dtype::I32, 77i32.to_le_bytes().to_vec()));
        assert_eq!(args[1], Arg::Scalar(Dtype::F32, 1.5f32.to_le_bytes().to_vec()));
    }

    #[test]
    fn setting_that_later_ones_replace_is_refused() {
        let mut scenario = saxpy();
        let says = |scenario: &Scenario, settings: &[&str]| {
            check_effects(scenario, settings).map_err(|error| error.to_string())
        };
        let text =
            "`block` has no effect: `launch[0].block` gives the same launch its own value; leave out one of the two";
        assert_eq!(says(&scenario, &["block", "launch[0].block"]), Err(text.to_owned()));
        let late = says(&scenario, &["launch[0].block", "block"]).unwrap_err();
        assert!(late.starts_with("`launch[0].block` has no effect: `block`"), "{late}");
        assert!(says(&scenario, &["args[1]", "args[01]"]).is_err());
        // Parameter 0 of the kernel is args[0].
        let twice = says(&scenario, &["args[0]", "saxpy_param_0"]).unwrap_err();
        assert!(twice.starts_with("`args[0]` has no effect: `saxpy_param_0`"), "{twice}");
        let apart = ["block", "launch[0].grid", "args[0]", "saxpy_param_1", "max_registers"];
        assert_eq!(says(&scenario, &apart), Ok(()));
        // The other launch takes the common value.
        scenario.launches.push(scenario.launches[0].clone());
        assert_eq!(says(&scenario, &["block", "launch[0].block"]), Ok(()));
        let both = ["block", "launch[0].block", "launch[1].block"];
        assert_eq!(says(&scenario, &both), Err(text.to_owned()));
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_remedy() {
        assert!(says("blok", "32").ends_with("did you mean `block`?"));
        assert!(says("saxpy_param_9", "1").contains("did you mean `saxpy_param_0`?"));
        assert!(says("block", "0").contains("`block` cannot be `0`; write one to three sizes"));
        assert!(says("block", "1x2x3x4").contains("`block` cannot be"));
        assert!(says("max_registers", "15").contains("write a number of registers from 16 to 255"));
        assert!(apply(&mut saxpy(), "max_registers", "16").is_ok());
        assert!(says("args[0]", "1.5").contains("write a number of the type i32"));
        assert!(says("args[2]", "1").contains("`args[2]` is no scalar argument of saxpy"));
        assert!(says("saxpy_param_2", "1").contains("only scalars"));
        assert!(says("launch[1].block", "32").contains("the scenario has 1 launch, counted from 0"));
    }
}
