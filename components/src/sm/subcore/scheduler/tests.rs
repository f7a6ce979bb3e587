//! The scheduler alone keeps the contract of a component. The test sends as the CTA manager and the LSU, and responds as the dispatch unit.

use std::sync::Arc;

use warpwave_hw::rig::{Event, Rig, check};
use warpwave_isa::lane::LaneMask;

use super::*;
use crate::preset;
use crate::proto::constant::ConstantLine;
use crate::proto::launch::Grid;
use crate::proto::warp::WarpStart;
use crate::test_ports::{grid, run, times, wire};

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

/// Starts a warp with all lanes.
fn start(warp: u8, grid: &Arc<Grid>) -> WarpCommand {
    WarpCommand::Start(WarpStart {
        warp,
        cta: 0,
        index: u32::from(warp),
        block: [0; 3],
        shared_base: 0,
        lanes: LaneMask::ALL,
        generation: false,
        grid: grid.clone(),
    })
}

/// Four warp slots, and the numbers of `tiny`.
fn config(policy: SchedulerPolicy) -> Config {
    let sm = preset::load("tiny", &[]).expect("tiny is built in").config.sm;
    Config {
        subcore: 0,
        warps: 4,
        policy,
        ibuffer_entries: sm.ibuffer_entries,
        fetch_latency: sm.fetch_latency,
        branch_latency: sm.branch_latency,
        guard_latency: sm.pipes.guard_latency,
        warp_barrier_latency: sm.barrier.warp_latency,
        memory_queue: sm.lsu.queue_depth,
        constant: sm.constant,
        slot_release: sm.slot_release,
        core_khz: 1_000_000,
    }
}

#[test]
fn scheduler_keeps_the_contract_and_issues_each_warp_in_order() {
    let grid = grid(PROGRAM, 1);
    let start = |warp| start(warp, &grid);
    for policy in [
        SchedulerPolicy::LooseRoundRobin,
        SchedulerPolicy::GreedyThenOldest,
        SchedulerPolicy::GreedyThenYoungest,
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
                constant: None,
            };
            Scheduler::new(Path::root("scheduler"), config(policy), ports)
        };
        let events = check(build, 250).unwrap();
        let broken = |rig: &mut Rig| {
            let mut scheduler = build(rig);
            scheduler.state.queue_credits = scheduler.config.memory_queue + 1;
            scheduler
        };
        let found = check(broken, 1).unwrap_err();
        assert!(found.contains("memory credits: "), "{found}");
        for warp in [0, 1, 3] {
            assert_eq!(issued(&events, warp), [0, 1, 2, 3], "{policy:?}: EXIT is resolved here");
        }
        let ends = events
            .iter()
            .filter(|event| event.link == "event" && event.message.starts_with("Done"));
        assert_eq!(ends.count(), 3, "{policy:?}");
    }
}

/// Compares, and readers of their predicates. Each issues at the first cycle after its compare in which it may.
const PREDICATES: &str = "ISETP.LT.AND.S32 P0, PT, R1, R2, PT, PT
    SEL R3, R1, R2, P0
    @P0 IADD3 R4, PT, R1, R2, RZ, PT
    ISETP.LT.AND.S32 P0, PT, R5, R2, PT, PT
    ISETP.LT.AND.S32 P0, PT, R6, R2, P0, PT
    @P0 BRA 0
    EXIT";

#[test]
fn guard_and_branch_wait_for_the_guard_latency_and_data_readers_for_the_release() {
    let grid = grid(PREDICATES, 1);
    let build = |rig: &mut Rig| {
        // Results arrive 4 cycles after issue: a link there, 2 cycles in the pipe, and a link back.
        let (issue, release) = rig.responder(["issue", "release"], 8, |issue: Issue| match issue.pc() {
            5 => Vec::new(),
            pc => vec![(2, Release::new(issue.warp(), pc, issue.group()))],
        });
        let resolved = Resolved {
            warp: 2,
            pc: 5,
            lanes: LaneMask::NONE,
            a: 0,
            b: 0,
            count: 0,
            apart: LaneMask::NONE,
        };
        let ports = Ports {
            command: rig.input("command", 1, 2, vec![(0, start(2, &grid))]),
            event: rig.output("event", 1, 1, |_| true),
            issue,
            release,
            resolved: rig.input("resolved", 1, 1, vec![(60, resolved)]),
            ack: rig.input("ack", 1, 2, Vec::new()),
            constant: None,
        };
        let config = Config {
            guard_latency: 12,
            ..config(SchedulerPolicy::GreedyThenOldest)
        };
        Scheduler::new(Path::root("scheduler"), config, ports)
    };
    let events = check(build, 100).unwrap();
    assert_eq!(issued(&events, 2), [0, 1, 2, 3, 4, 5]);
    let issues: Vec<u64> = events
        .iter()
        .filter(|event| event.link == "issue")
        .map(|event| event.at.0)
        .collect();
    let after_first: Vec<u64> = issues.iter().map(|at| at - issues[0]).collect();
    // SEL after 4 cycles, the addition after 12. INT takes 2 cycles per instruction. The last compare is at 18, the branch 12 later.
    assert_eq!(after_first, [0, 4, 12, 14, 18, 30]);
    assert!(events.iter().any(|event| event.message.starts_with("Done")));
}

/// Two reads of one line of constants, then one of another line.
const CONSTANTS: &str = "FADD R3, R1, c[0][0x160]
    FADD R4, R1, c[0][0x164]
    FADD R5, R1, c[0][0x180]
    EXIT";

#[test]
fn absent_constant_delays_the_issue_until_its_line_comes_and_others_of_the_line_hit() {
    let grid = grid(CONSTANTS, 1);
    let build = |rig: &mut Rig| {
        let (issue, release) = rig.responder(["issue", "release"], 8, |issue: Issue| {
            vec![(2, Release::new(issue.warp(), issue.pc(), issue.group()))]
        });
        let (request, fill) = rig.responder(["request", "fill"], 8, |line: ConstantLine| vec![(50, line)]);
        let ports = Ports {
            command: rig.input("command", 1, 2, vec![(0, start(0, &grid)), (0, start(2, &grid))]),
            event: rig.output("event", 1, 1, |_| true),
            issue,
            release,
            resolved: rig.input("resolved", 1, 1, Vec::new()),
            ack: rig.input("ack", 1, 2, Vec::new()),
            constant: Some(immediate::Ports { request, fill }),
        };
        Scheduler::new(Path::root("scheduler"), config(SchedulerPolicy::OldestFirst), ports)
    };
    let events = check(build, 400).unwrap();
    assert_eq!([0, 2].map(|warp| issued(&events, warp)), [[0, 1, 2], [0, 1, 2]]);
    let requests: Vec<u64> = events
        .iter()
        .filter(|event| event.link == "request")
        .map(|event| event.at.0)
        .collect();
    assert_eq!(requests.len(), 2, "one for each line, whatever the number of warps");
    let issue = |pc: u32, warp: u8| {
        let text = format!("Issue {{ warp: {warp}, pc: {pc},");
        let event = events
            .iter()
            .find(|event| event.link == "issue" && event.message.starts_with(&text));
        event.expect("every instruction issues").at.0
    };
    // A request and an issue are seen on their links a cycle later, so the difference is that of their ticks.
    assert_eq!(
        issue(0, 0) - requests[0],
        52,
        "50 cycles in the cache, and a link each way"
    );
    // The pipe of tiny takes an FADD every cycle, so the second hit issues at once.
    assert!(issue(1, 0) - issue(0, 0) <= 4);
    assert_eq!(issue(2, 0) - requests[1], 52);
}

/// Two loads. The memory queue of the test has one entry.
const LOADS: &str = "LD.B32 R4, [R6]
    LD.B32 R8, [R10]
    EXIT";

#[test]
fn warp_that_waits_for_a_memory_credit_goes_in_the_cycle_after_it() {
    let grid = grid(LOADS, 1);
    for at in [40, 41, 57] {
        let build = |rig: &mut Rig| {
            let (issue, release) = rig.responder(["issue", "release"], 2, |issue: Issue| {
                vec![(11, Release::new(issue.warp(), issue.pc(), issue.group()))]
            });
            let credit = || LsuAck::QueueCredit { warp: 0 };
            let ports = Ports {
                command: rig.input("command", 1, 2, vec![(0, start(0, &grid))]),
                event: rig.output("event", 1, 1, |_| true),
                issue,
                release,
                resolved: rig.input("resolved", 1, 1, Vec::new()),
                ack: rig.input("ack", 1, 2, vec![(at, credit()), (at + 30, credit())]),
                constant: None,
            };
            let config = Config {
                memory_queue: 1,
                ..config(SchedulerPolicy::GreedyThenOldest)
            };
            Scheduler::new(Path::root("scheduler"), config, ports)
        };
        let events = check(build, 150).unwrap();
        // The rig takes an issue a cycle after the scheduler sends it.
        assert_eq!(times(&events, "issue")[1], at + 2, "{events:?}");
        assert_eq!(issued(&events, 0), [0, 1]);
    }
}

/// A scheduler that gets these starts of warps and these acknowledgements. Only an instruction at program counter 0 has a result.
fn with_acks(rig: &mut Rig, starts: Vec<(u64, WarpCommand)>, acks: Vec<(u64, LsuAck)>) -> Scheduler {
    let (issue, release) = rig.responder(["issue", "release"], 2, |issue: Issue| {
        let release = Release::new(issue.warp(), issue.pc(), issue.group());
        // The first instruction, and a fence behind two stores.
        matches!(issue.pc(), 0 | 3)
            .then_some((20, release))
            .into_iter()
            .collect()
    });
    let ports = Ports {
        command: rig.input("command", 1, 2, starts),
        event: rig.output("event", 1, 1, |_| true),
        issue,
        release,
        resolved: rig.input("resolved", 1, 1, Vec::new()),
        ack: rig.input("ack", 1, 2, acks),
        constant: None,
    };
    let config = config(SchedulerPolicy::GreedyThenOldest);
    Scheduler::new(Path::root("scheduler"), config, ports)
}

const CREDIT: LsuAck = LsuAck::QueueCredit { warp: 0 };
const DONE: LsuAck = LsuAck::StoreDone { warp: 0 };

#[test]
fn warp_ends_before_its_store_and_a_fence_of_views_in_its_slot_waits_for_it() {
    let events = |fence: &str, credit| {
        let [stores, fences] = ["FADD R1, R2, R3\nST.B32 [R6], R0\nEXIT", fence].map(|code| grid(code, 1));
        let build = |rig: &mut Rig| {
            let starts = vec![(0, start(0, &stores)), (100, start(0, &fences))];
            with_acks(rig, starts, vec![(60, CREDIT), (200, DONE), (credit, CREDIT)])
        };
        check(build, 300).unwrap()
    };
    let found = events("FENCE.VIEW.ASYNC\nEXIT", 210);
    // The credit arrives in cycle 61. The rig takes the event a cycle after the scheduler sends it.
    assert_eq!(times(&found, "event")[0], 62, "{found:?}");
    // The end of the store arrives in cycle 201.
    assert_eq!(times(&found, "issue")[2], 202, "{found:?}");
    // A MEMBAR goes to the LSU behind the store, and waits for it there.
    let found = events("MEMBAR.GPU\nEXIT", 180);
    assert!(times(&found, "issue")[2] < 120, "{found:?}");
}

#[test]
fn slot_without_a_warp_reports_the_end_of_its_stores() {
    let stores = grid("FADD R1, R2, R3\nST.B32 [R6], R0\nST.B32 [R6], R0\nEXIT", 1);
    let build = |rig: &mut Rig| {
        let acks = vec![(60, CREDIT), (61, CREDIT), (200, DONE), (240, DONE)];
        with_acks(rig, vec![(0, start(0, &stores))], acks)
    };
    let events = check(build, 300).unwrap();
    // One event for the end of the warp, and one for the end of its last store.
    assert_eq!(times(&events, "event"), [63, 242], "{events:?}");
    // The grid goes on until the second one.
    let says = |text: &str| {
        events
            .iter()
            .any(|event| event.link == "event" && event.message == text)
    };
    assert!(says("Done { warp: 0, is_storing: true }"), "{events:?}");
}

#[test]
fn fence_of_the_asynchronous_view_goes_after_the_end_of_the_last_store() {
    let stores = grid(
        "FADD R1, R2, R3\nST.B32 [R6], R0\nST.B32 [R6], R0\nFENCE.VIEW.ASYNC\nEXIT",
        1,
    );
    let build = |rig: &mut Rig| {
        let acks = vec![(60, CREDIT), (61, CREDIT), (200, DONE), (240, DONE), (250, CREDIT)];
        with_acks(rig, vec![(0, start(0, &stores))], acks)
    };
    let events = check(build, 300).unwrap();
    let issued = times(&events, "issue");
    // The end of the second store arrives in cycle 241.
    assert!(issued[2] < 200, "{events:?}");
    assert_eq!(issued[3], 242, "{events:?}");
}

/// Two instructions without a hazard, and one that waits for a load without an end.
const WAITS: &str = "IADD3 R2, PT, R5, R6, RZ, PT
    LD.B32 R4, [R6]
    FADD R5, R0, R4
    EXIT";

/// A scheduler, the end of the link of its commands, and the ends of its other links.
fn alone() -> (Scheduler, OutPort<WarpCommand>, impl Sized) {
    let ((to_command, command), (event, events)) = (wire(), wire());
    let ((issue, issued), (releases, release)) = (wire(), wire());
    let ((to_resolved, resolved), (acks, ack)) = (wire(), wire());
    let ports = Ports {
        command,
        event,
        issue,
        release,
        resolved,
        ack,
        constant: None,
    };
    let policy = SchedulerPolicy::GreedyThenOldest;
    let scheduler = Scheduler::new(Path::root("scheduler"), config(policy), ports);
    let others = (events, issued, releases, to_resolved, acks);
    (scheduler, to_command, others)
}

/// A scheduler with a warp of [`WAITS`], stalled for its load. No result has come.
pub(super) fn resident() -> Scheduler {
    let (mut scheduler, mut to_command, _others) = alone();
    scheduler.arm_invariants();
    to_command.send(Cycle(9), start(0, &grid(WAITS, 1)));
    run(&mut scheduler, &mut Cycle(9), 60);
    scheduler
}

#[test]
fn active_cycles_of_a_running_scheduler_are_those_since_its_warp_started() {
    let grid = grid(WAITS, 1);
    let (mut scheduler, mut to_command, _others) = alone();
    to_command.send(Cycle(9), start(0, &grid));
    let mut now = Cycle(9);
    // The warp starts in the tick of cycle 10. Cycles 10 to `until` - 1 are active.
    for until in [10, 11, 12, 40, 41, 100] {
        run(&mut scheduler, &mut now, until);
        let active = scheduler.stats_until(now).active_cycles;
        assert_eq!(active, until - 10, "before cycle {until}");
    }
}
