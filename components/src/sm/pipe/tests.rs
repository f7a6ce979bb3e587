//! The pipes alone: the contract of a component, the order of results, and their latency.

use std::collections::BTreeMap;
use std::sync::Arc;

use warpwave_hw::component::Component;
use warpwave_hw::path::Path;
use warpwave_hw::rig::{Event, Rig, check};
use warpwave_hw::stats::{Latency, Report};
use warpwave_hw::time::Cycle;
use warpwave_isa::lane::LaneMask;

use super::branch::{self, BranchUnit};
use super::math::{self, MathPipe};
use crate::proto::launch::Grid;
use crate::proto::warp::WarpInst;
use crate::test_ports::{grid, run, times, wire, wire_of};

/// Cycles from issue to the pipe: dispatch, and the link to the pipe.
const ISSUE_TO_PIPE: u64 = 2;

/// The instructions of a grid's program. Instruction n arrives at the pipe in cycle `arrivals[n]`.
fn warp_insts(grid: &Arc<Grid>, arrivals: &[u64]) -> Vec<(u64, Box<WarpInst>)> {
    let warp_inst = |(pc, &at): (usize, &u64)| {
        let warp_inst = WarpInst {
            pc: pc as u32,
            issued: Cycle(at - ISSUE_TO_PIPE),
            lanes: LaneMask(0xffff_0001),
            ..WarpInst::blank(0, grid.clone())
        };
        // The link takes a cycle.
        (at - 1, Box::new(warp_inst))
    };
    arrivals.iter().enumerate().map(warp_inst).collect()
}

/// The program counters of a link's messages, in order.
fn order(events: &[Event], link: &str) -> Vec<u32> {
    let pc = |event: &Event| event.message.split("pc: ").nth(1)?.split(',').next()?.parse().ok();
    events
        .iter()
        .filter(|event| event.link == link)
        .filter_map(pc)
        .collect()
}

/// A math pipe that receives `operands`. Its results are taken in the cycles in which `takes` is true.
fn math_pipe(rig: &mut Rig, operands: Vec<(u64, Box<WarpInst>)>, depth: u32, takes: fn(Cycle) -> bool) -> MathPipe {
    let ports = math::Ports {
        input: rig.input("operands", 1, 2, operands),
        output: rig.output("results", 1, depth, takes),
        group: None,
    };
    MathPipe::new(Path::root("pipe"), ports)
}

const MATH: &str = "FFMA R0, R1, R2, R3
    MUFU.RCP R1, R2
    IADD3 R2, PT, R3, R4, RZ, PT
    FADD R3, R4, R5";

#[test]
fn math_pipe_under_back_pressure_keeps_the_contract_and_the_order() {
    let program = grid(MATH, 1);
    let build = |rig: &mut Rig| math_pipe(rig, warp_insts(&program, &[2, 3, 30, 31]), 2, |now| now.0 % 5 == 0);
    let events = check(build, 150).unwrap();
    assert_eq!(order(&events, "results"), [0, 1, 2, 3]);
}

#[test]
fn result_leaves_one_cycle_before_a_dependent_instruction_may_issue() {
    let program = grid(MATH, 1);
    let arrivals = [10, 100, 200, 300];
    let build = |rig: &mut Rig| math_pipe(rig, warp_insts(&program, &arrivals), 8, |_| true);
    let events = check(build, 400).unwrap();
    let expected: Vec<u64> = arrivals
        .iter()
        .zip(&program.timing)
        .map(|(at, timing)| at - ISSUE_TO_PIPE + u64::from(timing.latency) - 1)
        .collect();
    assert_eq!(times(&events, "results"), expected);
}

#[test]
fn branch_unit_under_back_pressure_keeps_the_contract_and_the_order() {
    let program = grid("BRA 0\nBSSY B0\nBAR 0x3, 0x40\nEXIT", 1);
    let build = |rig: &mut Rig| {
        let input = rig.input("operands", 1, 2, warp_insts(&program, &[2, 3, 4, 40]));
        let resolved = rig.output("resolved", 1, 2, |now| now.0 % 4 == 0);
        let spent = rig.output("spent", 1, 2, |now| now.0 % 7 == 0);
        BranchUnit::new(Path::root("branch"), branch::Ports { input, resolved, spent })
    };
    let events = check(build, 150).unwrap();
    assert_eq!(order(&events, "resolved"), [0, 1, 2, 3]);
    assert_eq!(order(&events, "spent"), [0, 1, 2, 3]);
}

/// Counters by name.
#[derive(Default)]
struct Counters(BTreeMap<&'static str, u64>);

impl Report for Counters {
    fn count(&mut self, name: &'static str, value: u64) {
        self.0.insert(name, value);
    }
    fn latency(&mut self, _: &'static str, _: &Latency) {}
}

#[test]
fn pipe_is_busy_for_the_interval_of_each_instruction() {
    let (mut operands, input) = wire();
    let (output, _results) = wire_of(1, 64);
    let ports = math::Ports {
        input,
        output,
        group: None,
    };
    let mut pipe = MathPipe::new(Path::root("pipe"), ports);
    let (mut now, program) = (Cycle::ZERO, grid(MATH, 1));
    for (at, warp_inst) in warp_insts(&program, &[3, 30, 60, 90]) {
        run(&mut pipe, &mut now, at);
        operands.send(now, warp_inst);
    }
    run(&mut pipe, &mut now, 150);
    let mut counters = Counters::default();
    pipe.stats(&mut counters);
    // The preset `tiny` has an interval of 8 for the SFU, and of 2 for the pipes of the three others.
    let of_pipe = ["instructions", "busy_cycles"].map(|name| counters.0[name]);
    assert_eq!(of_pipe, [4, 2 + 8 + 2 + 2]);
}
