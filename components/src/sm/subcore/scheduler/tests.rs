//! The scheduler alone keeps the contract of a component. The test sends as the CTA manager and the LSU, and responds as the dispatch unit.

use warpwave_hw::rig::{Event, Rig, check};
use warpwave_isa::lane::LaneMask;

use super::*;
use crate::preset;
use crate::proto::warp::WarpStart;
use crate::test_ports::grid;

const PROGRAM: &str = "FFMA R0, R1, R2, R3
    LD.B32 R4, [R6]
    FADD R5, R0, R4
    IADD3 R2, PT, R5, R4, RZ, PT
    EXIT";

/// Program counters of a warp's issued instructions, in order.
fn issued(events: &[Event], warp: u8) -> Vec<u32> {
    let of_warp = format!("Issue {{ warp: {warp}, pc: ");
    let pc = |event: &Event| event.message.strip_prefix(&of_warp)?.split(',').next()?.parse().ok();
    events
        .iter()
        .filter(|event| event.link == "issue")
        .filter_map(pc)
        .collect()
}

#[test]
fn scheduler_keeps_the_contract_and_issues_each_warp_in_order() {
    let grid = grid(PROGRAM, 1);
    let start = |warp| {
        WarpCommand::Start(WarpStart {
            warp,
            cta: 0,
            index: u32::from(warp),
            block: [0; 3],
            shared_base: 0,
            lanes: LaneMask::ALL,
            grid: grid.clone(),
        })
    };
    for policy in [
        SchedulerPolicy::LooseRoundRobin,
        SchedulerPolicy::GreedyThenOldest,
        SchedulerPolicy::OldestFirst,
    ] {
        let build = |rig: &mut Rig| {
            let (issue, release) = rig.responder(["issue", "release"], 2, |issue: Issue| {
                vec![(11, Release::new(issue.warp(), issue.pc(), issue.group()))]
            });
            let credit = |warp| LsuAck::QueueCredit { warp };
            let ports = Ports {
                command: rig.input("command", 1, 2, vec![(0, start(0)), (1, start(1)), (40, start(3))]),
                event: rig.output("event", 1, 1, |now| now.0 % 4 == 0),
                issue,
                release,
                resolved: rig.input("resolved", 1, 1, Vec::new()),
                ack: rig.input("ack", 1, 2, vec![(100, credit(0)), (103, credit(3)), (120, credit(1))]),
            };
            let sm = preset::load("tiny", &[]).expect("tiny is built in").config.sm;
            let config = Config {
                subcore: 0,
                warps: 4,
                policy,
                ibuffer_entries: sm.ibuffer_entries,
                fetch_latency: sm.fetch_latency,
                branch_latency: sm.branch_latency,
                memory_queue: sm.lsu.queue_depth,
                core_khz: 1_000_000,
            };
            Scheduler::new(Path::root("scheduler"), config, ports)
        };
        let events = check(build, 250).unwrap();
        for warp in [0, 1, 3] {
            assert_eq!(issued(&events, warp), [0, 1, 2, 3], "{policy:?}: EXIT is resolved here");
        }
        let ends = events
            .iter()
            .filter(|event| event.link == "event" && event.message.starts_with("Done"));
        assert_eq!(ends.count(), 3, "{policy:?}");
    }
}
