//! Divergence and reconvergence, step by step: the operation, then the running lanes and their program counter.

use warpwave_isa::flow::{Flow, Reconvergence};
use warpwave_isa::lane::{LaneMask, WARP_SIZE};
use warpwave_isa::reg::ConvBarrier;

const OUTER: ConvBarrier = ConvBarrier(0);
const INNER: ConvBarrier = ConvBarrier(1);

/// Returns a warp of four lanes at instruction 0.
fn four_lanes() -> Flow {
    Flow::new(0, LaneMask(0b1111))
}

/// Asserts the program counter and the lanes of the running group.
#[track_caller]
fn stands(flow: &Flow, pc: u32, lanes: u32) {
    assert_eq!((flow.pc(), flow.active()), (pc, LaneMask(lanes)), "of {flow:?}");
}

/// Steps until the running group is at `pc`.
fn walk_to(flow: &mut Flow, pc: u32) {
    while flow.pc() < pc {
        flow.step();
    }
}

#[test]
fn branch_of_agreeing_lanes_keeps_them_together() {
    let mut flow = four_lanes();
    flow.branch(LaneMask::ALL, 7);
    stands(&flow, 7, 0b1111);
    flow.branch(LaneMask::NONE, 0);
    stands(&flow, 8, 0b1111);
    assert!(flow.is_converged());
}

#[test]
fn nested_branches_reconverge_at_their_own_barrier() {
    let mut flow = four_lanes();
    flow.bssy(OUTER); // 0
    flow.branch(LaneMask(0b1100), 10); // 1: lanes 2, 3 to the outer else
    stands(&flow, 2, 0b0011);
    flow.bssy(INNER); // 2
    flow.branch(LaneMask(0b0010), 6); // 3: lane 1 to the inner else
    stands(&flow, 4, 0b0001);
    flow.step(); // 4
    flow.branch(LaneMask::ALL, 7); // 5: past the inner else
    stands(&flow, 7, 0b0001);
    flow.bsync(INNER); // 7: lane 0 waits, lane 1 runs the inner else
    stands(&flow, 6, 0b0010);
    flow.step();
    flow.bsync(INNER); // 7: both are there
    stands(&flow, 8, 0b0011);
    flow.branch(LaneMask::ALL, 12);
    flow.bsync(OUTER); // 12: lanes 0, 1 wait for the outer else
    stands(&flow, 10, 0b1100);
    walk_to(&mut flow, 12);
    flow.bsync(OUTER);
    stands(&flow, 13, 0b1111);
    assert!(flow.is_converged());
}

#[test]
fn loop_with_uneven_trip_counts_reconverges_after_the_last_trip() {
    // 0: BSSY; 1: body; 2: lanes that have trips left go to 1; 3: BSYNC. Lane n has n + 1 trips.
    let mut flow = four_lanes();
    let mut trips_of = [0; 4];
    flow.bssy(OUTER);
    for _ in 0..100 {
        if flow.pc() == 1 {
            flow.active().iter().for_each(|lane| trips_of[lane] += 1);
            flow.step();
        } else if flow.pc() == 2 {
            let again = (0..4)
                .filter(|&lane| trips_of[lane] <= lane)
                .fold(0, |mask, lane| mask | 1 << lane);
            flow.branch(LaneMask(again), 1);
        } else if flow.pc() == 3 {
            flow.bsync(OUTER);
        } else {
            break;
        }
    }
    stands(&flow, 4, 0b1111);
    assert_eq!(trips_of, [1, 2, 3, 4]);
}

#[test]
fn lanes_spinning_on_a_lock_let_its_holder_run() {
    // 0: the lock holder goes to 5. 1: the others jump back. 5: the holder works. 6: it passes the lock to the next lane, and ends.
    let mut flow = four_lanes();
    let mut holder = 0;
    for _ in 0..100 {
        match flow.pc() {
            0 => flow.branch(LaneMask::lane(holder), 5),
            1 => flow.branch(LaneMask::ALL, 0),
            5 => flow.step(),
            _ => {
                holder += 1;
                flow.exit(LaneMask::ALL);
            }
        }
        if flow.is_done() {
            break;
        }
    }
    assert!(flow.is_done(), "lane {holder} never ran: {flow:?}");
}

#[test]
fn barrier_does_not_wait_for_lanes_that_broke_out() {
    let mut flow = four_lanes();
    flow.bssy(INNER); // 0
    flow.break_from(INNER, LaneMask(0b0001)); // 1: lane 0 leaves the loop for good
    flow.branch(LaneMask(0b0001), 20); // 2
    stands(&flow, 3, 0b1110);
    flow.bsync(INNER); // 3: lanes 1 to 3 are all that are left
    stands(&flow, 4, 0b1110);
}

#[test]
fn barrier_opens_without_a_lane_that_exited() {
    let mut flow = four_lanes();
    flow.bssy(OUTER); // 0
    flow.branch(LaneMask(0b0111), 5); // 1
    stands(&flow, 2, 0b1000);
    assert!(!flow.exit(LaneMask(0b1000))); // 2: lane 3 is done
    stands(&flow, 5, 0b0111);
    flow.bsync(OUTER);
    stands(&flow, 6, 0b0111);
    assert_eq!(flow.live(), LaneMask(0b0111));
}

#[test]
fn exit_of_the_last_missing_member_opens_the_barrier() {
    let mut flow = four_lanes();
    flow.bssy(OUTER); // 0
    flow.branch(LaneMask(0b1000), 5); // 1
    flow.bsync(OUTER); // 2: lanes 0 to 2 wait, lane 3 runs
    stands(&flow, 5, 0b1000);
    flow.exit(LaneMask::ALL);
    stands(&flow, 3, 0b0111);
}

#[test]
fn guarded_exit_leaves_the_other_lanes_running() {
    let mut flow = four_lanes();
    assert!(!flow.exit(LaneMask(0b0110)));
    stands(&flow, 1, 0b1001);
    assert!(!flow.exit(LaneMask::ALL));
    assert!(flow.is_done());
    assert_eq!(flow.active(), LaneMask::NONE);
}

#[test]
fn converged_warp_arrives_at_the_block_barrier_and_is_released() {
    let mut flow = four_lanes();
    assert!(flow.arrive(LaneMask::ALL, true));
    assert!(flow.is_at_barrier());
    assert_eq!(flow.active(), LaneMask::NONE);
    flow.release();
    stands(&flow, 1, 0b1111);
    assert!(!flow.is_at_barrier());
}

#[test]
fn restarted_warp_has_no_state_of_the_diverged_one_before() {
    let mut before = four_lanes();
    before.bssy(OUTER); // 0
    before.branch(LaneMask(0b0011), 9); // 1: lanes 2 and 3 go on
    before.bsync(OUTER); // 2: they wait, lanes 0 and 1 go on
    stands(&before, 9, 0b0011);
    let mut flow = before.restart(0, LaneMask(0b0111));
    stands(&flow, 0, 0b0111);
    flow.branch(LaneMask(0b0001), 3); // 0: the convergence barrier of the old warp has no members now
    walk_to(&mut flow, 3);
    assert!(!flow.arrive(LaneMask::ALL, true)); // 3: lanes 1, 2
    stands(&flow, 3, 0b0001);
    assert!(flow.arrive(LaneMask::ALL, true));
    flow.release();
    stands(&flow, 4, 0b0111);
    flow.bsync(OUTER); // 4
    stands(&flow, 5, 0b0111);
}

#[test]
fn diverged_warp_arrives_when_its_last_group_does() {
    let mut flow = four_lanes();
    flow.branch(LaneMask(0b0011), 3); // 0
    walk_to(&mut flow, 3);
    assert!(!flow.arrive(LaneMask::ALL, true)); // 3: lanes 2, 3
    stands(&flow, 3, 0b0011);
    assert!(flow.arrive(LaneMask::ALL, true));
    flow.release();
    stands(&flow, 4, 0b1111);
}

#[test]
fn groups_at_different_block_barrier_instructions_resume_at_their_own() {
    let mut flow = four_lanes();
    flow.bssy(OUTER); // 0
    flow.branch(LaneMask(0b0011), 10); // 1
    assert!(!flow.arrive(LaneMask::ALL, true)); // 2: lanes 2, 3
    stands(&flow, 10, 0b0011);
    assert!(flow.arrive(LaneMask::ALL, true)); // 10
    flow.release();
    let first = (flow.pc(), flow.active().0);
    walk_to(&mut flow, 20);
    flow.bsync(OUTER); // 20
    let second = (flow.pc(), flow.active().0);
    let mut groups = [first, second];
    groups.sort_unstable();
    assert_eq!(groups, [(3, 0b1100), (11, 0b0011)]);
    walk_to(&mut flow, 20);
    flow.bsync(OUTER);
    stands(&flow, 21, 0b1111);
}

#[test]
fn exit_of_the_last_running_lane_completes_the_arrival() {
    let mut flow = four_lanes();
    flow.branch(LaneMask(0b0001), 9); // 0
    assert!(!flow.arrive(LaneMask::ALL, true)); // 1: lanes 1 to 3
    stands(&flow, 9, 0b0001);
    assert!(flow.exit(LaneMask::ALL));
    flow.release();
    stands(&flow, 2, 0b1110);
}

#[test]
fn diverged_lanes_at_warpsync_wait_for_its_members() {
    let mut flow = four_lanes();
    flow.branch(LaneMask(0b1100), 8); // 0
    flow.warpsync(LaneMask(0b0101), LaneMask::NONE, false); // 1: lanes 0, 1 wait for lane 2
    stands(&flow, 8, 0b1100);
    flow.warpsync(LaneMask(0b0101), LaneMask::NONE, false); // 8: lane 2 is there
    let first = (flow.pc(), flow.active().0);
    flow.exit(LaneMask::ALL);
    let second = (flow.pc(), flow.active().0);
    let mut groups = [first, second];
    groups.sort_unstable();
    assert_eq!(groups, [(2, 0b0011), (9, 0b1100)]);
}

#[test]
fn exit_of_a_missing_member_completes_the_warpsync() {
    let mut flow = four_lanes();
    flow.branch(LaneMask(0b1000), 8); // 0
    flow.warpsync(LaneMask(0b1111), LaneMask::NONE, false); // 1: lanes 0 to 2 wait
    stands(&flow, 8, 0b1000);
    flow.exit(LaneMask::ALL);
    stands(&flow, 2, 0b0111);
}

#[test]
fn indirect_branch_groups_lanes_by_target() {
    let mut flow = four_lanes();
    let mut targets = [0; WARP_SIZE];
    targets[..4].copy_from_slice(&[30, 40, 30, 50]);
    flow.branch_indirect(LaneMask(0b0111), &targets); // lane 3 does not branch
    let mut groups = Vec::new();
    for _ in 0..3 {
        groups.push((flow.pc(), flow.active().0));
        flow.exit(LaneMask::ALL);
    }
    groups.sort_unstable();
    assert_eq!(groups, [(1, 0b1000), (30, 0b0101), (40, 0b0010)]);
    assert!(flow.is_done());
}

#[test]
fn later_group_passes_a_barrier_with_missing_members() {
    let mut flow = four_lanes();
    flow.branch(LaneMask(0b0011), 0); // 0: lanes 2, 3 go on at 1, lanes 0, 1 come back to 0 later
    flow.bssy(INNER); // 1
    flow.branch(LaneMask(0b1000), 5); // 2
    flow.bsync(INNER); // 3: lane 2 waits for lane 3, which runs at 5
    stands(&flow, 5, 0b1000);
    flow.arrive(LaneMask::ALL, true); // 5: lane 3 waits for the block
    stands(&flow, 0, 0b0011);
    flow.step(); // 0
    flow.bssy(INNER); // 1: lanes 2 and 3 have not met yet
    flow.branch(LaneMask(0b0001), 5); // 2
    flow.bsync(INNER); // 3: lane 1 is no member and does not wait
    stands(&flow, 4, 0b0010);
}

#[test]
fn lanes_that_enter_a_barrier_twice_leave_it_to_the_others() {
    let mut flow = four_lanes();
    flow.bssy(INNER); // 0
    flow.branch(LaneMask(0b1100), 5); // 1: lanes 2, 3 go to the join
    flow.branch(LaneMask(0b0011), 0); // 2: lanes 0, 1 go back, and the others run
    stands(&flow, 5, 0b1100);
    flow.bsync(INNER); // 5: lanes 2, 3 wait
    stands(&flow, 0, 0b0011);
    flow.bssy(INNER); // 0: lanes 0, 1 are no members from here on
    walk_to(&mut flow, 5);
    flow.bsync(INNER); // 5
    stands(&flow, 6, 0b0011);
    flow.exit(LaneMask::ALL); // 6: lanes 2, 3 were the last members
    stands(&flow, 6, 0b1100);
}

#[test]
fn lanes_held_at_a_bsync_leave_it_for_a_warpsync() {
    let mut flow = four_lanes();
    flow.bssy(OUTER); // 0
    flow.branch(LaneMask(0b1100), 4); // 1: lanes 2, 3 go to the join
    flow.warpsync(LaneMask(0b1111), LaneMask::NONE, false); // 2: lanes 0, 1 wait for lanes 2, 3
    stands(&flow, 4, 0b1100);
    flow.bsync(OUTER); // 4: no lane can run, so lanes 2, 3 leave the BSYNC
    stands(&flow, 5, 0b1100);
    flow.exit(LaneMask::ALL); // 5: every live lane of the mask has arrived
    stands(&flow, 3, 0b0011);
    flow.step(); // 3
    flow.bsync(OUTER); // 4: every live member has arrived
    stands(&flow, 5, 0b0011);
}

#[test]
fn lanes_held_at_two_bsyncs_leave_them_in_turn_for_a_warpsync() {
    let mut flow = four_lanes();
    flow.bssy(OUTER); // 0
    flow.branch(LaneMask(0b1000), 8); // 1: lane 3 goes to the outer join
    flow.bssy(INNER); // 2
    flow.branch(LaneMask(0b0100), 6); // 3: lane 2 goes to the inner join
    flow.warpsync(LaneMask(0b1111), LaneMask::NONE, false); // 4: lanes 0, 1
    stands(&flow, 6, 0b0100);
    flow.bsync(INNER); // 6
    stands(&flow, 8, 0b1000);
    flow.bsync(OUTER); // 8: all lanes are held, so one barrier releases its lane
    stands(&flow, 9, 0b1000);
    flow.warpsync(LaneMask(0b1111), LaneMask::NONE, false); // 9: lane 3 waits for lane 2
    stands(&flow, 7, 0b0100);
    flow.step(); // 7
    flow.bsync(OUTER); // 8: lanes 0, 1 are missing, and wait for lane 2
    stands(&flow, 9, 0b0100);
    flow.warpsync(LaneMask(0b1111), LaneMask::NONE, false); // 9: all are here
    let mut groups = Vec::new();
    while !flow.is_done() {
        groups.push((flow.pc(), flow.active().0));
        flow.exit(LaneMask::ALL);
    }
    groups.sort_unstable();
    assert_eq!(groups, [(5, 0b0011), (10, 0b1100)]);
}

#[test]
fn lanes_held_at_a_bsync_leave_it_for_the_block_barrier() {
    let mut flow = four_lanes();
    flow.bssy(OUTER); // 0
    flow.branch(LaneMask(0b1100), 4); // 1
    assert!(!flow.arrive(LaneMask::ALL, true)); // 2: lanes 0, 1
    flow.bsync(OUTER); // 4: lanes 2, 3
    stands(&flow, 5, 0b1100);
    assert!(flow.arrive(LaneMask::ALL, true)); // 5: now the whole warp has arrived
}

#[test]
fn warpsyncs_with_different_masks_wait_for_their_own_lanes() {
    let mut flow = four_lanes();
    flow.branch(LaneMask(0b1100), 8); // 0
    flow.branch(LaneMask(0b0010), 5); // 1: lane 1
    flow.warpsync(LaneMask(0b0011), LaneMask::NONE, false); // 2: lane 0 waits for lane 1
    stands(&flow, 5, 0b0010);
    flow.branch(LaneMask::ALL, 4); // 5: it jumps back, so lanes 2, 3 run
    stands(&flow, 8, 0b1100);
    flow.warpsync(LaneMask(0b1100), LaneMask::NONE, false); // 8: both are here
    stands(&flow, 9, 0b1100);
    flow.exit(LaneMask::ALL);
    stands(&flow, 4, 0b0010);
    flow.warpsync(LaneMask(0b0011), LaneMask::NONE, false); // 4: lane 0 has waited for this
    let first = (flow.pc(), flow.active().0);
    flow.exit(LaneMask::ALL);
    let mut groups = [first, (flow.pc(), flow.active().0)];
    groups.sort_unstable();
    assert_eq!(groups, [(3, 0b0001), (5, 0b0010)]);
}

#[test]
fn lanes_of_one_group_with_different_warpsync_masks_diverge() {
    let mut flow = four_lanes();
    flow.warpsync(LaneMask(0b0101), LaneMask(0b1010), false); // 0: lanes 1, 3 give another mask
    stands(&flow, 1, 0b0101);
    flow.exit(LaneMask::ALL);
    stands(&flow, 0, 0b1010);
    flow.warpsync(LaneMask(0b1010), LaneMask::NONE, false);
    stands(&flow, 1, 0b1010);
}

#[test]
fn lanes_that_spin_give_way_to_others_unless_the_warp_has_one_program_counter() {
    for (reconvergence, pc, lanes) in [
        (Reconvergence::Independent, 9, 0b1100),
        (Reconvergence::Stack, 1, 0b0011),
    ] {
        let mut flow = four_lanes().with_reconvergence(reconvergence);
        flow.branch(LaneMask(0b1100), 9); // 0: lanes 2, 3 would free the lock at 9
        flow.branch(LaneMask::ALL, 1); // 1: lanes 0, 1 spin
        stands(&flow, pc, lanes);
    }
}

#[test]
fn lanes_without_the_guard_step_over_a_block_barrier() {
    let mut flow = four_lanes();
    assert!(!flow.arrive(LaneMask::NONE, true)); // 0
    stands(&flow, 1, 0b1111);
    assert!(!flow.arrive(LaneMask(0b0011), true)); // 1: lanes 0, 1
    stands(&flow, 2, 0b1100);
    assert!(flow.arrive(LaneMask::ALL, true)); // 2: lanes 2, 3
    assert_eq!(flow.misplaced_lanes(), LaneMask::NONE);
    flow.release();
    let first = (flow.pc(), flow.active().0);
    flow.exit(LaneMask::ALL);
    let mut groups = [first, (flow.pc(), flow.active().0)];
    groups.sort_unstable();
    assert_eq!(groups, [(2, 0b0011), (3, 0b1100)]);
}

#[test]
fn arriving_lanes_continue_while_the_others_wait_at_the_block_barrier() {
    let mut flow = four_lanes();
    flow.branch(LaneMask(0b0011), 8); // 0
    assert!(!flow.arrive(LaneMask::ALL, true)); // 1: lanes 2, 3
    assert!(flow.arrive(LaneMask::ALL, false)); // 8: lanes 0, 1 continue
    stands(&flow, 9, 0b0011);
    assert!(flow.waits_at_block_barrier() && !flow.is_at_barrier());
    flow.release();
    assert_eq!(flow.misplaced_lanes(), LaneMask::NONE);
    stands(&flow, 9, 0b0011);
    flow.exit(LaneMask::ALL);
    stands(&flow, 2, 0b1100);
}

#[test]
fn lanes_at_the_cluster_barrier_wait_by_themselves() {
    let mut flow = four_lanes();
    flow.wait_for_cluster(LaneMask(0b0011)); // 0
    stands(&flow, 1, 0b1100);
    assert!(!flow.arrive(LaneMask::ALL, true)); // 1: the warp's arrival needs lanes 0, 1
    flow.release_cluster();
    stands(&flow, 1, 0b0011);
    assert!(flow.arrive(LaneMask::ALL, true)); // 1
    flow.release();
    stands(&flow, 2, 0b1111);
}
