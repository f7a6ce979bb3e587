//! A user may set any number of a GPU to anything: it is refused in a sentence, or the machine is built.

use std::panic::catch_unwind;

use warpwave_components::gpu::Gpu;
use warpwave_components::preset;

/// Bytes of L2 beyond which a machine is only checked: to build it would take as many of the host's.
const LARGE_L2: u32 = 1 << 26;

/// Beside these, the numbers below 17 are tried, and those around the preset's own.
const VALUES: [u64; 14] = [
    31,
    32,
    33,
    63,
    64,
    127,
    255,
    256,
    1024,
    65_535,
    65_536,
    u32::MAX as u64,
    1 << 32,
    u64::MAX,
];

/// What is tried of a number that a preset has: a list of one element stands for a list.
fn tried(own: &str) -> Vec<String> {
    let is_list = own.starts_with('[');
    let own: u64 = own.trim_matches(['[', ']']).parse().unwrap_or(0);
    let around = [own / 2, own.saturating_sub(1), own + 1, own * 2, own * 16];
    let values = (0..17).chain(VALUES).chain(around);
    values
        .map(|value| match is_list {
            true => format!("[{value}]"),
            false => value.to_string(),
        })
        .collect()
}

/// Why the machine is refused with this number; nothing if it was built.
fn refusal(key: &str, value: &str) -> Option<String> {
    let set = [(key.to_owned(), value.to_owned())];
    match preset::load("tiny", &set) {
        Err(error) => return Some(error.to_string()),
        Ok(preset) if preset.config.l2.size <= LARGE_L2 => drop(Gpu::new(preset.config)),
        Ok(_) => {}
    }
    None
}

#[test]
fn any_number_is_refused_by_its_name_or_a_machine_is_built_with_it() {
    let (mut built, mut refused) = (0, 0);
    let mut findings = Vec::new();
    for number in preset::load("tiny", &[]).expect("a built-in preset").sources {
        let key = &number.key;
        for value in tried(&number.value) {
            let Ok(refusal) = catch_unwind(|| refusal(key, &value)) else {
                findings.push(format!("{key}={value}: panics"));
                continue;
            };
            let Some(refusal) = refusal else {
                built += 1;
                continue;
            };
            refused += 1;
            let says = ["it must ", "cannot have this value"];
            if !refusal.contains(&format!("`{key}`")) || !says.iter().any(|words| refusal.contains(words)) {
                findings.push(format!("{key}={value}: {refusal}"));
            }
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    assert!(built > 1000 && refused > 1000, "{built} built, {refused} refused");
}

#[test]
fn machine_with_as_many_sub_cores_as_are_allowed_is_built() {
    // `tiny` has clusters, so an SM has its copy engine too. With a size, it has the L1.5 constant cache.
    let sets = [
        ("sm.subcores", "6"),
        ("limits.max_warps_per_sm", "60"),
        ("sm.constant.l15_size", "1024"),
    ];
    let sets = sets.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let preset = preset::load("tiny", &sets).unwrap_or_else(|error| panic!("{error}"));
    let gpu = Gpu::new(preset.config);
    let of_an_sm =
        |component: &&dyn warpwave_hw::component::Component| component.path().as_str().starts_with("gpu.gpc[0].sm[0].");
    assert_eq!(gpu.components().filter(of_an_sm).count(), 6 + 6 * 9);
}
