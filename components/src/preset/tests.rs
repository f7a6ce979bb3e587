//! Loading presets: inheritance, changes by `--set`, sources, and the text of each error.

use tempfile::TempDir;

use super::*;
use crate::config::SchedulerPolicy;
use crate::occupancy::occupancy;

/// Writes a file. Returns its path.
fn write(folder: &TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn set(key: &str, value: &str) -> Vec<(String, String)> {
    vec![(key.to_owned(), value.to_owned())]
}

/// A number of the preset, by key.
fn sourced<'a>(preset: &'a Preset, key: &str) -> &'a SourcedValue {
    preset.sources.iter().find(|sourced| sourced.key == key).unwrap()
}

/// Text of the error when the file `text` is loaded, without the folder's name.
fn refused(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = write(&folder, "mine.toml", text);
    let error = load(&path, &[]).unwrap_err().to_string();
    let shown = fs::canonicalize(&path).unwrap().display().to_string();
    error.replace(&shown, "mine.toml").replace(&path, "mine.toml")
}

#[test]
fn every_built_in_preset_loads_under_its_own_name() {
    for name in names() {
        let preset = load(name, &[]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(preset.config.name, name);
        assert!(!preset.summary.is_empty(), "{name} has no summary");
    }
}

#[test]
fn every_number_of_every_preset_has_a_known_source() {
    let titles = source_titles();
    for name in names() {
        let preset = load(name, &[]).unwrap();
        let keys: Vec<_> = preset.sources.iter().map(|sourced| sourced.key.clone()).collect();
        assert_eq!(
            keys,
            keys::flatten(&preset.config).into_keys().collect::<Vec<_>>(),
            "{name}"
        );
        for SourcedValue { key, source, .. } in &preset.sources {
            assert!(
                source == ASSUMED || titles.contains_key(source),
                "{name}: {key}: {source}"
            );
        }
    }
}

#[test]
fn every_listed_source_is_used_by_a_preset() {
    let presets: Vec<_> = names().into_iter().map(|name| load(name, &[]).unwrap()).collect();
    for title in source_titles().keys() {
        let named = presets
            .iter()
            .flat_map(|preset| &preset.sources)
            .any(|one| one.source == *title);
        assert!(named, "no preset names {title}");
    }
}

#[test]
fn gpc_layouts_sum_to_the_published_sm_counts() {
    let published = [
        ("tiny", 2),
        ("toy", 1),
        ("m2070", 14),
        ("gtx1080ti", 28),
        ("v100-sxm2", 80),
        ("a100-sxm4-80", 108),
        ("rtx3090", 82),
        ("h100-sxm5", 132),
        ("gh100-full", 144),
        ("b200", 148),
    ];
    for (name, n_sms) in published {
        assert_eq!(load(name, &[]).unwrap().config.n_sms(), n_sms, "{name}");
    }
}

/// Channels x bytes per command cycle x command clock, against GB/s of the data sheets.
#[test]
fn memory_clock_and_bus_give_the_published_bandwidth() {
    let published = [
        ("m2070", 150.3),
        ("gtx1080ti", 484.0),
        ("rtx3090", 936.0),
        ("v100-sxm2", 900.0),
        ("a100-sxm4-80", 2039.0),
        ("h100-pcie", 2039.0),
        ("h100-sxm5", 3352.0),
        ("h200", 4800.0),
        ("b200", 8000.0),
    ];
    for (name, gbs) in published {
        let config = load(name, &[]).unwrap().config;
        let bytes = config.hbm.channels * config.hbm.bus_bytes_per_command_cycle;
        let found = f64::from(bytes) * f64::from(config.clocks.memory_khz) * 1e-6;
        assert!((found / gbs - 1.0).abs() < 0.005, "{name}: {found} GB/s");
    }
}

/// SMs x sub-cores x 32 lanes / interval x 2 x core clock, against TFLOPS of the data sheets.
#[test]
fn fp32_and_fp64_intervals_give_the_published_peaks() {
    let published = [
        ("m2070", 1.030, 0.515),
        ("gtx1080ti", 11.34, 0.354),
        ("rtx3090", 35.6, 0.556),
        ("v100-sxm2", 15.7, 7.8),
        ("a100-sxm4-80", 19.5, 9.7),
        ("h100-sxm5", 66.9, 33.5),
        ("b200", 75.0, 37.0),
    ];
    for (name, fp32, fp64) in published {
        let config = load(name, &[]).unwrap().config;
        let issue = f64::from(config.n_sms() * config.sm.subcores) * f64::from(config.clocks.core_khz);
        let peak = |interval: u32| issue * 32.0 / f64::from(interval) * 2.0 * 1e-9;
        let pipes = config.sm.pipes;
        assert!((peak(pipes.fp32.interval) / fp32 - 1.0).abs() < 0.01, "{name}: FP32");
        assert!((peak(pipes.fp64.interval) / fp64 - 1.0).abs() < 0.01, "{name}: FP64");
    }
}

#[test]
fn file_with_base_inherits_key_by_key_and_keeps_sources() {
    let folder = tempfile::tempdir().unwrap();
    write(
        &folder,
        "half.toml",
        "base = \"h100-sxm5\"\n[l2]\nsize = { value = 26_214_400, src = \"assumed\" }",
    );
    let path = write(
        &folder,
        "quarter.toml",
        "base = \"half.toml\"\n[sm.lsu]\nqueue_depth = { value = 8, src = \"huerta25\", grade = \"B\", note = \"twice\" }",
    );
    let preset = load(&path, &[]).unwrap();
    let mut expected = load("h100-sxm5", &[]).unwrap().config;
    expected.name = "quarter".to_owned();
    expected.l2.size = 26_214_400;
    expected.sm.lsu.queue_depth = 8;
    assert_eq!(preset.config, expected);
    let depth = sourced(&preset, "sm.lsu.queue_depth");
    let [value, source, grade, note] = [&depth.value, &depth.source, &depth.grade, &depth.note];
    assert_eq!([value, source, grade, note], ["8", "huerta25", "B", "twice"]);
    let line = sourced(&preset, "l2.line");
    assert_eq!((line.source.as_str(), line.grade.as_str()), ("khairy20", "A"));
}

#[test]
fn files_that_inherit_from_each_other_are_refused_with_the_chain() {
    let folder = tempfile::tempdir().unwrap();
    let a = write(&folder, "a.toml", "base = \"b.toml\"");
    let b = write(&folder, "b.toml", "base = \"a.toml\"");
    let [a, b] = [a, b].map(|path| fs::canonicalize(path).unwrap().display().to_string());
    let error = load(&a, &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("a preset inherits from itself: {a} -> {b} -> {a}")
    );
}

#[test]
fn set_changes_numbers_lists_and_words_and_is_their_source() {
    assert_eq!(
        load("tiny", &set("l2.size", "131_072")).unwrap().config.l2.size,
        131_072
    );
    let carveouts = load("tiny", &set("limits.shared_carveouts", "[16384, 49152]")).unwrap();
    assert_eq!(carveouts.config.limits.shared_carveouts, [16_384, 49_152]);
    for word in ["oldest-first", "\"oldest-first\""] {
        let preset = load("tiny", &set("sm.scheduler", word)).unwrap();
        assert_eq!(preset.config.sm.scheduler, SchedulerPolicy::OldestFirst);
        let scheduler = sourced(&preset, "sm.scheduler");
        assert_eq!((scheduler.source.as_str(), scheduler.grade.as_str()), ("--set", ""));
    }
}

#[test]
fn number_of_bytes_may_have_a_unit() {
    let size = |value: &str| load("tiny", &set("l2.size", value)).map(|preset| preset.config.l2.size);
    assert_eq!(
        [size("128KiB"), size("128 KiB"), size("1MiB")],
        [Ok(131_072), Ok(131_072), Ok(1 << 20)]
    );
    let refused = |key: &str, value: &str| load("tiny", &set(key, value)).unwrap_err().to_string();
    // Neither a number of bytes, nor a whole one, nor one that fits.
    assert!(refused("sm.subcores", "4KiB").contains("string \"4KiB\""));
    assert!(refused("l2.size", "0.5MiB").contains("string \"0.5MiB\""));
    assert!(refused("l2.size", "64GiB").contains("`l2.size` cannot have this value"));
    let text = refused("l2.size", "1 KB");
    assert!(
        text.ends_with("; write a whole number, also with one of the units KiB, MiB, GiB, kB, MB, GB"),
        "{text}"
    );
    assert!(!refused("sm.subcores", "4KiB").contains("units"));
}

#[test]
fn set_of_an_unknown_key_names_the_nearest() {
    let error = load("tiny", &set("lsu.queue_depth", "8")).unwrap_err().to_string();
    let expected = "preset `--set` has 1 fault:\n  `lsu.queue_depth` is not a preset key: \
        did you mean `sm.lsu.queue_depth`, `l2.queue_depth`, `hbm.queue_depth`?";
    assert_eq!(error, expected);
}

#[test]
fn set_of_a_wrong_value_names_key_and_reason() {
    let refused = |key: &str, value: &str| load("tiny", &set(key, value)).unwrap_err().to_string();
    assert_eq!(
        refused("sm.subcores", "many"),
        "preset `tiny` has 1 fault:\n  `sm.subcores` cannot have this value: \
         invalid type: string \"many\", expected a whole number from 0 to 4294967295"
    );
    assert_eq!(
        refused("sm.subcores", "-1"),
        "preset `tiny` has 1 fault:\n  `sm.subcores` cannot have this value: \
         invalid value: integer `-1`, expected a whole number from 0 to 4294967295"
    );
    assert_eq!(
        refused("sm.scheduler", "random"),
        "preset `tiny` has 1 fault:\n  `sm.scheduler` cannot have this value: unknown variant `random`, \
         expected one of `loose-round-robin`, `lrr`, `greedy-then-oldest`, `gto`, `greedy-then-youngest`, `gty`, `oldest-first`"
    );
    assert_eq!(
        refused("hbm.row_policy", "shut"),
        "preset `tiny` has 1 fault:\n  `hbm.row_policy` cannot have this value: unknown variant `shut`, \
         expected one of `open`, `closed`, `timeout`"
    );
}

#[test]
fn unknown_name_names_the_nearest_or_all() {
    let refused = |name: &str| load(name, &[]).unwrap_err().to_string();
    assert_eq!(refused("h100-sxm"), "no preset `h100-sxm`: did you mean `h100-sxm5`?");
    assert_eq!(
        refused("riva128"),
        "no preset `riva128`: the built-in ones are `tiny`, `toy`, `m2070`, `gtx1080ti`, `v100-sxm2`, `a100-sxm4-80`, `rtx3090`, \
         `h100-pcie`, `h100-sxm5`, `gh100-full`, `h200`, `b200`; a file is named by its path, ending in .toml"
    );
    // A folder of this crate, where the tests run.
    assert_eq!(
        refused("src"),
        "no preset `src`, and this is a folder; a preset file is named by its path, ending in .toml"
    );
}

#[test]
fn missing_file_is_named() {
    let error = load("nowhere/mine.toml", &[]).unwrap_err().to_string();
    assert!(error.starts_with("cannot read preset `nowhere/mine.toml`: "), "{error}");
}

#[test]
fn text_that_is_not_toml_is_refused_with_its_line() {
    let error = refused("base = \n");
    assert!(error.starts_with("preset `mine.toml` is not TOML: "), "{error}");
    assert!(error.contains("line 1"), "{error}");
}

#[test]
fn all_faults_of_a_file_are_reported_at_once() {
    let text = r#"
        base = 5
        [sm]
        subcores = 4
        fetch_latency = { value = 4, src = "assumed", grade = "A" }
        branch_latency = { value = 4, src = "jia18" }
        ibuffer_entries = { value = 4, src = "jia18", grade = "D" }
        collector_entries = { value = 4, src = "assumed", comment = "why" }
        register_banks = { value = 4 }
    "#;
    let expected = "preset `mine.toml` has 7 faults:
  `base` cannot have this value: 5 is not a text in quotes
  `sm.branch_latency` has the source `jia18` without a grade: add grade = \"A\", \"B\" or \"C\"
  `sm.collector_entries` cannot have the field `comment`: use value, and the texts src, grade and note
  `sm.fetch_latency` is assumed and has the grade `A`: leave the grade out
  `sm.ibuffer_entries` has the source `jia18` with the grade `D`: it must be A, B or C
  `sm.register_banks` has no source: write { value = .., src = \"assumed\" }, or a source with its grade
  `sm.subcores` has no source: write { value = .., src = \"assumed\" }, or a source with its grade";
    assert_eq!(refused(text), expected);
}

#[test]
fn key_that_no_preset_has_is_refused() {
    let text = "base = \"tiny\"\n[l2]\nslice = { value = 4, src = \"assumed\" }";
    let expected = "preset `mine.toml` has 1 fault:\n  `l2.slice` is not a preset key: did you mean `l2.slices`, `l2.line`, `l2.size`?";
    assert_eq!(refused(text), expected);
}

#[test]
fn file_without_base_must_have_every_key() {
    let Err(PresetError::Entries { faults, .. }) = build("empty", &BTreeMap::new()) else {
        panic!("an empty preset is complete");
    };
    assert_eq!(faults.len(), PATTERN.len());
    assert_eq!(
        faults[0].to_string(),
        "`cc_major` has no value: give it one, or name a `base` that has it"
    );
}

#[test]
fn configuration_that_cannot_be_built_is_refused_with_every_fault() {
    let sets = [set("sm.register_banks", "3"), set("hbm.bank_groups", "3")].concat();
    let expected = "preset `tiny` has 2 faults:
  `sm.register_banks` is 3: it must be a power of two
  `hbm.banks` is 16: it must be a multiple of `hbm.bank_groups` (3)";
    assert_eq!(load("tiny", &sets).unwrap_err().to_string(), expected);
}

#[test]
fn any_value_of_any_key_is_refused_or_has_an_occupancy() {
    for key in PATTERN.keys() {
        for value in [
            "0",
            "1",
            "3",
            "65536",
            "2147483648",
            "4294967295",
            "[]",
            "[0, 4294967295]",
            "word",
        ] {
            if let Ok(preset) = load("tiny", &set(key, value)) {
                let found = occupancy(&preset.config, 256, 21, 1024);
                assert!(found.is_err() || found.is_ok_and(|it| it.blocks > 0), "{key}={value}");
            }
        }
    }
}
