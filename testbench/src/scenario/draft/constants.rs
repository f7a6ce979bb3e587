//! The named constants of a scenario, and new values for them from outside.

use super::{Draft, Fault, ScenarioError, nearest};
use crate::scenario::format::{self, SIZES};
use crate::scenario::quantity::{Constants, Quantity};

impl Draft {
    /// Replaces the values of named constants. A value is a number or an expression, as in the text.
    ///
    /// ```
    /// use warpwave::scenario::Draft;
    /// let text = "ptx = \"k.ptx\"\nconstants.n = 4\nlaunch = [{ grid = \"n\", block = 32 }]";
    /// let folder = tempfile::tempdir().unwrap();
    /// let path = folder.path().join("s.toml");
    /// std::fs::write(folder.path().join("k.ptx"), "").unwrap();
    /// std::fs::write(&path, text).unwrap();
    /// let draft = Draft::load(&path).unwrap().with_constants(&[("n", "2 ** 4")]).unwrap();
    /// assert_eq!(draft.build(None).unwrap().launches[0].grid, [16, 1, 1]);
    /// ```
    ///
    /// # Errors
    /// If the scenario has no such constant, or if a value is not an expression.
    pub fn with_constants<T: AsRef<str>>(mut self, values: &[(T, T)]) -> Result<Draft, ScenarioError> {
        for (name, value) in values {
            let name = name.as_ref();
            let key = format!("constants.{name}");
            let fault = |fault| ScenarioError::new(&self.shown, &key, fault);
            let quantity = Quantity::parse(value.as_ref()).map_err(|error| fault(error.into()))?;
            // A misspelt name must not add a constant that nothing uses.
            if !self.file.constants.contains_key(name) {
                return Err(fault(Fault::UnknownConstant {
                    nearest: nearest(name, self.file.constants.keys().map(String::as_str)),
                    known: self.file.constants.keys().cloned().collect(),
                }));
            }
            self.file.constants.insert(name.to_owned(), quantity);
        }
        Ok(self)
    }

    /// Checks the constants that a sweep varies: a column `block` of its table must be the block of a launch.
    ///
    /// # Errors
    /// If the name of a constant promises a launch size that no launch takes from it.
    pub fn check_axes<'n>(&self, mut constants: impl Iterator<Item = &'n str>) -> Result<(), ScenarioError> {
        let fault = |name: &str| {
            let fault = Fault::ConstantIsNoSize { name: name.to_owned() };
            ScenarioError::new(&self.shown, &format!("constants.{name}"), fault)
        };
        let refused = constants.find(|name| self.is_size_without_launch(name));
        refused.map_or(Ok(()), |name| Err(fault(name)))
    }

    /// True for a constant with the name of a launch size that no launch computes from it.
    fn is_size_without_launch(&self, name: &str) -> bool {
        let is_free = |launch: &format::Launch| !self.uses(&launch.sizes(name), name);
        match name {
            "max_registers" => !self.uses(&self.file.max_registers.iter().collect::<Vec<_>>(), name),
            _ => SIZES.contains(&name) && self.file.launch.iter().all(is_free),
        }
    }

    /// True if one of the quantities depends on the constant, directly or through other constants.
    fn uses(&self, quantities: &[&Quantity], constant: &str) -> bool {
        let mut open: Vec<_> = quantities.iter().flat_map(|quantity| quantity.names()).collect();
        let mut seen = Vec::new();
        while let Some(name) = open.pop() {
            if name == constant {
                return true;
            }
            // Constants may form a circle: the error of one comes later.
            if !seen.contains(&name) {
                seen.push(name);
                open.extend(self.file.constants.get(name).into_iter().flat_map(Quantity::names));
            }
        }
        false
    }

    /// Names and texts of the named constants, sorted.
    pub fn constants(&self) -> Vec<(String, String)> {
        let text = |(name, quantity): (&String, &Quantity)| (name.clone(), quantity.to_string());
        self.file.constants.iter().map(text).collect()
    }

    /// The value of each named constant as text, if the texts of some are replaced. `None` if one of them has no value.
    pub fn constant_values(&self, replaced: &[(String, String)]) -> Option<Vec<(String, String)>> {
        let mut table = self.file.constants.clone();
        for (name, text) in replaced {
            table.insert(name.clone(), Quantity::parse(text).ok()?);
        }
        let values = Constants::new(&table).ok()?.into_values();
        Some(
            values
                .into_iter()
                .map(|(name, value)| (name, value.to_string()))
                .collect(),
        )
    }
}

/// Evaluates the constants. None may have the name of a buffer.
pub(super) fn evaluate(file: &format::ScenarioFile) -> Result<Constants, (String, Fault)> {
    let both = file.constants.keys().find(|name| file.buffers.contains_key(*name));
    match both {
        Some(name) => Err((name.clone(), Fault::ConstantIsBuffer)),
        None => Constants::new(&file.constants),
    }
}
