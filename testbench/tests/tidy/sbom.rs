//! The software bill of materials that `.ci/sbom` prints, against Cargo.lock and the manifest of the program.

use std::collections::HashMap;
use std::process::{Command, Stdio};

use serde_json::Value;
use toml::Table;

use crate::root;

/// The output of `.ci/sbom`. `None` where Python 3.11 is missing.
fn sbom() -> Option<String> {
    let has_python = Command::new("python3")
        .args(["-c", "import tomllib"])
        .stderr(Stdio::null())
        .status();
    if !has_python.is_ok_and(|status| status.success()) {
        println!("skipped: .ci/sbom needs Python 3.11");
        return None;
    }
    let output = Command::new(root().join(".ci/sbom"))
        .env("CARGO", env!("CARGO"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

fn table(path: &str) -> Table {
    std::fs::read_to_string(root().join(path)).unwrap().parse().unwrap()
}

/// Checksums of Cargo.lock, by name and version.
fn locked() -> HashMap<(String, String), String> {
    let lock = table("Cargo.lock");
    let packages = lock["package"].as_array().unwrap().iter();
    let text = |package: &toml::Value, key| package.get(key)?.as_str().map(str::to_owned);
    packages
        .filter_map(|package| {
            let key = (text(package, "name")?, text(package, "version")?);
            Some((key, text(package, "checksum")?))
        })
        .collect()
}

#[test]
fn bill_of_materials_has_every_dependency_with_its_checksum_and_licence() {
    let Some(text) = sbom() else { return };
    let bill: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&bill["bomFormat"], &bill["specVersion"]),
        (&"CycloneDX".into(), &"1.5".into())
    );
    assert_eq!(bill["metadata"]["component"]["name"], "warpwave");
    let locked = locked();
    let mut scopes = HashMap::new();
    for component in bill["components"].as_array().unwrap() {
        let [name, version] = ["name", "version"].map(|key| component[key].as_str().unwrap().to_owned());
        assert_eq!(component["purl"], format!("pkg:cargo/{name}@{version}"));
        let licence = component["licenses"][0]["expression"].as_str();
        assert!(
            licence.is_some_and(|licence| !licence.contains('/')),
            "{name}: {licence:?}"
        );
        let checksum = component["hashes"][0]["content"].as_str();
        let is_own = name.starts_with("warpwave");
        assert_eq!(checksum.is_none(), is_own, "{name} has a checksum");
        assert_eq!(
            checksum,
            locked.get(&(name.clone(), version)).map(String::as_str),
            "{name}"
        );
        scopes.insert(name, component["scope"].as_str().unwrap().to_owned());
    }
    let manifest = table("testbench/Cargo.toml");
    // The bill lists what a build without features ships.
    let is_optional = |dependency: &toml::Value| dependency.get("optional") == Some(&true.into());
    for (name, dependency) in manifest["dependencies"].as_table().unwrap() {
        if is_optional(dependency) {
            continue;
        }
        assert_eq!(scopes.get(name).map(String::as_str), Some("required"), "{name}");
    }
    // Only tests read waveforms.
    assert_eq!(scopes["wellen"], "excluded");
    assert_eq!(sbom().as_deref(), Some(&*text), "a second call");
}

/// True if `allowed` has a licence for each part of an SPDX expression, which may use `AND`, `OR` and one level of parentheses.
fn is_permitted(expression: &str, allowed: &[String]) -> bool {
    let is_listed = |licence: &str| allowed.iter().any(|one| one == licence.trim());
    let is_choice = |part: &str| part.split(" OR ").any(is_listed);
    expression
        .split(" AND ")
        .all(|part| is_choice(part.trim().trim_matches(['(', ')'])))
}

/// `cargo deny` checks the same list where it is installed. This test needs Python alone.
#[test]
fn every_dependency_has_a_licence_of_the_list() {
    let Some(text) = sbom() else { return };
    let allowed: Vec<String> = table(".deny.toml")["licenses"]["allow"].clone().try_into().unwrap();
    let bill: Value = serde_json::from_str(&text).unwrap();
    for component in bill["components"].as_array().unwrap() {
        let licence = component["licenses"][0]["expression"].as_str().unwrap();
        assert!(is_permitted(licence, &allowed), "{}: {licence}", component["name"]);
    }
    // The rule finds an offence.
    for refused in ["GPL-3.0", "MIT AND GPL-3.0", "(GPL-3.0 OR AGPL-3.0) AND MIT"] {
        assert!(!is_permitted(refused, &allowed), "{refused}");
    }
}
