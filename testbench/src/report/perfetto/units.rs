//! The tracks of a timeline: numbers and names of units, and the entries into them.

use warpwave_components::config::{GpuConfig, pipe_row};
use warpwave_components::proto::mem::Stage;
use warpwave_components::proto::noc::AddressMap;
use warpwave_hw::time::Cycle;
use warpwave_isa::opcode::Pipe;
use warpwave_waveforms::perfetto::Track;

use crate::watch::pipeline::{Row, Step};

/// Group of the L2. The groups of SMs have lower numbers.
const L2: u32 = 100_000;
/// Group of the memory channels.
const HBM: u32 = 100_001;
/// First track of an SM after its warp slots: pipes by sub-core, then units that the sub-cores share.
const FIRST_PIPE: u32 = 1000;
/// Number of tracks for the pipes of one sub-core.
const PIPES: u32 = 10;
// Tracks of the units that the sub-cores share.
const LSU: u32 = 2000;
const SHARED: u32 = 2001;
const L1: u32 = 2002;
const RESPONSE: u32 = 2003;

/// An entry into a unit: track, name of the track, first cycle, number of cycles.
pub type Entry = (Track, String, Cycle, u64);

/// Maps units to tracks.
pub struct Units {
    slots: u32,
    map: AddressMap,
    /// The L2 partition of each SM.
    partitions: Vec<u32>,
}

impl Units {
    /// Creates the tracks of a machine.
    pub fn new(config: &GpuConfig) -> Self {
        Units {
            slots: config.limits.max_warps_per_sm / config.sm.subcores,
            map: AddressMap::of(config),
            partitions: (0..config.n_sms()).map(|sm| config.partition_of(sm as u16)).collect(),
        }
    }

    /// The group of an SM.
    pub fn sm_group(sm: u16) -> u32 {
        u32::from(sm) + 1
    }

    /// The track of a row's warp.
    pub fn warp(&self, row: &Row) -> Track {
        self.warp_slot(row.sm, row.subcore, row.slot)
    }

    /// The track of a warp slot.
    pub fn warp_slot(&self, sm: u16, subcore: u8, slot: u8) -> Track {
        Track {
            group: Self::sm_group(sm),
            track: u32::from(subcore) * self.slots + u32::from(slot) + 1,
        }
    }

    /// The entries of an instruction into units of its SM.
    pub fn entries(&self, row: &Row, pipe: Pipe) -> Vec<Entry> {
        let group = Self::sm_group(row.sm);
        let mut entries = Vec::new();
        let mut add = |track, name: String, from: Option<Cycle>, cycles: u64| {
            let track = Track { group, track };
            entries.extend(from.map(|from| (track, name, from, cycles)));
        };
        if pipe != Pipe::Lsu {
            let track = FIRST_PIPE + u32::from(row.subcore) * PIPES + pipe as u32;
            // An instruction enters the pipe one cycle after dispatch.
            let entered = row.at(Step::Send).map(|at| at + 1);
            add(track, format!("{} {}", pipe_row(pipe).label, row.subcore), entered, 1);
        }
        add(LSU, "LSU".to_owned(), row.at(Step::Take), 1);
        let passes = u64::from(row.passes.max(1));
        add(SHARED, "shared memory".to_owned(), row.at(Step::Access), passes);
        entries
    }

    /// The number of the L2 slice to which an SM sends its requests for a line.
    pub fn slice(&self, sm: u16, line: u64) -> u32 {
        let (slice, _) = self.map.route(line, self.partitions[usize::from(sm)]);
        u32::from(slice)
    }

    /// The number of a line's channel, counted over the whole GPU.
    pub fn channel(&self, line: u64) -> u32 {
        // The home slice of a line tells its group. The channel is counted within the group.
        let group = u32::from(self.map.home(line).slice) / self.map.slices_per_group();
        group * self.map.channels_per_group() + u32::from(self.map.channel(line).channel)
    }

    /// The track of the unit in which a request enters `stage`, with the names of its group and of the track.
    pub fn of_request(&self, sm: u16, line: u64, stage: Stage) -> (Track, String, String) {
        let group = Self::sm_group(sm);
        let in_sm = |track, name: &str| (Track { group, track }, format!("SM {sm}"), name.to_owned());
        match stage {
            Stage::L2 => {
                let track = self.slice(sm, line);
                (Track { group: L2, track }, "L2".to_owned(), format!("slice {track}"))
            }
            Stage::Hbm => {
                let track = self.channel(line);
                (
                    Track { group: HBM, track },
                    "memory".to_owned(),
                    format!("channel {track}"),
                )
            }
            Stage::L1 => in_sm(L1, "L1"),
            _ => in_sm(RESPONSE, "LSU responses"),
        }
    }
}
