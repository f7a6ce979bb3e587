//! A user may set any number of a GPU to anything: it is refused in a sentence, or the machine is built.

use warpwave_components::gpu::Gpu;
use warpwave_components::preset;

/// Bytes of L2 beyond which a machine is only checked: to build it would take as many of the host's.
const LARGE_L2: u32 = 1 << 26;

#[test]
fn any_number_is_refused_or_a_machine_is_built_with_it() {
    let (mut built, mut refused) = (0, 0);
    for number in preset::load("tiny", &[]).expect("a built-in preset").sources {
        for value in [1u64, 2, 3, 16, 64, 256, 1024, 65_535, 65_536, 65_537, 1 << 32, 1 << 62] {
            match preset::load("tiny", &[(number.key.clone(), value.to_string())]) {
                Ok(preset) if preset.config.l2.size <= LARGE_L2 => {
                    drop(Gpu::new(preset.config));
                    built += 1;
                }
                Ok(_) => {}
                Err(_) => refused += 1,
            }
        }
    }
    assert!(built > 200 && refused > 200, "{built} built, {refused} refused");
}
