//! Atomics and memory accesses: new values of a word, addresses of lanes, bytes of registers.

use warpwave_isa::exec::access::{addresses, copy_destinations, load_words, store_bytes};
use warpwave_isa::exec::atomic::{self, AtomicUnit};
use warpwave_isa::exec::special::WarpContext;
use warpwave_isa::exec::{Operands, guard, predicate_sources};
use warpwave_isa::inst::{AtomOp, Inst, Ty};
use warpwave_isa::lane::{LaneMask, Lanes};
use warpwave_isa::program::Decoded;
use warpwave_isa::reg::Special;
use warpwave_isa::space::Access;

fn atomic(op: AtomOp, ty: Ty, old: u128, operand: u128, compare: u128) -> u128 {
    let [global, shared] =
        [AtomicUnit::L2, AtomicUnit::Shared].map(|unit| atomic::atomic(unit, op, ty, old, operand, compare));
    assert_eq!(global, shared, "{op:?} of {ty:?}");
    global
}

#[test]
fn integer_atomics_follow_the_ptx_definitions() {
    use AtomOp::*;
    let u32_cases = [
        (Add, 0xffff_ffff, 1, 0),
        (Min, 5, 0xffff_fffe, 5),
        (Max, 5, 0xffff_fffe, 0xffff_fffe),
        (Inc, 4, 5, 5),
        (Inc, 5, 5, 0),
        (Inc, 9, 5, 0),
        (Dec, 0, 5, 5),
        (Dec, 3, 5, 2),
        (Dec, 5, 5, 4),
        (Dec, 6, 5, 5),
        (And, 0xf0f0, 0xff00, 0xf000),
        (Or, 0xf0f0, 0xff00, 0xfff0),
        (Xor, 0xf0f0, 0xff00, 0x0ff0),
        (Exch, 1, 2, 2),
    ];
    for (op, old, operand, new) in u32_cases {
        assert_eq!(
            atomic(op, Ty::U32, old, operand, 0),
            new,
            "{op:?} of {old:#x} and {operand:#x}"
        );
    }
    assert_eq!(atomic(Min, Ty::S32, 5, 0xffff_fffe, 0), 0xffff_fffe);
    assert_eq!(atomic(Max, Ty::S64, 5, u64::MAX.into(), 0), 5);
    assert_eq!(atomic(Add, Ty::U64, u64::MAX.into(), 2, 0), 1);
    assert_eq!(atomic(Cas, Ty::U64, 7, 9, 8), 7);
    assert_eq!(atomic(Cas, Ty::U16, 0x8000, 9, 0x8000), 9);
    let wide = 1 << 127 | 7;
    assert_eq!(atomic(Cas, Ty::U128, wide, 9, wide), 9);
    assert_eq!(atomic(Cas, Ty::U128, wide, 9, 7), wide, "the upper halves differ");
    assert_eq!(atomic(Exch, Ty::U128, wide, u128::MAX, 0), u128::MAX);
    // Bits beyond the width of the type are ignored.
    assert_eq!(atomic(Cas, Ty::U32, 7, 9, 0xdead_0000_0007), 9);
}

#[test]
fn float_atomics_add_rounded_to_nearest() {
    let add = |ty, old, operand| atomic(AtomOp::Add, ty, old, operand, 0);
    assert_eq!(add(Ty::F32, 0x3f80_0000, 0x3380_0000), 0x3f80_0000); // 1 + 2^-24: a tie, to even
    assert_eq!(add(Ty::F32, 0x3f80_0001, 0x3380_0000), 0x3f80_0002);
    assert_eq!(add(Ty::F32, 0x7f80_0000, 0xff80_0000), 0x7fff_ffff);
    assert_eq!(
        add(Ty::F64, 1.5f64.to_bits().into(), 0.25f64.to_bits().into()),
        1.75f64.to_bits().into()
    );
    assert_eq!(add(Ty::F16x2, 0x3c00_4000, 0x3c00_bc00), 0x4000_3c00); // 1 + 1 above, 2 - 1 below
    assert_eq!(add(Ty::Bf16x2, 0x3f80_4000, 0x3f80_bf80), 0x4000_3f80);
    assert_eq!(add(Ty::F16, 0x7bff, 0x7bff), 0x7c00);
}

/// PTX ISA, `atom`: "`atom.add.f32` on global memory flushes subnormal inputs and results to sign-preserving zero", on shared memory it
/// does not. `.noftz` of halves keeps them, and so does f64.
#[test]
fn only_f32_addition_on_global_memory_flushes_subnormal_numbers() {
    let add = |ty, old, operand| {
        [AtomicUnit::L2, AtomicUnit::Shared].map(|unit| atomic::atomic(unit, AtomOp::Add, ty, old, operand, 0))
    };
    assert_eq!(add(Ty::F32, 0x0000_0001, 0x0000_0002), [0, 3]);
    assert_eq!(add(Ty::F32, 0x8000_0001, 0x8000_0002), [0x8000_0000, 0x8000_0003]);
    // 2^-126 + 2^-149: the operand counts as zero.
    assert_eq!(add(Ty::F32, 0x0080_0000, 0x0000_0001), [0x0080_0000, 0x0080_0001]);
    // 2^-126 * 1.5 - 2^-126 is the subnormal 2^-127.
    assert_eq!(add(Ty::F32, 0x00c0_0000, 0x8080_0000), [0, 0x0040_0000]);
    assert_eq!(add(Ty::F32, 0x80c0_0000, 0x0080_0000), [0x8000_0000, 0x8040_0000]);
    assert_eq!(add(Ty::F64, 1, 2), [3, 3]);
    assert_eq!(add(Ty::F16, 1, 2), [3, 3]);
    assert_eq!(add(Ty::Bf16, 1, 2), [3, 3]);
    assert_eq!(add(Ty::F16x2, 0x0001_0002, 0x0002_8001), [0x0003_0001, 0x0003_0001]);
}

#[test]
fn addresses_are_base_plus_offset_modulo_the_address_width() {
    let lane_addresses = |text: &str, operands: &Operands| {
        let inst: Inst = text.parse().expect("an instruction");
        addresses(&inst, &Decoded::of(&inst), operands)
    };
    let mut operands = Operands::default();
    operands.words[0] = Lanes(std::array::from_fn(|lane| 0xffff_fff0 + (lane as u32 & 7)));
    operands.words[1] = Lanes::splat(0x12);
    let global = lane_addresses("LD.B32 R0, [R2+0x10]", &operands);
    assert_eq!((global[0], global[7]), (0x13_0000_0000, 0x13_0000_0007));
    assert_eq!(
        lane_addresses("LD.GENERIC.B32 R0, [R2-0x1]", &operands)[1],
        0x12_ffff_fff0
    );
    let shared = lane_addresses("LD.SHARED.B32 R0, [R2+0x10]", &operands);
    assert_eq!((shared[0], shared[7]), (0, 7));
    assert_eq!(lane_addresses("LDC.B32 R0, c[3][R2+0x14]", &operands)[4], 8);
}

#[test]
fn asynchronous_copy_reads_global_and_writes_shared_memory() {
    let inst: Inst = "LDGSTS.B128 R1, [R2+0x40], R4".parse().expect("an instruction");
    let mut operands = Operands::default();
    operands.words[0] = Lanes::splat(0x100); // shared
    operands.words[1] = Lanes::splat(0x2000); // global, low word
    operands.words[2] = Lanes::splat(1);
    assert_eq!(addresses(&inst, &Decoded::of(&inst), &operands)[5], 0x1_0000_2040);
    assert_eq!(copy_destinations(&operands)[5], 0x100);
}

#[test]
fn loaded_elements_fill_registers_by_size_and_sign() {
    let bytes: Vec<u8> = (0..16).map(|n| 0x80 + n).collect();
    let access = |bytes, count, signed| Access { bytes, count, signed };
    assert_eq!(load_words(access(1, 1, false), &bytes[..1]), [0x80, 0, 0, 0]);
    assert_eq!(
        load_words(access(1, 4, true), &bytes[..4]),
        [0xffff_ff80, 0xffff_ff81, 0xffff_ff82, 0xffff_ff83]
    );
    assert_eq!(load_words(access(2, 2, false), &bytes[..4]), [0x8180, 0x8382, 0, 0]);
    assert_eq!(load_words(access(2, 1, true), &bytes[..2]), [0xffff_8180, 0, 0, 0]);
    assert_eq!(
        load_words(access(4, 2, false), &bytes[..8]),
        [0x8382_8180, 0x8786_8584, 0, 0]
    );
    assert_eq!(
        load_words(access(8, 2, false), &bytes),
        [0x8382_8180, 0x8786_8584, 0x8b8a_8988, 0x8f8e_8d8c]
    );
    assert_eq!(
        load_words(access(16, 1, false), &bytes),
        load_words(access(4, 4, false), &bytes)
    );
}

#[test]
fn stored_words_load_back_unchanged() {
    for (bytes, count) in [(1, 1), (1, 4), (2, 2), (4, 1), (4, 4), (8, 1), (8, 2), (16, 1)] {
        let access = Access {
            bytes,
            count,
            signed: false,
        };
        let words = [0x11, 0x22, 0x33, 0x44];
        let stored = store_bytes(access, words);
        let loaded = load_words(access, &stored[..access.total() as usize]);
        assert_eq!(
            loaded[..access.words() as usize],
            words[..access.words() as usize],
            "{access:?}"
        );
    }
}

#[test]
fn guards_and_predicate_sources_read_the_predicate_file() {
    let mut file = [LaneMask::NONE; 7];
    file[2] = LaneMask(0xff);
    let inst: Inst = "@!P2 IADD3.X R0, PT, R1, R2, R3, P2".parse().expect("an instruction");
    assert_eq!(guard(&inst, &file, LaneMask(0x3ff)), LaneMask(0x300));
    assert_eq!(predicate_sources(&inst, &file), [LaneMask(0xff), LaneMask::ALL]);
    let never: Inst = "@!PT EXIT".parse().expect("an instruction");
    assert_eq!(guard(&never, &file, LaneMask::ALL), LaneMask::NONE);
}

#[test]
fn special_registers_of_a_two_dimensional_block() {
    let context = WarpContext {
        block_size: [48, 2, 1],
        first_thread: 32,
        warp: 5,
        clock: 0x1_0000_0002,
        ..WarpContext::default()
    };
    let tid = |lane| [Special::TidX, Special::TidY, Special::TidZ].map(|special| context.word(special, lane));
    assert_eq!(tid(0), [32, 0, 0]);
    assert_eq!(tid(15), [47, 0, 0]);
    assert_eq!(tid(16), [0, 1, 0]);
    let masks = [
        Special::LanemaskEq,
        Special::LanemaskLt,
        Special::LanemaskLe,
        Special::LanemaskGt,
        Special::LanemaskGe,
    ];
    assert_eq!(
        masks.map(|mask| context.word(mask, 31)),
        [0x8000_0000, 0x7fff_ffff, 0xffff_ffff, 0, 0x8000_0000]
    );
    assert_eq!(
        masks.map(|mask| context.word(mask, 0)),
        [1, 0, 1, 0xffff_fffe, 0xffff_ffff]
    );
    assert_eq!(
        [Special::ClockLo, Special::ClockHi].map(|half| context.word(half, 3)),
        [2, 1]
    );
    assert_eq!(context.lanes(Special::LaneId).0[7], 7);
}

#[test]
fn threads_of_a_three_dimensional_block_are_counted_along_x_then_y_then_z() {
    let context = WarpContext {
        block_size: [2, 3, 9],
        ..WarpContext::default()
    };
    let mut lane = 0;
    for z in 0..5 {
        for y in 0..3 {
            for x in 0..2 {
                let tid = [Special::TidX, Special::TidY, Special::TidZ].map(|special| context.word(special, lane));
                assert_eq!(tid, [x, y, z], "lane {lane}");
                lane += 1;
            }
        }
    }
}

#[test]
fn mbarrier_phases_follow_the_ptx_definitions() {
    use warpwave_isa::exec::mbarrier::{bytes, init, is_over, pending};
    let arrive = |state, count: u64, bytes: i32| {
        let operand = count | u64::from(bytes as u32) << 32;
        atomic(AtomOp::Arrive, Ty::U64, u128::from(state), operand.into(), 0) as u64
    };
    // Three arrivals end a phase. The fourth belongs to the next phase.
    let mut state = init(3);
    let seen: Vec<(u32, bool)> = (0..4)
        .map(|_| {
            state = arrive(state, 1, 0);
            (pending(state), is_over(state, 0))
        })
        .collect();
    assert_eq!(seen, [(2, false), (1, false), (3, true), (2, true)]);
    assert!(!is_over(state, 1) && is_over(init(3), 1));
    // Several arrivals at once. The end of the second phase restores the parity of the first.
    assert!(is_over(arrive(arrive(state, 2, 0), 0, 0), 1));
    // Missing bytes keep a phase open after its last arrival, also if bytes arrive before they are expected.
    let waits = arrive(init(1), 1, 4096);
    assert_eq!((pending(waits), bytes(waits), is_over(waits, 0)), (0, 4096, false));
    assert!(is_over(arrive(waits, 0, -4096), 0));
    let early = arrive(init(1), 0, -64);
    assert_eq!((bytes(early), is_over(early, 0)), (-64, false));
    assert!(is_over(arrive(early, 1, 64), 0));
    // Later phases do not wait for a dropped arrival.
    let dropped = atomic(AtomOp::ArriveDrop, Ty::U64, arrive(init(2), 1, 0).into(), 1, 0) as u64;
    assert_eq!((pending(dropped), is_over(dropped, 0)), (1, true));
    assert_eq!(init(0xf_ffff) & 0xf_ffff, 0xf_ffff);
}
