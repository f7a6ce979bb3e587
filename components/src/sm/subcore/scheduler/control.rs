//! Control instructions: their effect on the warp, once the guard's lanes are known.

use warpwave_hw::time::Cycle;
use warpwave_isa::barrier;
use warpwave_isa::lane::LaneMask;
use warpwave_isa::opcode::Opcode;

use super::Scheduler;
use crate::proto::predecoded::Group;
use crate::proto::warp::WarpEvent;
use crate::sm::subcore::stall::WarpState;
use crate::sm::subcore::warp::ClusterState;

/// Longest sleep in nanoseconds: 1 ms (PTX ISA, `nanosleep`).
const LONGEST_SLEEP: u32 = 1_000_000;

/// Cycles of a sleep of `ns` nanoseconds, with a core clock in kHz.
fn sleep_cycles(ns: u32, core_khz: u32) -> u64 {
    // kHz times nanoseconds are millionths of a cycle.
    u64::from(ns.min(LONGEST_SLEEP)) * u64::from(core_khz) / 1_000_000
}

/// Cycles of the longest sleep, with a core clock in kHz.
pub(crate) fn longest_sleep(core_khz: u32) -> u64 {
    sleep_cycles(LONGEST_SLEEP, core_khz)
}

impl Scheduler {
    /// Executes the control instruction at `pc` in `lanes`. `a` and `b` are its operands, `count` is the number of lanes whose predicate
    /// holds. In the lanes of `apart`, operand A differs from `a`.
    pub(super) fn resolve(
        &mut self,
        slot: usize,
        pc: u32,
        lanes: LaneMask,
        apart: LaneMask,
        [a, b, count]: [u32; 3],
        now: Cycle,
    ) {
        let state = &mut self.state;
        let warp = state
            .warps
            .get_mut(slot)
            .expect("control instructions belong to resident warps");
        let inst = &warp.grid.program.code()[pc as usize];
        let groups = inst.mods.count;
        let flow = &mut warp.flow;
        match inst.op {
            Opcode::Bra => {
                state.stats.branches += 1;
                let taken = lanes & flow.active();
                // Divergent: some active lanes take the branch, and some do not.
                let divergent = u64::from(!taken.is_empty() && taken != flow.active());
                state.stats.divergent_branches += divergent;
                let [issues, diverged] = state.stats.branches_by_pc.at(pc);
                *issues += 1;
                *diverged += divergent;
                flow.branch(lanes, inst.target);
            }
            Opcode::Bssy => flow.bssy(inst.conv),
            Opcode::Bsync => flow.bsync(inst.conv),
            Opcode::Break => flow.break_from(inst.conv, lanes),
            // Without lanes its guard is false everywhere: the warp steps on, as in the last arm.
            Opcode::Warpsync if !lanes.is_empty() => {
                flow.warpsync(LaneMask(a), apart, inst.mods.count == 0);
                // The next issue is in the next cycle at the earliest, in any case.
                if self.config.warp_barrier_latency > 1 {
                    warp.pause(WarpState::Wait, now + u64::from(self.config.warp_barrier_latency));
                    state.resuming |= 1 << slot;
                }
            }
            Opcode::Bar | Opcode::BarRed if !lanes.is_empty() && !barrier::is_valid(a, b, inst.mods.count == 1) => {
                self.trap(slot, pc, lanes);
            }
            // Without lanes the guard is false everywhere: the warp steps on, as in the last arm.
            Opcode::Bar | Opcode::BarRed if !lanes.is_empty() => {
                warp.barrier = (a as u8, b);
                // Diverged lanes come here group by group: their counts add up until the warp arrives.
                if inst.op == Opcode::BarRed {
                    *warp.barrier_count.get_or_insert(0) += count;
                }
                // Count 1 is BAR.ARV: its lanes continue at the warp's arrival.
                if flow.arrive(lanes, inst.mods.count != 1) {
                    self.arrive_at_barrier(slot, now);
                }
            }
            Opcode::Exit => {
                state.stats.exits += 1;
                let leaving = lanes & flow.active();
                let [issues, partial] = state.stats.exits_by_pc.at(pc);
                *issues += 1;
                *partial += u64::from(!leaving.is_empty() && leaving != flow.active());
                // A barrier needs only live lanes, so this exit can complete the warp's arrival.
                let arrived = flow.exit(lanes);
                if warp.cluster != ClusterState::default() {
                    self.arrive_at_cluster_barrier(slot);
                }
                if arrived {
                    self.arrive_at_barrier(slot, now);
                }
            }
            // Split barrier: lanes go on after the arrival, and stop at the wait.
            Opcode::ClusterArrive => {
                flow.step();
                warp.cluster.arrived |= lanes;
                // A new phase: a lane that never waited in the phase before waits for this one.
                warp.cluster.open &= !lanes;
                self.arrive_at_cluster_barrier(slot);
            }
            Opcode::ClusterWait => {
                // Lanes that wait after the barrier has opened pass at once.
                let waiting = lanes & !warp.cluster.open;
                warp.cluster.open &= !lanes;
                flow.wait_for_cluster(waiting);
                warp.at_barrier = flow.is_at_barrier();
            }
            Opcode::BulkCommit => warp.close(Group::Bulk),
            Opcode::GmmaCommit => warp.close(Group::Products),
            Opcode::BulkWait => warp.wait(Group::Bulk, groups),
            Opcode::GmmaWait => warp.wait(Group::Products, groups),
            Opcode::Depbar => warp.wait(Group::Copies, groups),
            // Without lanes nothing sleeps: the warp steps on, as in the last arm.
            Opcode::Nanosleep if !lanes.is_empty() => {
                flow.step();
                // `a` is in nanoseconds.
                let cycles = sleep_cycles(a, self.config.core_khz);
                warp.pause(WarpState::Sleeping, now + cycles.max(1));
                state.resuming |= 1 << slot;
            }
            Opcode::Trap if !lanes.is_empty() => self.trap(slot, pc, lanes),
            _ => flow.step(),
        }
        // The lanes of an exchange (such as SHFL) met at a WARPSYNC, but continue at different instructions.
        if let Some((pc, lanes)) = self.state.warp(slot).flow.take_split_exchange() {
            self.trap(slot, pc, lanes);
        }
    }

    /// Reports a trap, which ends the launch.
    fn trap(&mut self, slot: usize, pc: u32, lanes: LaneMask) {
        let warp = slot as u8;
        self.state.outbox.push(WarpEvent::Trap { warp, pc, lanes });
        // The warp issues nothing until the launch ends.
        self.state.warp(slot).at_barrier = true;
    }

    /// Sends the warp's arrival at the cluster barrier, once per round, when every live lane has arrived.
    fn arrive_at_cluster_barrier(&mut self, slot: usize) {
        let warp = self.state.warp(slot);
        let live = warp.flow.live();
        if warp.cluster.announced || live.is_empty() || live & warp.cluster.arrived != live {
            return;
        }
        warp.cluster.announced = true;
        self.state.outbox.push(WarpEvent::ArriveCluster { warp: slot as u8 });
    }

    /// Opens the cluster barrier for a warp. Waiting lanes continue now; a later wait of the other lanes passes at once.
    pub(super) fn open_cluster(&mut self, slot: usize, now: Cycle) {
        // The warp may have ended since its arrival.
        let Some(warp) = self.state.warps.get_mut(slot) else {
            return;
        };
        let waiting = warp.flow.at_cluster_barrier();
        warp.cluster = ClusterState {
            open: warp.flow.live() & !waiting,
            ..ClusterState::default()
        };
        if !waiting.is_empty() {
            // After a trap of the other lanes the warp stays stopped.
            warp.at_barrier &= !warp.flow.is_at_barrier();
            warp.flow.release_cluster();
            self.redirect_fetch(slot, None, now);
        }
    }

    /// Sends the warp's arrival at its block barrier, once all live lanes have come. Lanes of a BAR.ARV continue, the others wait.
    fn arrive_at_barrier(&mut self, slot: usize, now: Cycle) {
        let warp = self.state.warp(slot);
        warp.at_barrier = warp.flow.is_at_barrier();
        let (barrier, threads) = warp.barrier;
        let count = warp.barrier_count.take();
        let pass = !warp.flow.waits_at_block_barrier();
        self.redirect_fetch(slot, None, now);
        self.state.outbox.push(WarpEvent::Arrive {
            warp: slot as u8,
            barrier,
            threads,
            pass,
            count,
        });
    }
}
