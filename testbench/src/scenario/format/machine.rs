//! The GPU of a scenario, as the text gives it: a name, or a table with settings.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

/// A GPU with changed numbers.
#[derive(Clone, Default)]
pub(in crate::scenario) struct Machine {
    pub name: Option<String>,
    pub set: BTreeMap<String, Setting>,
}

/// The table `[gpu]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MachineTable {
    name: Option<String>,
    #[serde(default)]
    set: BTreeMap<String, Setting>,
}

impl<'de> Deserialize<'de> for Machine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MachineVisitor)
    }
}

struct MachineVisitor;

impl<'de> Visitor<'de> for MachineVisitor {
    type Value = Machine;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name or the file of a GPU, or a table with name and set")
    }

    // The short form: a name without settings.
    fn visit_str<E>(self, name: &str) -> Result<Machine, E> {
        Ok(Machine {
            name: Some(name.to_owned()),
            set: BTreeMap::new(),
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Machine, A::Error> {
        let MachineTable { name, set } = MachineTable::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Machine { name, set })
    }
}

/// The value of a preset key, as `--set` takes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::scenario) struct Setting(pub String);

impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SettingVisitor)
    }
}

struct SettingVisitor;

impl Visitor<'_> for SettingVisitor {
    type Value = Setting;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, true, false or a word")
    }

    fn visit_i64<E>(self, value: i64) -> Result<Setting, E> {
        Ok(Setting(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Setting, E> {
        Ok(Setting(value.to_string()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Setting, E> {
        Ok(Setting(value.to_string()))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Setting, E> {
        Ok(Setting(value.to_owned()))
    }
}
