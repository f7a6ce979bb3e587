//! Events of the SMs: their subscribers, and the waits that a stopped launch leaves open.

use std::any::Any;

use warpwave_hw::component::Component;
use warpwave_hw::tile::Tile;
use warpwave_hw::time::Cycle;

use super::Gpu;
use crate::proto::event::Log;
use crate::sm::lsu::Lsu;
use crate::sm::shared::SharedMemory;
use crate::sm::subcore::dispatch::Dispatch;
use crate::sm::subcore::scheduler::Scheduler;

impl Gpu {
    /// Subscribes to the events of every SM. Returns one log per SM, in SM order.
    pub fn subscribe(&mut self) -> Vec<Log> {
        let n_sms = self.config.n_sms() as usize;
        // The front tile comes first, then one tile per SM.
        let tiles = self.clock.tiles_mut().iter_mut().skip(1).take(n_sms);
        let subscribe = |tile: &mut Tile| {
            let log = Log::subscribed();
            tile.components_mut().for_each(|component| attach(component, &log));
            log
        };
        tiles.map(subscribe).collect()
    }

    /// Logs the waits of all warps that have not ended, up to cycle `until`.
    pub(super) fn log_open_waits(&self, until: Cycle) {
        for component in self.components() {
            // The tile holds components as trait objects. Their types are found only at run time.
            let block: &dyn Any = component;
            if let Some(scheduler) = block.downcast_ref::<Scheduler>() {
                scheduler.log_open_waits(until);
            }
        }
    }
}

/// Subscribes the log to a block that emits events.
fn attach(component: &mut dyn Component, log: &Log) {
    // The tile holds components as trait objects. Their types are found only at run time.
    let block: &mut dyn Any = component;
    if let Some(scheduler) = block.downcast_mut::<Scheduler>() {
        scheduler.subscribe(log.clone());
    } else if let Some(dispatch) = block.downcast_mut::<Dispatch>() {
        dispatch.subscribe(log.clone());
    } else if let Some(lsu) = block.downcast_mut::<Lsu>() {
        lsu.subscribe(log.clone());
    } else if let Some(shared) = block.downcast_mut::<SharedMemory>() {
        shared.subscribe(log.clone());
    }
}
