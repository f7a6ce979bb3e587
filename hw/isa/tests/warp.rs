//! Operations between lanes: vote, match, reduction, shuffle, and predicates as a word. All expectations are computed by hand.

use warpwave_isa::exec::{Operands, Results, execute};
use warpwave_isa::inst::Inst;
use warpwave_isa::lane::{LaneMask, Lanes, WARP_SIZE};
use warpwave_isa::program::Decoded;

/// Executes an instruction in the active lanes.
fn run(text: &str, active: LaneMask, operands: &Operands) -> Results {
    let inst: Inst = text.parse().expect("an instruction");
    let mut results = Results::default();
    execute(&inst, &Decoded::of(&inst), active, operands, &mut results);
    results
}

fn lanes(f: impl Fn(u32) -> u32) -> Lanes {
    Lanes(std::array::from_fn(|lane| f(lane as u32)))
}

fn with_words<const N: usize>(words: [Lanes; N]) -> Operands {
    let mut operands = Operands::default();
    operands.words[..N].copy_from_slice(&words);
    operands
}

/// Executes a shuffle in which lane n has the value 100 + n.
fn shuffle(text: &str, b: u32, c: u32) -> Results {
    run(
        text,
        LaneMask::ALL,
        &with_words([lanes(|lane| 100 + lane), Lanes::splat(b), Lanes::splat(c)]),
    )
}

#[test]
fn butterfly_of_sixteen_swaps_lanes_with_their_partners() {
    let results = shuffle("SHFL.BFLY R0, P0, R1, R2, R3", 16, 0x1f);
    assert_eq!(results.words[0], lanes(|lane| 100 + (lane ^ 16)));
    assert_eq!(results.preds[0], LaneMask::ALL);
}

#[test]
fn shuffle_down_past_the_warp_keeps_the_own_value() {
    let results = shuffle("SHFL.DOWN R0, P0, R1, R2, R3", 4, 0x1f);
    assert_eq!(
        results.words[0],
        lanes(|lane| if lane < 28 { 104 + lane } else { 100 + lane })
    );
    assert_eq!(results.preds[0], LaneMask::first(28));
}

#[test]
fn shuffle_up_past_the_warp_keeps_the_own_value() {
    let results = shuffle("SHFL.UP R0, P0, R1, R2, R3", 1, 0);
    assert_eq!(results.words[0], lanes(|lane| if lane == 0 { 100 } else { 99 + lane }));
    assert_eq!(results.preds[0], LaneMask(0xffff_fffe));
}

#[test]
fn shuffle_by_index_stays_in_its_segment_of_eight() {
    // c for segments of 8 lanes: the upper two lane-number bits are kept, and the clamp is 31.
    let results = shuffle("SHFL.IDX R0, P0, R1, R2, R3", 3, 0x181f);
    assert_eq!(results.words[0], lanes(|lane| 100 + (lane & 0x18) + 3));
    assert_eq!(results.preds[0], LaneMask::ALL);
}

#[test]
fn shuffle_down_stops_at_its_segment_of_eight() {
    let results = shuffle("SHFL.DOWN R0, P0, R1, R2, R3", 2, 0x181f);
    assert_eq!(
        results.words[0],
        lanes(|lane| if lane % 8 < 6 { 102 + lane } else { 100 + lane })
    );
    assert_eq!(results.preds[0], LaneMask(0x3f3f_3f3f));
}

#[test]
fn shuffle_from_an_inactive_lane_keeps_the_own_value() {
    let words = [lanes(|lane| 100 + lane), Lanes::splat(1), Lanes::splat(0x1f)];
    let odd = LaneMask(0xaaaa_aaaa);
    let results = run("SHFL.BFLY R0, P0, R1, R2, R3", odd, &with_words(words));
    assert!(odd.iter().all(|lane| results.words[0].0[lane] == 100 + lane as u32));
    let results = run(
        "SHFL.IDX R0, P0, R1, R2, R3",
        odd,
        &with_words([words[0], Lanes::splat(5), words[2]]),
    );
    assert!(
        odd.iter().all(|lane| results.words[0].0[lane] == 105),
        "lane 5 is active"
    );
}

#[test]
fn vote_counts_only_the_active_lanes() {
    let mut operands = Operands::default();
    operands.preds[0] = LaneMask(0xffff_00f0);
    let vote = |mode: &str, active: u32| {
        let results = run(&format!("VOTE.{mode} R0, P0, P1"), LaneMask(active), &operands);
        (results.words[0].0[9], !results.preds[0].is_empty())
    };
    assert_eq!(vote("BALLOT", 0xff), (0xf0, true));
    assert_eq!(vote("ANY", 0x0f), (0, false));
    assert_eq!(vote("ANY", 0x1f), (0x10, true));
    assert_eq!(vote("ALL", 0xf0), (0xf0, true));
    assert_eq!(vote("ALL", 0xf8), (0xf0, false));
    assert_eq!(vote("UNI", 0x0f), (0, true));
    assert_eq!(vote("UNI", 0x1f), (0x10, false));
}

#[test]
fn match_any_gives_each_lane_its_peers() {
    let operands = with_words([lanes(|lane| lane % 3)]);
    let results = run("MATCH.ANY R0, PT, R1", LaneMask::first(6), &operands);
    assert_eq!(
        results.words[0].0[..6],
        [0b001001, 0b010010, 0b100100, 0b001001, 0b010010, 0b100100]
    );
}

#[test]
fn match_all_of_two_words_compares_both() {
    let equal = with_words([Lanes::splat(5), Lanes::splat(9)]);
    let results = run("MATCH.ALL.U64 R0, P0, R2", LaneMask::first(6), &equal);
    assert_eq!((results.words[0].0[0], results.preds[0]), (0x3f, LaneMask::ALL));
    let unequal = with_words([Lanes::splat(5), lanes(|lane| lane / 5)]);
    let results = run("MATCH.ALL.U64 R0, P0, R2", LaneMask::first(6), &unequal);
    assert_eq!((results.words[0].0[0], results.preds[0]), (0, LaneMask::NONE));
}

#[test]
fn reduction_combines_only_the_active_lanes() {
    let operands = with_words([lanes(|lane| lane.wrapping_sub(2))]);
    let reduce = |how: &str| run(&format!("REDUX.{how} R0, R1"), LaneMask(0b11111), &operands).words[0].0[3];
    assert_eq!(reduce("ADD"), 0); // -2 - 1 + 0 + 1 + 2
    assert_eq!(reduce("MIN.S32"), (-2i32) as u32);
    assert_eq!(reduce("MIN"), 0);
    assert_eq!(reduce("MAX.S32"), 2);
    assert_eq!(reduce("MAX"), u32::MAX);
    assert_eq!(reduce("AND"), 0);
    assert_eq!(reduce("OR"), u32::MAX);
    assert_eq!(reduce("XOR"), 2); // the two negatives cancel to 1, which the one cancels
}

#[test]
fn predicates_packed_and_unpacked_are_unchanged() {
    let operands = Operands {
        file: std::array::from_fn(|n| LaneMask(0x0101_0101 << n)),
        ..Operands::default()
    };
    let packed = run("P2R R0", LaneMask::ALL, &operands).words[0];
    assert_eq!(packed, lanes(|lane| if lane % 8 == 7 { 0 } else { 1 << (lane % 8) }));

    let mut back = with_words([packed, Lanes::splat(0x7f)]);
    assert_eq!(run("R2P R0, R1", LaneMask::ALL, &back).preds, operands.file);
    back.file = [LaneMask(0xffff_0000); 7];
    back.words[1] = Lanes::splat(0b10);
    let preds = run("R2P R0, R1", LaneMask::ALL, &back).preds;
    assert_eq!(preds[1], operands.file[1]);
    assert_eq!(preds[0], LaneMask(0xffff_0000));
}

#[test]
fn lanes_with_different_words_get_different_results() {
    let operands = with_words([lanes(|lane| lane), lanes(|lane| 100 * lane), Lanes::splat(7)]);
    let results = run("IMAD R0, R1, R2, R3", LaneMask::ALL, &operands);
    assert_eq!(results.words[0], lanes(|lane| 100 * lane * lane + 7));
    let results = run(
        "ISETP.GT.AND P0, P1, R1, 0x5, PT, PT",
        LaneMask::ALL,
        &with_words([operands.words[0], Lanes::splat(5)]),
    );
    assert_eq!(results.preds[0], LaneMask(!0x3f));
    assert_eq!(results.preds[1], LaneMask(0x3f));
    assert_eq!(results.words[0].0.len(), WARP_SIZE);
}
