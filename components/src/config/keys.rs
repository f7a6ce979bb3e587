//! A configuration as a flat table: dotted key to value, `sm.lsu.queue_depth` to 4.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::GpuConfig;

/// Every value of `config` except its name, by dotted key.
pub(crate) fn flatten(config: &GpuConfig) -> BTreeMap<String, Value> {
    let table = Table::try_from(config).expect("a configuration is made of integers and names");
    let mut flat = BTreeMap::new();
    flatten_into(&mut flat, "", table);
    flat.remove("name");
    flat
}

fn flatten_into(flat: &mut BTreeMap<String, Value>, prefix: &str, table: Table) {
    for (key, value) in table {
        let key = join(prefix, &key);
        match value {
            Value::Table(inner) => flatten_into(flat, &key, inner),
            leaf => drop(flat.insert(key, leaf)),
        }
    }
}

/// `prefix.key`, or `key` at the top.
pub(crate) fn join(prefix: &str, key: &str) -> String {
    if prefix.is_empty() {
        key.to_owned()
    } else {
        format!("{prefix}.{key}")
    }
}

/// Inverse of [`flatten`]: the nested table of the dotted keys.
pub(crate) fn nest(flat: impl IntoIterator<Item = (String, Value)>) -> Table {
    let mut root = Table::new();
    for (key, value) in flat {
        let (parents, leaf) = key.rsplit_once('.').unwrap_or(("", &key));
        let mut table = &mut root;
        for parent in parents.split('.').filter(|part| !part.is_empty()) {
            table = table
                .entry(parent)
                .or_insert_with(|| Value::Table(Table::new()))
                .as_table_mut()
                .expect("no key is both a value and a table");
        }
        table.insert(leaf.to_owned(), value);
    }
    root
}
