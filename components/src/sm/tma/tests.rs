//! Contract test of the bulk copy engine. The test acts as LSU, L1 and shared memory.

use std::sync::Arc;

use warpwave_hw::rig::{Rig, check};
use warpwave_isa::lane::{LaneMask, Lanes};

use super::*;
use crate::preset;
use crate::proto::launch::Grid;
use crate::storage::BASE;
use crate::test_ports::{grid, warp_inst};

/// A copy of 300 bytes, by lane 0.
fn copy(grid: &Arc<Grid>, pc: u32) -> BulkInst {
    let mut inst = warp_inst(grid, 0, pc, LaneMask(1));
    for (word, value) in [256, BASE as u32, (BASE >> 32) as u32, 300, 8].into_iter().enumerate() {
        inst.operands.words[word] = Lanes([value; 32]);
    }
    BulkInst {
        warp_inst: inst,
        cluster: None,
        cta_bytes: 1024,
    }
}

#[test]
fn copy_engine_keeps_the_contract_and_every_copy_ends_once() {
    let grid = grid("UBLKCP R0, R2, R4, R5\nUBLKCP.HI R0, R2, R4, R5", 1);
    let build = |rig: &mut Rig| {
        let (l1, l1_response) = rig.responder(["l1", "l1_response"], 2, |packet: Box<Packet>| vec![(25, packet)]);
        let (shared, shared_response) = rig.responder(["shared", "shared_response"], 2, |packet: Box<Packet>| {
            vec![(4, packet)]
        });
        let (request, response) = rig.responder(["remote", "remote_response"], 2, |packet: Box<Packet>| {
            vec![(9, packet)]
        });
        let remote = RemotePorts {
            request,
            response,
            trap: rig.output("trap", 1, 1, |_| true),
        };
        let ports = Ports {
            remote,
            input: rig.input(
                "in",
                1,
                2,
                vec![(0, copy(&grid, 0)), (1, copy(&grid, 1)), (120, copy(&grid, 0))],
            ),
            output: vec![rig.output("out", 1, 1, |now| now.0 % 6 == 0)],
            l1,
            l1_response,
            shared,
            shared_response,
        };
        let h100 = preset::load("h100-sxm5", &[]).expect("it is built in").config;
        let config = Config {
            tma: config::Tma {
                pieces: 2,
                ..h100.sm.tma
            },
            sm_in_gpc: 0,
            gpc_sms: 2,
            shared_unit: 128,
        };
        Tma::new(Path::root("tma"), config, ports)
    };
    let events = check(build, 1500).unwrap();
    let broken = |rig: &mut Rig| {
        let mut engine = build(rig);
        engine.state.free_tags.pop();
        engine
    };
    let found = check(broken, 1).unwrap_err();
    assert!(found.contains("pieces in flight and free tags: 1, not 2"), "{found}");
    let count = |link: &str| events.iter().filter(|event| event.link == link).count();
    // 300 bytes from the start of a line are three pieces. Each of the two copies to shared memory also arrives at its mbarrier.
    assert_eq!(["out", "l1", "shared"].map(count), [3, 9, 3 * 3 + 2]);
}
