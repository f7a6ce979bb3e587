//! A kernel of one warp whose every cycle follows from the preset `tiny` by hand.
//!
//! The warp starts in cycle s. A fetch takes 4 cycles, one starts per cycle, and the buffer has 3 entries. Latencies are 14 (S2R),
//! 4 (MOV, LOP3) and 5 (IMAD). Two issues to the INT pipe are 2 cycles apart.
//!
//! | row | fetched | issued | because | stored |
//! |---|---|---|---|---|
//! | 0 S2R | s | s+4 | first instruction | s+17 |
//! | 1 MOV | s+1 | s+5 | next | s+8 |
//! | 2 MOV | s+2 | s+7 | the INT pipe was taken in s+6 | s+10 |
//! | 3 IMAD | s+4, as row 0 left the buffer | s+18 | needs row 0 | s+22 |
//! | 4 LOP3 | s+5 | s+23 | needs row 3 | s+26 |
//! | 5 ST | s+7 | s+27 | needs row 4 | s+33: taken by the LSU in s+29, L1 told to drop its lines, packet in s+31, box back |
//! | 6 EXIT | s+18 | s+28 | next | at issue |

use super::{ALWAYS, picture, scenario};
use warpwave::bench::Run;
use warpwave::watch::pipeline::Picture;

const PTX: &str = "
.version 7.8
.target sm_80
.address_size 64
.visible .entry chain(.param .u64 out) {
    .reg .b32 %r<4>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.lo.s32 %r2, %r1, %r1;
    xor.b32 %r3, %r2, 5;
    st.global.u32 [%rd1], %r3;
    ret;
}
";

const TOML: &str = "
ptx = \"kernel.ptx\"
[buffers.out]
dtype = \"u32\"
shape = [1]
init = { fill = 0 }
[[launch]]
grid = 1
block = 32
args = [\"out\"]
";

/// The instructions, as the label and the tooltip show them.
pub const INSTRUCTIONS: [&str; 7] = [
    "S2R R2, SR_TID.X",
    "MOV R0, c[0][0x160]",
    "MOV R1, c[0][0x164]",
    "IMAD.S32 R2, R2, R2, RZ",
    "LOP3.0x3c R2, R2, 0x5, RZ",
    "ST.B32 [R0], R2",
    "EXIT",
];

/// Runs it.
pub fn run() -> (Run, Picture) {
    let folder = tempfile::tempdir().unwrap();
    picture(&scenario(folder.path(), PTX, TOML), ALWAYS)
}
