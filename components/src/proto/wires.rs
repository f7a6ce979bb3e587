//! One number per message, for the handshake rows of a waveform: a program counter, a line, a warp or a CTA.

use warpwave_hw::link::wires::Payload;
use warpwave_isa::lane::LaneMask;

use super::bulk::BulkInst;
use super::cluster::{ClusterArrive, ClusterOpen, ClusterPlaced, CtaResidence};
use super::constant::ConstantLine;
use super::issue::{Issue, Release};
use super::launch::{CtaLaunch, Grid, GridEvent, SmEvent, Trap};
use super::mem::{Packet, SliceCommand, shown};
use super::warp::{LsuAck, Resolved, WarpCommand, WarpEvent, WarpInfo, WarpInst};

/// Implements [`Payload`]: `Message: "name of the number" = number, corrupt = change of one bit;`.
macro_rules! payload {
    ($($message:ty: $name:literal = $number:expr, corrupt = $corrupt:expr;)+) => {
        $(impl Payload for $message {
            const NAME: &'static str = $name;

            fn summary(&self) -> u64 {
                let number: fn(&$message) -> u64 = $number;
                // 48 bits, the width of an address in a waveform.
                number(self) & 0xffff_ffff_ffff
            }

            fn corrupt(&mut self) {
                let corrupt: fn(&mut $message) = $corrupt;
                corrupt(self);
            }
        })+
    };
}

payload! {
    Grid: "launch" = |grid| grid.id.into(), corrupt = |grid| grid.grid[0] ^= 1;
    GridEvent: "launch" = |event| match event {
        GridEvent::Done { grid, .. } => (*grid).into(),
        GridEvent::Trap(trap) => trap.pc.into(),
    }, corrupt = |event| match event {
        GridEvent::Done { grid, .. } => *grid ^= 1,
        GridEvent::Trap(trap) => trap.pc ^= 1,
    };
    CtaLaunch: "cta" = |launch| launch.index, corrupt = |launch| launch.index ^= 1;
    SmEvent: "cta" = |event| match event {
        SmEvent::CtaDone { index, .. } => *index,
        SmEvent::StoresDone => 0,
        SmEvent::Trap(trap) => trap.pc.into(),
    }, corrupt = |event| match event {
        SmEvent::CtaDone { index, .. } => *index ^= 1,
        // It has no field to change, so it becomes another event.
        SmEvent::StoresDone => *event = SmEvent::CtaDone { index: 0, slot: 0, is_storing: true },
        SmEvent::Trap(trap) => trap.pc ^= 1,
    };
    Trap: "pc" = |trap| trap.pc.into(), corrupt = |trap| trap.pc ^= 1;
    WarpCommand: "warp" = |command| match command {
        WarpCommand::Start(start) => start.warp.into(),
        WarpCommand::Release(warps) | WarpCommand::OpenCluster(warps) => *warps,
    }, corrupt = |command| match command {
        WarpCommand::Start(start) => start.warp ^= 1,
        WarpCommand::Release(warps) | WarpCommand::OpenCluster(warps) => *warps ^= 1,
    };
    WarpInfo: "warp" = |info| match info {
        WarpInfo::Start(start) => start.warp.into(),
        WarpInfo::Counted { warps, .. } => *warps,
    }, corrupt = |info| match info {
        WarpInfo::Start(start) => start.warp ^= 1,
        WarpInfo::Counted { count, .. } => *count ^= 1,
    };
    WarpEvent: "warp" = |event| match event {
        WarpEvent::Arrive { warp, .. } | WarpEvent::ArriveCluster { warp } => (*warp).into(),
        WarpEvent::Done { warp, .. } | WarpEvent::StoresDone { warp } | WarpEvent::Trap { warp, .. } => (*warp).into(),
    }, corrupt = |event| *warp_of(event) ^= 1;
    Issue: "pc" = |issue| issue.pc().into(),
        corrupt = |issue| *issue = Issue::new(issue.warp(), issue.pc(), LaneMask(issue.active().0 ^ 1), issue.group()).with_generation(issue.generation());
    Release: "pc" = |release| release.pc().into(),
        corrupt = |release| *release = Release::new(release.warp() ^ 1, release.pc(), release.group());
    Resolved: "pc" = |resolved| resolved.pc.into(), corrupt = |resolved| resolved.lanes.0 ^= 1;
    LsuAck: "warp" = |ack| match ack {
        LsuAck::QueueCredit { warp } | LsuAck::StoreDone { warp } => (*warp).into(),
    }, corrupt = |ack| match ack {
        LsuAck::QueueCredit { warp } | LsuAck::StoreDone { warp } => *warp ^= 1,
    };
    ConstantLine: "constant line" = |line| line.line.into(), corrupt = |line| line.line ^= 1;
    WarpInst: "pc" = |warp_inst| warp_inst.pc.into(), corrupt = |warp_inst| warp_inst.lanes.0 ^= 1;
    BulkInst: "pc" = |inst| inst.warp_inst.pc.into(), corrupt = |inst| inst.warp_inst.lanes.0 ^= 1;
    Packet: "line" = |packet| shown(packet.line), corrupt = |packet| packet.bytes[0] ^= 1;
    SliceCommand: "command" = |command| *command as u64, corrupt = |command| *command = match command {
        SliceCommand::WriteBack => SliceCommand::Invalidate,
        SliceCommand::Invalidate => SliceCommand::WriteBack,
    };
    ClusterPlaced: "cta slot" = |placed| placed.slot.into(), corrupt = |placed| placed.slot ^= 1;
    CtaResidence: "cta slot" = |residence| residence.slot.into(), corrupt = |residence| residence.slot ^= 1;
    ClusterArrive: "cluster" = |arrive| arrive.cluster, corrupt = |arrive| arrive.rank ^= 1;
    ClusterOpen: "cluster" = |open| open.cluster, corrupt = |open| open.rank ^= 1;
}

/// The warp of an event.
fn warp_of(event: &mut WarpEvent) -> &mut u8 {
    match event {
        WarpEvent::Arrive { warp, .. } | WarpEvent::ArriveCluster { warp } => warp,
        WarpEvent::Done { warp, .. } | WarpEvent::StoresDone { warp } | WarpEvent::Trap { warp, .. } => warp,
    }
}
