//! An ideal memory alone: the cycle of each response, the values, and the contract of a component. The test acts as the LSU.

use warpwave_hw::rig::{Rig, check};

use super::*;
use crate::storage::BASE;
use crate::test_ports::{add, all, load, run, store, times, wire};

fn memory(latency: u32) -> (IdealMemory, OutPort<Box<Packet>>, InPort<Box<Packet>>) {
    let ((lsu, requests), (responses, to_lsu)) = (wire(), wire());
    let ports = vec![Ports { requests, responses }];
    let storage = Arc::new(Storage::new(1 << 20));
    (
        IdealMemory::new(Path::root("l1"), Config { latency }, ports, storage),
        lsu,
        to_lsu,
    )
}

#[test]
fn every_kind_of_access_takes_the_latency() {
    for latency in [1, 8, 40] {
        let (mut memory, mut lsu, mut responses) = memory(latency);
        let mut now = Cycle::ZERO;
        for packet in [load(0, 0b1111, 1), store(1, 0xff, 7, 2), add(2, 3, 5, 3)] {
            let (sent, tag) = (now, packet.tag);
            lsu.send(now, packet);
            // One cycle on the link to the memory, the latency, one on the link back.
            run(&mut memory, &mut now, sent.0 + u64::from(latency) + 1);
            assert!(all(&mut responses, now).is_empty(), "latency {latency}, packet {tag}");
            run(&mut memory, &mut now, sent.0 + u64::from(latency) + 2);
            assert_eq!(all(&mut responses, now)[0].tag, tag, "latency {latency}");
        }
        assert!(memory.is_quiescent());
    }
}

#[test]
fn accesses_see_each_other_in_order_of_arrival() {
    let (mut memory, mut lsu, mut responses) = memory(4);
    let mut now = Cycle::ZERO;
    // Byte 0 becomes 7, then three lanes add 5 each, then a load reads 22.
    lsu.send(now, store(0, 0b1, 7, 0));
    lsu.send(now, add(0, 3, 5, 1));
    lsu.send(now, load(0, 0b0001, 2));
    run(&mut memory, &mut now, 12);
    let packets = all(&mut responses, now);
    let old: Vec<u128> = packets[1].atomic.as_ref().unwrap().lanes[..3]
        .iter()
        .map(|lane| lane.value)
        .collect();
    assert_eq!((old, packets[2].bytes[0]), (vec![7, 12, 17], 22));
    assert_eq!(memory.storage.load(BASE), 22);
}

#[test]
fn ideal_memory_keeps_the_contract_and_answers_each_packet_once() {
    let build = |rig: &mut Rig| {
        let traffic = vec![
            (0, load(0, 0b1111, 0)),
            (1, store(1, 0xff, 7, 1)),
            (2, load(1, 0b0001, 2)),
            (40, load(2, 0b0010, 3)),
        ];
        let ports = Ports {
            requests: rig.input("requests", 1, 2, traffic),
            responses: rig.output("responses", 1, 1, |now| now.0 % 5 == 0),
        };
        let storage = Arc::new(Storage::new(1 << 20));
        IdealMemory::new(Path::root("l1"), Config { latency: 3 }, vec![ports], storage)
    };
    let events = check(build, 100).unwrap();
    let broken = |rig: &mut Rig| {
        let mut memory = build(rig);
        for at in [90, 80] {
            memory.state.delays[0].push_back((Cycle(at), Box::new(Packet::blank())));
        }
        memory
    };
    let found = check(broken, 1).unwrap_err();
    assert!(found.contains("packets of port 0 out of order: 1, not 0"), "{found}");
    assert_eq!(times(&events, "responses").len(), 4);
}
