//! The dispatch unit alone keeps the contract of a component. The test sends as the scheduler, and responds as the pipes.

use warpwave_hw::rig::{Rig, check};
use warpwave_isa::lane::LaneMask;

use super::*;
use crate::test_ports::grid;

const PROGRAM: &str = "FFMA R0, R1, R2, R3
    IADD3 R1, PT, R0, R3, RZ, PT
    LD.B32 R2, [R4]
    S2R R5, SR_TID.X";

#[test]
fn dispatch_unit_keeps_the_contract_and_completes_every_instruction() {
    let grid = grid(PROGRAM, 1);
    let start = |warp| {
        WarpInfo::Start(WarpStart {
            warp,
            cta: 0,
            index: u32::from(warp),
            block: [0; 3],
            shared_base: 0,
            lanes: LaneMask::ALL,
            generation: false,
            grid: grid.clone(),
        })
    };
    let issue = |(n, at): (u32, u64)| (at, Issue::new((n / 4 % 2) as u8, n % 4, LaneMask(0xffff_0001), 0));
    let issues: Vec<_> = (0..).zip([3, 4, 5, 6, 7, 40, 41, 90]).map(issue).collect();
    let build = |rig: &mut Rig| {
        let (mut pipes, mut results, mut queued_results) = (Vec::new(), Vec::new(), Vec::new());
        for (n, name) in PIPE_NAMES.into_iter().enumerate() {
            let latency = 3 + 5 * n as u64;
            let result = ["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7"][n];
            let (pipe, done) = rig.responder([name, result], 2, move |inst: Box<WarpInst>| vec![(latency, inst)]);
            pipes.push(pipe);
            match n == Pipe::Lsu as usize {
                true => queued_results.push(done),
                false => results.push(done),
            }
        }
        let ports = Ports {
            warp_info: rig.input("start", 1, 2, vec![(0, start(0)), (1, start(1))]),
            issue: rig.input("issue", 1, 2, issues.clone()),
            release: rig.output("release", 1, 4, |now| now.0 % 3 != 0),
            pipes,
            results,
            queued_results,
        };
        let config = Config {
            subcore: 0,
            subcores: 1,
            warps: 2,
            warp_registers: 64,
            sm: (0, 1),
            core_khz: 1_000_000,
        };
        Dispatch::new(Path::root("dispatch"), config, ports)
    };
    let events = check(build, 200).unwrap();
    let broken = |rig: &mut Rig| {
        let mut dispatch = build(rig);
        let mut stray = Box::new(WarpInst::blank(0, grid.clone()));
        stray.warp = 77;
        dispatch.state.latch = Some((Cycle(1000), stray));
        dispatch
    };
    let found = check(broken, 1).unwrap_err();
    assert!(
        found.contains("slot of the latched instruction: 77, at most"),
        "{found}"
    );
    let releases = events.iter().filter(|event| event.link == "release");
    assert_eq!(releases.count(), issues.len());
}
