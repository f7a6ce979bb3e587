//! Exchanges of a warp (`vote`, `shfl`, `match`, `redux`, `bar.warp.sync`) that diverged lanes reach at different times or not at all.
//!
//! An exchange waits for the live lanes of its mask (PTX ISA, `vote.sync` and others). So lanes that branch around it run on.

use warpwave_components::proto::launch::TrapKind;

use super::{Kernel, one_word_each};

/// A kernel of one warp. Lanes from `first_apart` on branch around `exchange` and join the others after it. Every lane stores `%r`,
/// initially 7.
fn branched_round(first_apart: u32, exchange: &str) -> Kernel {
    Kernel::of(&one_word_each(
        "sm_80",
        &format!(
            "mov.u32 %r, 7;\nmov.u32 %a1, 1;\nadd.u32 %a2, %t, 100;\nsetp.ge.u32 %p1, %t, {first_apart};\nsetp.lt.u32 %p2, %t, 4;\n\
             @%p1 bra J;\n{exchange}\nJ:"
        ),
    ))
}

/// The expected words: `value` for lanes below 20, and 7 for the others.
fn below_20(value: impl Fn(u32) -> u32) -> Vec<u32> {
    (0..32).map(|lane| if lane < 20 { value(lane) } else { 7 }).collect()
}

#[test]
fn exchange_completes_when_lanes_that_branched_around_it_end() {
    let exchanges: [(&str, Vec<u32>); 8] = [
        ("vote.sync.ballot.b32 %r, 1, 0xffffffff;", below_20(|_| 0x000f_ffff)),
        ("vote.sync.ballot.b32 %r, %p2, 0xffffffff;", below_20(|_| 0xf)),
        (
            "vote.sync.all.pred %p3, %p2, 0xffffffff;\nselp.u32 %r, 1, 0, %p3;",
            below_20(|_| 0),
        ),
        ("shfl.sync.idx.b32 %r, %a2, 3, 31, 0xffffffff;", below_20(|_| 103)),
        (
            "shfl.sync.up.b32 %r, %a2, 1, 0, 0xffffffff;",
            below_20(|lane| 100 + lane.saturating_sub(1)),
        ),
        ("match.any.sync.b32 %r, %a1, 0xffffffff;", below_20(|_| 0x000f_ffff)),
        ("redux.sync.add.u32 %r, %a2, 0xffffffff;", below_20(|_| 20 * 100 + 190)),
        ("bar.warp.sync 0xffffffff;\nmov.u32 %r, 1;", below_20(|_| 1)),
    ];
    for (exchange, expected) in exchanges {
        branched_round(20, exchange).output(&expected).holds();
    }
}

#[test]
fn sync_completes_when_other_lanes_arrive_at_a_later_one() {
    // Lanes from 16 on skip the first barrier and arrive at the second one, which releases the first group. Then the roles change.
    let body = "mov.u32 %r, 0;\nsetp.ge.u32 %p1, %t, 16;\n@%p1 bra J;\nbar.warp.sync 0xffffffff;\nadd.u32 %r, %r, 1;\nJ:\n\
                @!%p1 bra K;\nbar.warp.sync 0xffffffff;\nadd.u32 %r, %r, 2;\nK:";
    let expected: Vec<u32> = (0..32).map(|lane| if lane < 16 { 1 } else { 2 }).collect();
    Kernel::of(&one_word_each("sm_80", body)).output(&expected).holds();
}

#[test]
fn sync_in_a_loop_completes_when_other_lanes_skip_it() {
    // In each of four iterations another eight lanes skip the barrier. A lane that skips one arrives at the next.
    let body = "mov.u32 %r, 0;\nmov.u32 %a1, 0;\nshr.u32 %a2, %t, 3;\nL:\nsetp.eq.u32 %p1, %a1, %a2;\n@%p1 bra J;\n\
                bar.warp.sync 0xffffffff;\nadd.u32 %r, %r, 1;\nJ:\nadd.u32 %a1, %a1, 1;\nsetp.lt.u32 %p2, %a1, 4;\n@%p2 bra L;";
    Kernel::of(&one_word_each("sm_80", body)).output(&[3; 32]).holds();
}

#[test]
fn lanes_at_the_join_run_on_to_their_block_barrier() {
    let body = "mov.u32 %r, 0;\nsetp.ge.u32 %p1, %t, 16;\n@%p1 bra J;\nbarrier.sync 0;\nadd.u32 %r, %r, 1;\nJ:\n\
                @!%p1 bra K;\nbarrier.sync 0;\nadd.u32 %r, %r, 2;\nK:";
    let expected: Vec<u32> = (0..64).map(|thread| if thread < 16 { 1 } else { 2 }).collect();
    Kernel::of(&one_word_each("sm_80", body))
        .sizes(1, 64)
        .output(&expected)
        .holds();
}

#[test]
fn lanes_with_different_masks_exchange_by_mask() {
    // The mask of a lane is its half of the warp, or the lanes with the same remainder modulo 4.
    let halves = "setp.lt.u32 %p1, %t, 16;\nselp.b32 %a1, 0xffff, 0xffff0000, %p1;\nadd.u32 %a2, %t, 1;\n";
    let quarters = "and.b32 %a1, %t, 3;\nmov.u32 %a3, 0x11111111;\nshl.b32 %a1, %a3, %a1;\nadd.u32 %a2, %t, 1;\n";
    let in_half = |lane: u32, other: u32| lane / 16 == other / 16;
    let in_quarter = |lane: u32, other: u32| lane % 4 == other % 4;
    type Same = fn(u32, u32) -> bool;
    let partitions: [(&str, Same); 2] = [(halves, in_half), (quarters, in_quarter)];
    for (masks, same) in partitions {
        let group = |lane: u32| (0..32).filter(move |&other| same(lane, other));
        let exchanges: [(&str, Vec<u32>); 3] = [
            (
                "redux.sync.add.u32 %r, %a2, %a1;",
                (0..32).map(|lane| group(lane).map(|other| other + 1).sum()).collect(),
            ),
            (
                "vote.sync.ballot.b32 %r, 1, %a1;",
                (0..32).map(|lane| group(lane).map(|other| 1 << other).sum()).collect(),
            ),
            (
                "mov.u32 %a4, 5;\nmatch.any.sync.b32 %r, %a4, %a1;",
                (0..32).map(|lane| group(lane).map(|other| 1 << other).sum()).collect(),
            ),
        ];
        for (exchange, expected) in exchanges {
            // The exchange after it still uses the whole warp.
            let body = format!(
                "{masks}{exchange}\nvote.sync.ballot.b32 %a5, 1, 0xffffffff;\nnot.b32 %a5, %a5;\nadd.u32 %r, %r, %a5;"
            );
            Kernel::of(&one_word_each("sm_80", &body)).output(&expected).holds();
        }
    }
}

#[test]
fn exchange_of_one_mask_at_two_instructions_traps() {
    for exchange in [
        "vote.sync.ballot.b32 %r, 1, 0xffffffff;",
        "shfl.sync.idx.b32 %r, %t, 0, 31, 0xffffffff;",
        "match.any.sync.b32 %r, %t, 0xffffffff;",
        "redux.sync.add.u32 %r, %t, 0xffffffff;",
    ] {
        let arms = format!("setp.ge.u32 %p1, %t, 16;\n@%p1 bra A;\n{exchange}\nbra J;\nA:\n{exchange}\nJ:");
        let behind = format!("mov.u32 %r, 0;\nsetp.ge.u32 %p1, %t, 16;\n@%p1 bra J;\n{exchange}\nJ:\n{exchange}");
        for body in [arms, behind] {
            let text = one_word_each("sm_80", &body);
            let line = text.lines().position(|line| line == exchange).expect("it is there") as u32 + 1;
            Kernel::of(&text).output(&[0; 32]).traps(TrapKind::SplitExchange, line);
        }
    }
}

#[test]
fn each_side_of_a_branch_can_exchange_among_its_own_lanes() {
    let body = "setp.ge.u32 %p1, %t, 16;\n@%p1 bra A;\nvote.sync.ballot.b32 %r, 1, 0xffff;\nbra J;\n\
                A:\nvote.sync.ballot.b32 %r, 1, 0xffff0000;\nJ:";
    let expected: Vec<u32> = (0..32)
        .map(|lane| if lane < 16 { 0xffff } else { 0xffff_0000 })
        .collect();
    Kernel::of(&one_word_each("sm_80", body)).output(&expected).holds();
}
