//! Contract test of the LSU. The test acts as sub-cores, shared memory and L1.

use std::sync::Arc;

use warpwave_hw::rig::{Rig, check};
use warpwave_isa::lane::{LaneMask, Lanes};

use super::*;
use crate::preset;
use crate::proto::launch::Grid;
use crate::storage::BASE;
use crate::test_ports::{grid, warp_inst};

const PROGRAM: &str = "LD.B32 R0, [R2]
    ST.B32 [R2], R4
    LD.B64 R0, [R2]
    ST.SHARED.B32 [R2], R4
    SHFL.BFLY R1, PT, R0, 0x10, 0x1f";

/// The instruction at `pc` of the program. The addresses of its lanes are `stride` bytes apart.
fn access(grid: &Arc<Grid>, (subcore, pc): (u8, u32), address: u64, stride: u32) -> Box<WarpInst> {
    let mut inst = warp_inst(grid, subcore, pc, LaneMask::ALL);
    inst.operands.words[0] = Lanes(std::array::from_fn(|lane| address as u32 + lane as u32 * stride));
    inst.operands.words[1] = Lanes([(address >> 32) as u32; 32]);
    inst
}

#[test]
fn lsu_keeps_the_contract_and_every_access_ends_once() {
    let grid = Arc::new(Grid {
        allocations: vec![(BASE, 1 << 16)],
        shared_bytes: 4096,
        ..(*grid(PROGRAM, 1)).clone()
    });
    let at = |subcore, pc, address, stride| access(&grid, (subcore, pc), address, stride);
    let build = |rig: &mut Rig| {
        let first = vec![
            (0, at(0, 0, BASE, 4)),
            (1, at(0, 1, BASE + 512, 8)),
            (2, at(0, 3, 64, 4)),
            (60, at(0, 0, BASE + 1024, 128)),
        ];
        let second = vec![
            (0, at(1, 2, BASE, 8)),
            (1, at(1, 4, 0, 0)),
            (150, at(1, 0, BASE + 2048, 4)),
        ];
        let (l1, response) = rig.responder(["l1", "response"], 2, |packet: Box<Packet>| vec![(30, packet)]);
        let ports = Ports {
            input: vec![rig.input("in0", 1, 2, first), rig.input("in1", 1, 2, second)],
            output: vec![
                rig.output("out0", 1, 2, |now| now.0 % 4 == 0),
                rig.output("out1", 1, 2, |_| true),
            ],
            ack: vec![
                rig.output("ack0", 1, 2, |_| true),
                rig.output("ack1", 1, 2, |now| now.0 % 3 == 0),
            ],
            shared: rig.output("shared", 1, 2, |now| now.0 % 7 == 0),
            l1,
            response,
            trap: rig.output("trap", 1, 1, |_| true),
            cluster: None,
            bulk: None,
        };
        let tiny = preset::load("tiny", &[]).expect("tiny is built in").config;
        let config = Config {
            sm: 0,
            sm_in_gpc: 0,
            cta_slots: 2,
            shared_unit: 128,
            lsu: tiny.sm.lsu,
            constant_latency: tiny.sm.constant.latency,
            fence: tiny.sm.fence,
            first_local_slot: 0,
            warps_per_subcore: 4,
        };
        Lsu::new(Path::root("lsu"), config, ports)
    };
    let events = check(build, 500).unwrap();
    let count = |link: &str| events.iter().filter(|event| event.link == link).count();
    let counts = ["out0", "out1", "shared", "trap"].map(count);
    assert_eq!(
        counts,
        [3, 2, 2, 0],
        "loads and stores, accesses to shared memory, no trap"
    );
}
