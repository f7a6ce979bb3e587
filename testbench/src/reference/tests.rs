//! Tests with small programs written by hand, and the memory contents that they must produce.

use std::sync::Arc;

use warpwave_components::proto::launch::TrapKind;
use warpwave_components::storage::Storage;
use warpwave_isa::inst::{AtomOp, Cmp, Inst, Operand, Source, Ty};
use warpwave_isa::opcode::Opcode;
use warpwave_isa::program::{Program, Requirements};
use warpwave_isa::reg::{Guard, Pred, Reg, Special};
use warpwave_isa::space::{Access, LOCAL_WINDOW, SHARED_WINDOW, Space, bank0};

use super::*;

/// The register pair that holds the address of the buffer in every program below.
const BUFFER: Reg = Reg(30);
const WORD: Access = Access::one(4);

fn row(op: Opcode, dst: u8, src: &[Operand]) -> Inst {
    let mut inst = Inst::new(op);
    inst.dst = Reg(dst);
    inst.src[..src.len()].copy_from_slice(src);
    inst
}

fn r(n: u8) -> Operand {
    Operand::reg(Reg(n))
}

fn imm(bits: u64) -> Operand {
    Operand::imm(bits)
}

fn special(dst: u8, special: Special) -> Inst {
    row(Opcode::S2r, dst, &[Operand::plain(Source::Special(special))])
}

fn add(dst: u8, a: Operand, b: Operand) -> Inst {
    row(Opcode::Iadd3, dst, &[a, b])
}

fn mul_add(dst: u8, a: Operand, b: Operand, c: Operand) -> Inst {
    row(Opcode::Imad, dst, &[a, b, c])
}

/// P0 = a cmp b.
fn compare(a: Operand, cmp: Cmp, b: Operand) -> Inst {
    let mut inst = row(Opcode::Isetp, 255, &[a, b]);
    inst.pdst[0] = Pred(0);
    inst.mods.cmp = cmp;
    inst
}

fn memory(op: Opcode, dst: u8, space: Space, src: &[Operand]) -> Inst {
    let mut inst = row(op, dst, src);
    inst.mods.space = space;
    inst.mods.access = WORD;
    inst
}

fn when(mut inst: Inst) -> Inst {
    inst.guard = Guard::when(Pred(0));
    inst
}

fn unless(mut inst: Inst) -> Inst {
    inst.guard = Guard::unless(Pred(0));
    inst
}

fn to(target: u32) -> Inst {
    let mut inst = Inst::new(Opcode::Bra);
    inst.target = target;
    inst
}

/// (R30, R31) = address of the buffer, (dst+1:dst) = that plus 4 a.
fn index(dst: u8, a: u8) -> [Inst; 3] {
    let param = |word: u16| {
        let offset = bank0::PARAMS + 4 * word;
        Operand::plain(Source::Const { bank: 0, offset })
    };
    [
        row(Opcode::Mov, 30, &[param(0)]),
        row(Opcode::Mov, 31, &[param(1)]),
        row(Opcode::ImadWide, dst, &[r(a), imm(4), Operand::reg(BUFFER)]),
    ]
}

fn exit() -> Inst {
    Inst::new(Opcode::Exit)
}

/// Runs `grid` CTAs of `block` threads. Returns the outcome and the words of the buffer after it.
fn run_on(code: Vec<Inst>, grid: u32, block: u32, buffer: &[u32]) -> (Result<u64, ReferenceError>, Vec<u32>) {
    run_until(code, [grid, block], buffer, 1_000_000.into())
}

fn run_until(
    code: Vec<Inst>,
    [grid, block]: [u32; 2],
    buffer: &[u32],
    until: Until,
) -> (Result<u64, ReferenceError>, Vec<u32>) {
    let storage = Storage::new(1 << 20);
    let bytes: Vec<u8> = buffer.iter().flat_map(|word| word.to_le_bytes()).collect();
    let address = storage.allocate(bytes.len() as u64).unwrap();
    storage.write(address, &bytes);
    let mut bank = vec![0; usize::from(bank0::PARAMS) / 4];
    bank.extend([address as u32, (address >> 32) as u32]);
    let needs = Requirements {
        local_bytes: 16,
        ..Requirements::default()
    };
    let grid = Grid {
        id: 0,
        program: Arc::new(Program::new("k", code, needs)),
        grid: [grid, 1, 1],
        block: [block, 1, 1],
        cluster: [1; 3],
        shared_bytes: 1024,
        dynamic_shared_bytes: 0,
        registers: 32,
        allocations: storage.allocations(),
        constants: vec![bank],
        ctas_per_sm: 1,
        textures: Vec::new(),
        local_base: 0,
        l1_bytes: 0,
        timing: Vec::new(),
        predecoded: Arc::default(),
    };
    let mut memory = Memory::of(&storage);
    let outcome = run(&grid, &mut memory, until);
    let bytes = memory.get(address, bytes.len()).unwrap();
    let words = bytes
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes(word.try_into().unwrap()));
    (outcome, words.collect())
}

fn run_to_end(code: Vec<Inst>, grid: u32, block: u32, buffer: &[u32]) -> Vec<u32> {
    let (outcome, words) = run_on(code, grid, block, buffer);
    outcome.unwrap();
    words
}

fn trap_of(code: Vec<Inst>) -> Trap {
    match run_on(code, 2, 40, &[0; 4]).0 {
        Err(ReferenceError::Trap(trap)) => *trap,
        other => panic!("a trap, not {other:?}"),
    }
}

#[test]
fn every_thread_stores_its_index() {
    let mut code = vec![
        special(0, Special::TidX),
        special(1, Special::CtaidX),
        mul_add(2, r(1), imm(48), r(0)),
    ];
    code.extend(index(4, 2));
    code.extend([memory(Opcode::St, 255, Space::Global, &[r(4), r(2)]), exit()]);
    assert_eq!(
        run_to_end(code.clone(), 3, 48, &[9; 145])[..144],
        (0..144).collect::<Vec<_>>()
    );
    // 8 instructions by 2 warps of 3 CTAs.
    assert_eq!(run_on(code, 3, 48, &[9; 144]).0, Ok(8 * 2 * 3));
}

#[test]
fn block_reverses_its_words_through_shared_memory() {
    let mut code = vec![
        special(0, Special::TidX),
        row(Opcode::Shf, 1, &[r(0), imm(2)]),
        memory(Opcode::St, 255, Space::Shared, &[r(1), r(0)]),
        row(Opcode::Bar, 255, &[imm(0), imm(0)]),
        mul_add(2, r(0), imm(u64::from(-4i32 as u32)), imm(63 * 4)),
        memory(Opcode::Ld, 3, Space::Shared, &[r(2)]),
    ];
    code.extend(index(4, 0));
    code.extend([memory(Opcode::St, 255, Space::Global, &[r(4), r(3)]), exit()]);
    assert_eq!(run_to_end(code, 1, 64, &[0; 64]), (0..64).rev().collect::<Vec<_>>());
}

#[test]
fn diverged_lanes_run_their_own_side_of_a_branch() {
    let mut code = vec![special(0, Special::TidX), compare(r(0), Cmp::Lt, imm(5)), when(to(4))];
    code.extend([row(Opcode::Mov, 3, &[imm(7)])]); // 3
    code.extend([when(row(Opcode::Mov, 3, &[imm(9)]))]); // 4
    code.extend(index(4, 0));
    code.extend([memory(Opcode::St, 255, Space::Global, &[r(4), r(3)]), exit()]);
    let expected: Vec<u32> = (0..32).map(|lane| if lane < 5 { 9 } else { 7 }).collect();
    assert_eq!(run_to_end(code, 1, 32, &[0; 32]), expected);
}

#[test]
fn atomic_increments_count_all_threads_and_return_each_value_once() {
    let mut code = vec![row(Opcode::Mov, 0, &[imm(0)])];
    code.extend(index(4, 0));
    let mut count = memory(Opcode::Atom, 3, Space::Global, &[r(4), imm(1)]);
    count.mods.atom = AtomOp::Add;
    code.extend([count, add(3, r(3), imm(1))]);
    code.extend(index(6, 3));
    code.extend([memory(Opcode::St, 255, Space::Global, &[r(6), r(3)]), exit()]);
    let words = run_to_end(code, 2, 40, &[0; 81]);
    assert_eq!(words[0], 80);
    assert_eq!(words[1..], (1..81).collect::<Vec<_>>());
}

#[test]
fn compare_and_swap_stores_only_if_the_old_value_matches() {
    let mut code = vec![special(0, Special::TidX)];
    code.extend(index(4, 0));
    let mut swap = memory(Opcode::Atom, 3, Space::Global, &[r(4), imm(5), imm(99)]);
    swap.mods.atom = AtomOp::Cas;
    swap.mods.ty = Ty::U32;
    code.extend([swap, exit()]);
    assert_eq!(run_to_end(code, 1, 3, &[5, 6, 5]), [99, 6, 99]);
}

#[test]
fn generic_addresses_reach_shared_and_local_memory() {
    let generic = |dst: u8, window: u64| {
        [
            row(Opcode::Mov, dst, &[imm(window & 0xffff_ffff)]),
            row(Opcode::Mov, dst + 1, &[imm(window >> 32)]),
        ]
    };
    let mut code = vec![special(0, Special::TidX)];
    code.extend(generic(8, SHARED_WINDOW + 16));
    code.extend(generic(10, LOCAL_WINDOW + 4));
    code.extend([
        when(exit()),
        memory(Opcode::St, 255, Space::Generic, &[r(8), imm(40)]),
        memory(Opcode::St, 255, Space::Generic, &[r(10), r(0)]),
        memory(Opcode::Ld, 2, Space::Shared, &[imm(16)]),
        memory(Opcode::Ld, 3, Space::Local, &[imm(4)]),
        add(3, r(2), r(3)),
    ]);
    code.extend(index(4, 0));
    code.extend([memory(Opcode::St, 255, Space::Global, &[r(4), r(3)]), exit()]);
    assert_eq!(run_to_end(code, 1, 3, &[0; 3]), [40, 41, 42]);
}

#[test]
fn ldmatrix_gives_lanes_rows_or_columns_of_matrices() {
    // Element (r, c) is 16-bit 8 r + c; thread t of 32 stores elements 2 t and 2 t + 1.
    let pair = |first: u64| first | (first + 1) << 16;
    for (trans, lane_9) in [(false, pair(2 * 8 + 2)), (true, 2 * 8 + 2 + ((3 * 8 + 2) << 16))] {
        let mut load = row(Opcode::Ldsm, 3, &[r(2)]);
        load.mods.count = 1;
        load.mods.trans = trans;
        let mut code = vec![
            special(0, Special::TidX),
            mul_add(1, r(0), imm(0x2_0002), imm(0x1_0000)),
            mul_add(2, r(0), imm(4), imm(0)),
            memory(Opcode::St, 255, Space::Shared, &[r(2), r(1)]),
            row(Opcode::Lop3, 2, &[r(0), imm(7)]),
            mul_add(2, r(2), imm(16), imm(0)),
            load,
        ];
        code[4].mods.lut = 0xc0; // a and b
        code.extend(index(4, 0));
        code.extend([memory(Opcode::St, 255, Space::Global, &[r(4), r(3)]), exit()]);
        // Lane 9 gets row 2, columns 2 and 3; transposed, rows 2 and 3 of column 2.
        assert_eq!(
            u64::from(run_to_end(code, 1, 32, &[0; 32])[9]),
            lane_9,
            "transposed: {trans}"
        );
    }
}

#[test]
fn asynchronous_copy_fills_missing_bytes_with_zeros() {
    let mut code = vec![row(Opcode::Mov, 0, &[imm(0)])];
    code.extend(index(4, 0));
    let mut copy = row(Opcode::Ldgsts, 255, &[imm(32), r(4), imm(2)]);
    copy.mods.access = WORD;
    code.extend([
        memory(Opcode::St, 255, Space::Shared, &[imm(32), imm(0xffff_ffff)]),
        copy,
        Inst::new(Opcode::Ldgdepbar),
        Inst::new(Opcode::Depbar),
        memory(Opcode::Ld, 3, Space::Shared, &[imm(32)]),
        memory(Opcode::St, 255, Space::Global, &[r(4), r(3)]),
        exit(),
    ]);
    assert_eq!(run_to_end(code, 1, 1, &[0x1234_5678]), [0x5678]);
}

/// Warp (or CTA) 0 spins until word 0 of the buffer is set by the other one.
fn spin(rank: Special) -> Vec<Inst> {
    let mut code = vec![row(Opcode::Mov, 0, &[imm(0)])];
    code.extend(index(4, 0));
    code.extend([
        special(1, rank),
        compare(r(1), Cmp::Ne, imm(0)), // 5
        when(to(10)),
        memory(Opcode::Ld, 2, Space::Global, &[r(4)]), // 7
        compare(r(2), Cmp::Eq, imm(0)),
        when(to(7)),
        unless(exit()), // 10
        memory(Opcode::St, 255, Space::Global, &[r(4), imm(1)]),
        exit(),
    ]);
    code
}

#[test]
fn warp_can_spin_for_a_later_warp_and_cta_for_a_later_cta() {
    assert_eq!(run_to_end(spin(Special::WarpId), 1, 64, &[0]), [1]);
    assert_eq!(run_to_end(spin(Special::CtaidX), 2, 32, &[0]), [1]);
}

#[test]
fn endless_loop_stops_at_the_limit() {
    let (outcome, _) = run_on(vec![to(0)], 1, 32, &[0]);
    assert_eq!(outcome, Err(ReferenceError::StepLimit { limit: 1_000_000 }));
}

#[test]
fn endless_loop_stops_at_an_interrupt() {
    let until = Until {
        limit: u64::MAX,
        is_interrupted: || true,
    };
    let (outcome, _) = run_until(vec![to(0)], [1, 32], &[0], until);
    assert_eq!(outcome, Err(ReferenceError::Interrupted));
}

#[test]
fn barrier_with_too_few_warps_is_reported_with_the_waiting_warps() {
    let code = vec![row(Opcode::Bar, 255, &[imm(3), imm(96)]), exit()];
    let (outcome, _) = run_on(code, 1, 64, &[0]);
    let wait = |warp: u32| format!("block [0, 0, 0] warp {warp} waits at barrier 3: 2 of 3 warps have arrived");
    assert_eq!(
        outcome,
        Err(ReferenceError::Deadlock {
            waits: vec![wait(0), wait(1)]
        })
    );
}

#[test]
fn barrier_ignores_ended_warps_and_counts_bar_arrive() {
    let arrive = |op_count: u8| {
        let mut bar = row(Opcode::Bar, 255, &[imm(1), imm(64)]);
        bar.mods.count = op_count;
        bar
    };
    let mut code = vec![special(0, Special::WarpId)];
    code.extend(index(4, 0));
    code.extend([
        compare(r(0), Cmp::Eq, imm(2)),
        when(exit()),
        row(Opcode::Bar, 255, &[imm(0), imm(0)]),
        compare(r(0), Cmp::Eq, imm(1)), // 7
        when(to(11)),
        arrive(1),
        exit(),
        arrive(0), // 11
        memory(Opcode::St, 255, Space::Global, &[r(4), imm(5)]),
        exit(),
    ]);
    assert_eq!(run_to_end(code, 1, 96, &[0; 3]), [0, 5, 0]);
}

#[test]
fn trap_of_bounds_alignment_and_trap_instruction_has_thread_and_address() {
    let mut outside = vec![special(0, Special::TidX)];
    outside.extend(index(4, 0));
    outside.push(memory(Opcode::Ld, 1, Space::Global, &[r(4)]));
    outside[4].line = 17;
    outside.push(exit());
    let trap = trap_of(outside.clone());
    assert_eq!((trap.kind, trap.pc, trap.line), (TrapKind::OutOfBounds, 4, 17));
    assert_eq!((trap.block, trap.thread), ([0, 0, 0], [4, 0, 0]));
    assert_eq!((trap.bytes, trap.space), (4, "global"));
    let buffer = Storage::new(1 << 20).allocate(16).unwrap();
    assert_eq!(trap.address, Some(buffer + 16));

    outside[4].mods.offset = 2;
    let trap = trap_of(outside);
    assert_eq!((trap.kind, trap.thread), (TrapKind::Misaligned, [0, 0, 0]));
    assert_eq!(trap.address, Some(buffer + 2));

    let shared = memory(Opcode::Ld, 1, Space::Shared, &[imm(1024)]);
    assert_eq!(trap_of(vec![shared, exit()]).space, "shared");
    let local = memory(Opcode::Ld, 1, Space::Local, &[imm(16)]);
    assert_eq!(trap_of(vec![local, exit()]).space, "local");

    let late = vec![
        special(0, Special::TidX),
        compare(r(0), Cmp::Ge, imm(37)),
        when(Inst::new(Opcode::Trap)),
        exit(),
    ];
    let trap = trap_of(late);
    assert_eq!(
        (trap.kind, trap.thread, trap.address),
        (TrapKind::Trapped, [37, 0, 0], None)
    );
}
