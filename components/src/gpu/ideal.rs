//! Memory that answers everything after a fixed time, straight from storage.

use std::sync::Arc;

use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::time::Cycle;
use warpwave_isa::exec::atomic::atomic;

use crate::proto::mem::{LINE, Packet, PacketKind};
use crate::storage::Storage;

pub struct Ideal {
    pub path: Path,
    pub latency: u64,
    pub storage: Arc<Storage>,
    pub input: Vec<InPort<Box<Packet>>>,
    pub output: Vec<OutPort<Box<Packet>>>,
    pub queue: std::collections::VecDeque<(Cycle, usize, Box<Packet>)>,
}

impl Component for Ideal {
    fn path(&self) -> &Path {
        &self.path
    }
    fn tick(&mut self, now: Cycle) -> Activity {
        while let Some((at, sm, _)) = self.queue.front() {
            if *at > now || !self.output[*sm].has_room(now) {
                break;
            }
            let (_, sm, p) = self.queue.pop_front().unwrap();
            self.output[sm].send(now, p);
        }
        for sm in 0..self.input.len() {
            while let Some(mut p) = self.input[sm].recv(now) {
                let mut bytes = [0u8; LINE];
                self.storage.read(p.line, &mut bytes);
                match p.kind {
                    PacketKind::Load => p.bytes = bytes,
                    PacketKind::Store => {
                        for n in 0..LINE {
                            if p.byte_mask >> n & 1 == 1 {
                                self.storage.write(p.line + n as u64, &[p.bytes[n]]);
                            }
                        }
                    }
                    _ => {
                        let line = p.line;
                        let storage = self.storage.clone();
                        let a = p.atomic.as_mut().unwrap();
                        for l in &mut a.lanes[..a.n] {
                            let mut old = [0u8; 8];
                            let size = a.ty.bytes() as usize;
                            storage.read(line + u64::from(l.offset), &mut old[..size]);
                            let old = u64::from_le_bytes(old);
                            let new = atomic(a.op, a.ty, old, l.value, l.compare);
                            storage.write(line + u64::from(l.offset), &new.to_le_bytes()[..size]);
                            l.value = old;
                        }
                    }
                }
                self.queue.push_back((now + self.latency, sm, p));
            }
        }
        match self.queue.front() {
            None => Activity::Idle,
            Some((at, ..)) => Activity::Until((*at).max(now + 1)),
        }
    }
    fn reset(&mut self) {}
    fn is_quiescent(&self) -> bool {
        self.queue.is_empty()
    }
    fn probe(&self, _: &mut dyn Probe) {}
    fn stats(&self, _: &mut dyn Report) {}
}
