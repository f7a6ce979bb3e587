//! Runs every PTX form of the compiler's list on the machine and on the reference. Both must end alike, with the same results.

use warpwave::bench::{Bench, Options};
use warpwave::lockstep;
use warpwave::scenario::dtype::Dtype;
use warpwave_components::preset;
use warpwave_isa::exec::texture::{AddressMode, TexelOrder, Texture};
use warpwave_isa::inst::Ty;

use super::Kernel;

const LIST: &str = include_str!("../../../hw/ptx/tests/forms.txt");

/// All forms of a line with alternatives.
fn alternatives(line: &str) -> Vec<String> {
    let Some((before, rest)) = line.split_once('<') else {
        return vec![line.to_owned()];
    };
    let (choices, behind) = rest.split_once('>').expect("an alternative is closed");
    let behind = alternatives(behind);
    let all = choices
        .split('|')
        .flat_map(|choice| behind.iter().map(move |tail| format!("{before}{choice}{tail}")));
    all.collect()
}

fn is_image(form: &str) -> bool {
    ["tex", "tld4", "txq", "suq", "suld", "sust"]
        .iter()
        .any(|opcode| form.starts_with(opcode))
}

/// Large enough for the coordinates in registers.
const IMAGE: Texture = Texture {
    base: 0,
    width: 128,
    height: 80,
    depth: 70,
    channel: Ty::U8,
    channels: 1,
    address_mode: AddressMode::Clamp,
    normalized_coords: false,
    linear_filter: false,
    normalized_values: false,
    order: TexelOrder::Rows,
};

/// A kernel of one form. Registers hold small numbers, and `%d1` the address of a buffer. The kernel stores its registers into the
/// buffer, except values that depend on the order of threads.
fn text(form: &str) -> String {
    let in_order = ["atom", "mbarrier"].iter().any(|opcode| form.starts_with(opcode));
    // With one value in all threads, sums are exact in any order, and the last of several stores is like the first.
    let alike = ["atom", "red.", "sust"].iter().any(|opcode| form.starts_with(opcode));
    let handle = if is_image(form) {
        "ld.param.u64 %d1, [image];\n"
    } else {
        ""
    };
    let takes_mask = ["match", "redux"].iter().any(|opcode| form.starts_with(opcode));
    let own = if takes_mask {
        "mov.u32 %r3, 0xffffffff;\n"
    } else if form.starts_with("cp.reduce.async.bulk.shared::cluster") {
        // The sums must not fall on the mbarrier.
        "mov.u32 %r4, 4096;\n"
    } else if form.contains("[%d9]") && !form.contains(".shared") && !form.contains(".local") {
        // The data of these forms fill the registers from `%d1` on.
        "mov.u64 %d9, %d1;\n"
    } else if alike || form.contains("[%r") {
        ""
    } else {
        "mad.lo.u32 %r3, %t, 1664525, 7;\n"
    };
    let cluster = if form.contains("cluster") {
        ".explicitcluster .reqnctapercluster 1, 1, 1"
    } else {
        ""
    };
    let set: String = (0..16)
        .map(|n| {
            format!(
                "mov.u32 %r{n}, {};\nmov.u64 %d{n}, 256;\nmov.u16 %h{n}, {};\n",
                64,
                16 * n + 3
            )
        })
        .collect();
    let words: String = (1..9)
        .map(|n| format!("st.global.u32 [%o+{}], %r{n};\n", 4 * n))
        .collect();
    let stores = format!(
        "{words}st.global.u16 [%o+40], %h1;\nst.global.u64 [%o+48], %d2;\nselp.u32 %r1, 1, 0, %p1;\nselp.u32 %r2, 2, 0, %p2;\n\
         or.b32 %r1, %r1, %r2;\nst.global.u32 [%o+56], %r1;\n"
    );
    format!(
        ".version 8.6\n.target sm_90a\n.address_size 64\n.entry k(.param .u64 param, .param .u64 image) {cluster} {{\n\
         .reg .pred %p<8>;\n.reg .b8 %b<4>;\n.reg .b16 %h<16>;\n.reg .b32 %r<16>, %t;\n.reg .b64 %d<16>, %o;\n.reg .b128 %q<4>;\n\
         .shared .align 1024 .b8 buffer[8192];\n{set}mov.u32 %t, %tid.x;\nsetp.gt.u32 %p1, %t, 70;\nsetp.lt.u32 %p2, %t, 9;\nsetp.eq.u32 %p3, %t, 20;\n\
         ld.param.u64 %d1, [param];\nmad.wide.u32 %o, %t, 64, %d1;\nadd.u64 %o, %o, 16384;\n{own}{handle}{form}\n{}ret;\n}}\n",
        if in_order { "" } else { &stores }
    )
}

/// How a form ends on both. An error if they differ.
fn end(form: &str) -> Result<String, String> {
    let kernel = Kernel::of(&text(form)).sizes(1, 128).input(&vec![0; 16384]);
    let texels = if is_image(form) { 128 * 80 * 70 } else { 16 };
    let kernel = kernel.image(Dtype::U8, (0..texels).map(|n| (n % 251) as u8).collect(), IMAGE);
    let config = preset::load("tiny", &[]).unwrap().config;
    let mut bench = Bench::new(&kernel.0, config).map_err(|error| error.to_string())?;
    let reference = lockstep::reference(&bench, 100_000);
    let options = Options {
        threads: 1,
        max_cycles: Some(200_000),
    };
    let run = bench.run(options, &mut |_| true);
    match (reference, run.stopped) {
        (Ok(memory), None) => match lockstep::difference(&bench, &memory) {
            None => Ok("ended".to_owned()),
            Some(difference) => Err(difference.to_string()),
        },
        (Err(_), Some(_)) => Ok("stopped".to_owned()),
        (reference, stopped) => Err(format!(
            "without time: {:?}, on the machine: {stopped:?}",
            reference.err().map(|(_, error)| error.to_string())
        )),
    }
}

/// Every form of the list that runs. Forms with `%nwarpid` are excluded: the reference has no warp slots.
pub(super) fn listed_forms() -> Vec<String> {
    let (run, _) = LIST.split_once("==== refused").expect("two parts");
    let lines = run.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .flat_map(alternatives)
        .filter(|form| !form.contains("%nwarpid"))
        .collect()
}

#[test]
fn every_listed_form_gives_the_same_on_machine_and_reference() {
    let forms = listed_forms();
    let ends: Vec<_> = forms.iter().map(|form| (form, end(form))).collect();
    let faults: Vec<String> = ends
        .iter()
        .filter_map(|(form, end)| Some(format!("{form}: {}", end.as_ref().err()?)))
        .collect();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    // Forms that stop: tensor maps of zeros, copies to an absent CTA, unbound textures, a trap, barriers without other arrivals, barrier 64.
    // An arrival at an mbarrier of zeros exceeds its count.
    let stopped = ends
        .iter()
        .filter(|(form, end)| end.as_deref() == Ok("stopped") && !form.starts_with("mbarrier.arrive"));
    let (maps, others): (Vec<_>, Vec<_>) = stopped.partition(|(form, _)| form.contains(".tensor."));
    println!(
        "{} forms, {} and {} of them stopped",
        forms.len(),
        maps.len(),
        others.len()
    );
    // 10 lines, and 8 reductions in one more. The prefetch reads no map.
    assert_eq!(maps.len(), 18, "{maps:?}");
    assert!(others.len() < 16, "{others:?}");
}
