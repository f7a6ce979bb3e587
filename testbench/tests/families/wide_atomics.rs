//! 128-bit exchanges in every state space, and compare-and-swaps in global memory and in shared memory of the cluster.

use super::Kernel;

/// A kernel that defines `%q0` as the pair (%t + 1, %t + 1000), and `%at` as an address in the state space. Its result is `%q1`.
fn kernel(space: &str, address: &str, blocks: u32, body: &str) -> String {
    let cluster = format!(".explicitcluster .reqnctapercluster {blocks}, 1, 1");
    format!(
        ".version 8.6\n.target sm_90\n.address_size 64\n.entry k(.param .u64 a, .param .u64 out) {cluster} {{\n\
         .reg .b32 %t, %rank, %far, %s;\n.reg .b64 %p, %o, %x, %y, %g, %h;\n.reg .b128 %q<4>;\n.reg .pred %first, %same;\n\
         .shared .align 16 .b8 word[16];\n\
         mov.u32 %t, %tid.x;\nmov.u32 %rank, %cluster_ctarank;\nld.param.u64 %p, [a];\nld.param.u64 %o, [out];\n\
         mov.u32 %s, word;\nmapa.shared::cluster.u32 %far, %s, 0;\ncvta.shared.u64 %g, word;\nmapa.u64 %h, %g, 0;\n\
         setp.eq.u32 %first, %t, 0;\nld.global.b128 %q1, [%p];\n@%first st.shared.b128 [word], %q1;\n\
         barrier.cluster.arrive;\nbarrier.cluster.wait;\n\
         mad.lo.u32 %t, %rank, 32, %t;\ncvt.u64.u32 %x, %t;\nadd.u64 %y, %x, 1000;\nadd.u64 %x, %x, 1;\nmov.b128 %q0, {{%x, %y}};\n\
         {}\nmad.wide.u32 %o, %t, 16, %o;\nst.global.b128 [%o], %q1;\n\
         barrier.cluster.arrive;\nbarrier.cluster.wait;\nret;\n}}\n",
        body.replace("SPACE", space).replace("AT", address)
    )
}

/// State spaces with an address of the word. The last three reach the word of the first block.
const SPACES: [(&str, &str); 7] = [
    (".global", "%p"),
    ("", "%p"),
    (".shared", "word"),
    (".shared::cta", "%s"),
    ("", "%g"),
    (".shared::cluster", "%far"),
    ("", "%h"),
];

fn words(low: u64, high: u64) -> [u32; 4] {
    [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32]
}

const START: [u32; 4] = [0xdead_beef, 7, 0x8000_0000, 0xffff_ffff];

/// The value of thread `t`.
fn own(t: u64) -> [u32; 4] {
    words(t + 1, t + 1000)
}

/// Lanes take effect in their order, so each one gets the value of the lane before it.
#[test]
fn exchange_returns_the_value_of_the_lane_before() {
    let before = |t: u64| t.checked_sub(1).map_or(START, own);
    let expected: Vec<u32> = (0..32).flat_map(before).collect();
    for (space, at) in SPACES {
        for order in ["", ".relaxed.gpu", ".acq_rel.cluster"] {
            let text = kernel(space, at, 1, &format!("atom{order}SPACE.exch.b128 %q1, [AT], %q0;"));
            Kernel::of(&text).input(&START).output(&expected).holds();
        }
    }
}

/// Half of the lanes compare with the word, the others with a value that differs from it in one bit of the upper half.
#[test]
fn compare_and_swap_compares_all_128_bits() {
    let body = "mov.b128 {%x, %y}, %q1;\nand.b32 %s, %t, 1;\nsetp.ne.u32 %same, %s, 0;\nxor.b64 %h, %y, 0x4000000000000000;\n\
                selp.b64 %y, %y, %h, %same;\nmov.b128 %q2, {%x, %y};\natom.global.cas.b128 %q1, [%p], %q2, %q0;";
    // Lane 0 differs. Lane 1 swaps, so no later lane finds the first value.
    let expected: Vec<u32> = (0..32).flat_map(|t| if t < 2 { START } else { own(1) }).collect();
    let text = kernel("", "", 1, body);
    Kernel::of(&text).changed(&START, &own(1)).output(&expected).holds();
}

/// Each thread adds 1 to the lower half and its number to the upper half. A torn update would lose one of them.
#[test]
fn compare_and_swap_loops_of_several_blocks_lose_no_update() {
    let body = "cvt.u64.u32 %x, %t;\nmov.b64 %y, 0;\nmov.b128 %q1, {%y, %y};\n\
                again:\nmov.b128 %q2, %q1;\nmov.b128 {%y, %o}, %q1;\nadd.u64 %y, %y, 1;\nadd.u64 %o, %o, %x;\nmov.b128 %q3, {%y, %o};\n\
                atomSPACE.cas.b128 %q1, [AT], %q2, %q3;\nmov.b128 {%y, %o}, %q1;\nmov.b128 {%g, %h}, %q2;\n\
                setp.ne.u64 %same, %y, %g;\n@%same bra again;\nsetp.ne.u64 %same, %o, %h;\n@%same bra again;\n\
                barrier.cluster.arrive;\nbarrier.cluster.wait;\nld.relaxed.gpuSPACE.b128 %q1, [AT];\nld.param.u64 %o, [out];";
    let threads = 64;
    let total = words(threads, threads * (threads - 1) / 2);
    let expected: Vec<u32> = (0..threads).flat_map(|_| total).collect();
    for (space, at) in [(".global", "%p"), (".shared::cluster", "%far")] {
        let text = kernel(space, at, 2, body);
        Kernel::of(&text).sizes(2, 32).input(&[0; 4]).output(&expected).holds();
    }
}
