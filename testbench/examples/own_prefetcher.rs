//! Inserts a custom component between the LSU and the L1 of each SM: a next-line prefetcher.
//!
//! A component implements [`Component`]: once a cycle, `tick` takes what has arrived and sends what leaves, through bounded links.
//! The prefetcher forwards every packet. After a load of the LSU it sends its own load of the next line, with the tag [`OWN_TAG`], and
//! drops the response. The L1 does the rest, so no value can change.
//!
//! ```sh
//! cargo run --release --example own_prefetcher
//! ```

use warpwave::components::preset;
use warpwave::components::proto::mem::{LINE, OWN_TAG, Packet, PacketKind};
use warpwave::gpu::{BeforeL1Ports, Factory, Gpu, GpuError};
use warpwave::hw::component::{Activity, Component};
use warpwave::hw::link::wires::Show;
use warpwave::hw::path::Path;
use warpwave::hw::probe::Probe;
use warpwave::hw::stats::Report;
use warpwave::hw::time::Cycle;

struct NextLine {
    path: Path,
    ports: BeforeL1Ports,
    state: State,
}

#[derive(Default)]
struct State {
    /// The prefetch to send, in the next cycle without a packet from the LSU.
    next: Option<Box<Packet>>,
    prefetches: u64,
}

impl NextLine {
    fn new(path: Path, ports: BeforeL1Ports) -> Self {
        let state = State::default();
        NextLine { path, ports, state }
    }
}

warpwave::hw::warm!(NextLine);

impl Component for NextLine {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        let NextLine { ports, state, .. } = self;
        while ports.to_lsu.has_room(now)
            && let Some(packet) = ports.from_l1.recv(now)
        {
            if packet.tag != OWN_TAG {
                ports.to_lsu.send(now, packet);
            }
        }
        if ports.to_l1.has_room(now) {
            if let Some(packet) = ports.from_lsu.recv(now) {
                if packet.kind == PacketKind::Load {
                    let mut prefetch = Box::new(Packet::blank());
                    (prefetch.line, prefetch.sectors) = (packet.line + LINE as u64, packet.sectors);
                    prefetch.tag = OWN_TAG;
                    state.next = Some(prefetch);
                }
                ports.to_l1.send(now, packet);
            } else if let Some(prefetch) = state.next.take() {
                state.prefetches += 1;
                ports.to_l1.send(now, prefetch);
            }
        }
        Activity::busy_if(state.next.is_some() || ports.from_lsu.is_ready(now) || ports.from_l1.is_ready(now))
    }

    fn reset(&mut self) {
        self.ports.clear_inputs();
        self.state = State::default();
    }

    fn is_quiescent(&self) -> bool {
        self.state.next.is_none()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.bit("has_next", Some(self.state.next.is_some()));
    }

    fn stats(&self, report: &mut dyn Report) {
        report.count("prefetches", self.state.prefetches);
    }
}

const LINES: u32 = 64;

/// Returns the cycles, and the number of prefetches if there is a prefetcher.
fn run(factory: &Factory) -> Result<(u64, Option<u64>), GpuError> {
    let mut gpu = Gpu::with_factory(preset::load("tiny", &[])?.config, factory)?;
    let module = gpu.load(include_str!("walk.ptx"))?;
    let data = gpu.buffer(&[3u32; LINES as usize * 32])?;
    let sums = gpu.buffer(&[0u32; 32])?;
    let report = gpu.launch(&module, "walk", (1, 32), &[&data, &sums, &LINES, &1u32])?;
    assert_eq!(gpu.read(&sums), [3 * LINES; 32]);
    Ok((report.cycles(), report.counter("prefetcher", "prefetches")))
}

/// Compares the machine with and without the prefetcher.
pub fn main() -> Result<(), GpuError> {
    let (plain, none) = run(&Factory::new())?;
    let (own, prefetches) = run(&Factory::new().before_l1("prefetcher", NextLine::new))?;
    println!("plain {plain} cycles; next line {own} cycles, {prefetches:?} prefetches");
    // One prefetch for each load.
    assert_eq!((none, prefetches), (None, Some(LINES.into())));
    assert!(own < plain);
    Ok(())
}
