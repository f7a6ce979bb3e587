//! The CTA manager alone keeps the contract of a component. The test sends CTAs as GigaThread and responds as the schedulers.

use warpwave_hw::rig::{Rig, check};

use super::*;
use crate::preset;
use crate::proto::cluster::{ClusterPlacement, CtaPlacement};
use crate::proto::launch::TrapKind;
use crate::test_ports::grid;

/// A scheduler's events for a command: each warp arrives at barrier 0, and ends when the barrier opens.
fn scheduler(command: WarpCommand) -> Vec<(u64, WarpEvent)> {
    let arrive = |warp| WarpEvent::Arrive {
        warp,
        barrier: 0,
        threads: 0,
        pass: false,
        count: None,
    };
    match command {
        WarpCommand::Start(start) => vec![(5 + u64::from(start.index), arrive(start.warp))],
        WarpCommand::Release(warps) => ones(warps)
            .map(|slot| {
                (
                    9,
                    WarpEvent::Done {
                        warp: slot as u8,
                        is_storing: false,
                    },
                )
            })
            .collect(),
        WarpCommand::OpenCluster(_) => Vec::new(),
    }
}

/// A manager with four CTAs, which end at about the same time. The link to GigaThread holds one event, taken in each fifth cycle.
fn manager(rig: &mut Rig, traps: Vec<(u64, Box<Trap>)>) -> CtaManager {
    manager_of(rig, traps, [const { None }; 4])
}

/// As [`manager`], with these placements of the CTAs.
fn manager_of(rig: &mut Rig, traps: Vec<(u64, Box<Trap>)>, placements: [Option<ClusterPlacement>; 4]) -> CtaManager {
    let grid = Arc::new(Grid {
        block: [96, 1, 1],
        ..(*grid("BAR 0x0, 0x0\nEXIT", 4)).clone()
    });
    let launch = |n: u64| CtaLaunch {
        grid: grid.clone(),
        index: n,
        placement: placements[n as usize].clone(),
    };
    let launches = [0, 1, 2, 60].into_iter().zip((0..).map(launch)).collect();
    let subcores = [["command0", "warp0"], ["command1", "warp1"]];
    let (command, warp) = subcores
        .map(|names| rig.responder(names, 2, scheduler))
        .into_iter()
        .unzip();
    let ports = Ports {
        launch: rig.input("launch", 1, 4, launches),
        event: rig.output("event", 1, 1, |now| now.0 % 5 == 0),
        command,
        warp_info: ["start0", "start1"].map(|name| rig.output(name, 1, 2, |_| true)).into(),
        warp,
        traps: vec![rig.input("trap", 1, 1, traps)],
        cluster: None,
    };
    let config = Config {
        subcores: 2,
        warps_per_subcore: 6,
        max_ctas: 4,
        barrier: preset::load("tiny", &[]).expect("tiny is built in").config.sm.barrier,
        shared_unit: 128,
    };
    CtaManager::new(Path::root("cta"), config, ports)
}

#[test]
fn cta_manager_under_back_pressure_keeps_the_contract_and_reports_every_cta_once() {
    let events = check(|rig: &mut Rig| manager(rig, Vec::new()), 250).unwrap();
    let broken = |rig: &mut Rig| {
        let mut manager = manager(rig, Vec::new());
        manager.state.used_slots = 0b1000;
        manager
    };
    let found = check(broken, 1).unwrap_err();
    assert!(found.contains("used CTA slots: 8, not 0"), "{found}");
    let done = |index: &u64| {
        let text = format!("CtaDone {{ index: {index},");
        events
            .iter()
            .filter(|event| event.link == "event" && event.message.contains(&text))
            .count()
            == 1
    };
    assert!((0..4).all(|index| done(&index)), "{events:?}");
}

#[test]
fn trap_reaches_gigathread_although_ends_of_ctas_fill_the_link() {
    for cycle in 0..100 {
        let trap = || {
            Box::new(Trap {
                kind: TrapKind::Misaligned,
                pc: 0,
                line: 1,
                block: [0; 3],
                thread: [0; 3],
                address: None,
                bytes: 4,
                space: "global",
            })
        };
        let events = check(|rig: &mut Rig| manager(rig, vec![(cycle, trap())]), 250).unwrap();
        let traps = events
            .iter()
            .filter(|event| event.link == "event" && event.message.contains("Trap"));
        assert_eq!(traps.count(), 1, "a trap at cycle {cycle}");
    }
}

#[test]
fn shared_memory_learns_of_the_start_and_the_end_of_each_cta_of_a_cluster() {
    // Clusters of one CTA. The last one comes in cycle 60, and takes the slot of the first one.
    let placed = |slot, start| Some(ClusterPlacement::from([CtaPlacement { sm: 0, slot, start }]));
    let build = |rig: &mut Rig| {
        let mut manager = manager_of(
            rig,
            Vec::new(),
            [placed(0, 1), placed(2, 7), placed(1, 1), placed(0, 2)],
        );
        manager.ports.cluster = Some(ClusterPorts {
            placed: rig.output("placed", 1, 2, |_| true),
            residence: rig.output("residence", 1, 1, |now| now.0 % 3 == 0),
            arrive: rig.output("arrive", 1, 2, |_| true),
            open: rig.input("open", 1, 2, Vec::new()),
        });
        manager
    };
    let events = check(build, 250).unwrap();
    let told = |slot: u8, start: u32, is_resident: bool| {
        let text = format!("slot: {slot}, start: {start}, slot_bytes: 0, is_resident: {is_resident} }}");
        let mut told = events.iter().filter(|event| event.link == "residence");
        told.position(|event| event.message.contains(&text))
    };
    // The messages of a slot are in order.
    let of_slot_0 = [(1, true), (1, false), (2, true), (2, false)].map(|(start, is)| told(0, start, is));
    assert!(
        of_slot_0.is_sorted() && of_slot_0.iter().all(Option::is_some),
        "{events:?}"
    );
    assert!(told(2, 7, true) < told(2, 7, false) && told(1, 1, true) < told(1, 1, false));
    assert_eq!(events.iter().filter(|event| event.link == "residence").count(), 8);
}
