//! One number per message, for the handshake rows of a waveform: a program counter, a line, a warp or a CTA.

use warpwave_hw::link::wires::Payload;

use super::cluster::{ClusterArrive, ClusterOpen, ClusterPlaced};
use super::issue::{Issue, Release};
use super::launch::{CtaLaunch, Grid, GridEvent, SmEvent, Trap};
use super::mem::{Packet, SliceCommand, shown};
use super::warp::{LsuAck, Resolved, WarpCommand, WarpEvent, WarpInfo, WarpInst};

/// Implements [`Payload`]: `Message: "name of the number" = number;`.
macro_rules! payload {
    ($($message:ty: $name:literal = $number:expr;)+) => {
        $(impl Payload for $message {
            const NAME: &'static str = $name;

            fn summary(&self) -> u64 {
                let number: fn(&$message) -> u64 = $number;
                number(self) & 0xffff_ffff_ffff
            }
        })+
    };
}

payload! {
    Grid: "launch" = |grid| grid.id.into();
    GridEvent: "launch" = |event| match event {
        GridEvent::Done { grid, .. } => (*grid).into(),
        GridEvent::Trap(trap) => trap.pc.into(),
    };
    CtaLaunch: "cta" = |launch| launch.index;
    SmEvent: "cta" = |event| match event {
        SmEvent::CtaDone { index, .. } => *index,
        SmEvent::Trap(trap) => trap.pc.into(),
    };
    Trap: "pc" = |trap| trap.pc.into();
    WarpCommand: "warp" = |command| match command {
        WarpCommand::Start(start) => start.warp.into(),
        WarpCommand::Release(warps) | WarpCommand::OpenCluster(warps) => (*warps).into(),
    };
    WarpInfo: "warp" = |info| match info {
        WarpInfo::Start(start) => start.warp.into(),
        WarpInfo::Counted { warps, .. } => (*warps).into(),
    };
    WarpEvent: "warp" = |event| match event {
        WarpEvent::Arrive { warp, .. } | WarpEvent::ArriveCluster { warp } => (*warp).into(),
        WarpEvent::Done { warp } | WarpEvent::Trap { warp, .. } => (*warp).into(),
    };
    Issue: "pc" = |issue| issue.pc().into();
    Release: "pc" = |release| release.pc().into();
    Resolved: "pc" = |resolved| resolved.pc.into();
    LsuAck: "warp" = |ack| match ack {
        LsuAck::QueueCredit { warp } | LsuAck::StoreDone { warp } => (*warp).into(),
    };
    WarpInst: "pc" = |warp_inst| warp_inst.pc.into();
    Packet: "line" = |packet| shown(packet.line);
    SliceCommand: "command" = |command| *command as u64;
    ClusterPlaced: "cta slot" = |placed| placed.slot.into();
    ClusterArrive: "cluster" = |arrive| arrive.cluster;
    ClusterOpen: "cluster" = |open| open.cluster;
}
