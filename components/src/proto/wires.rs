//! What each message is in one number, for the handshake rows of a waveform: an instruction, a line, a warp, a CTA.

use warpwave_hw::link::wires::Payload;

use super::cluster::{ClusterArrive, ClusterOpen, Seated};
use super::issue::{Issue, Release};
use super::launch::{CtaLaunch, Grid, GridEvent, SmEvent, Trap};
use super::mem::{Packet, SliceCommand, shown};
use super::warp::{Flight, MemoryNote, PlaceNote, Resolved, WarpCommand, WarpEvent};

/// `payload!(Message: "what" = number)`.
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
    PlaceNote: "warp" = |note| match note {
        PlaceNote::Start(start) => start.warp.into(),
        PlaceNote::Counted { warps, .. } => (*warps).into(),
    };
    WarpEvent: "warp" = |event| match event {
        WarpEvent::Arrive { warp, .. } | WarpEvent::ArriveCluster { warp } => (*warp).into(),
        WarpEvent::Done { warp } | WarpEvent::Trap { warp, .. } => (*warp).into(),
    };
    Issue: "pc" = |issue| issue.pc().into();
    Release: "pc" = |release| release.pc().into();
    Resolved: "pc" = |resolved| resolved.pc.into();
    MemoryNote: "warp" = |note| match note {
        MemoryNote::Taken { warp } | MemoryNote::Stored { warp } => (*warp).into(),
    };
    Flight: "pc" = |flight| flight.pc.into();
    Packet: "line" = |packet| shown(packet.line);
    SliceCommand: "command" = |command| *command as u64;
    Seated: "cta slot" = |seated| seated.slot.into();
    ClusterArrive: "cluster" = |arrive| arrive.cluster;
    ClusterOpen: "cluster" = |open| open.cluster;
}
