//! Tests of placement and grids of small modules, against layouts computed by hand.

use warpwave_components::config::GpuConfig;
use warpwave_components::preset;
use warpwave_components::proto::launch::Grid;
use warpwave_components::storage::Storage;
use warpwave_isa::space::bank0;
use warpwave_ptx::{ADDRESS_BANK, CONST_BANK, Module};

use super::*;
use crate::scenario::dtype::Dtype;
use crate::scenario::{Arg, Buffer, Launch, Layout, Scenario, Target};

const MODULE: &str = "
.version 7.8
.target sm_80
.address_size 64
.const .align 4 .b32 scale[2] = {7, 9};
.global .align 8 .u64 link = other;
.global .align 4 .b32 other[2] = {1, 2};
.entry k(.param .u64 out, .param .align 8 .b8 pack[24], .param .u8 small, .param .f32 factor) { ret; }
.entry fixed() .reqntid 64, 1, 1 { ret; }
.entry bounded() .maxntid 128, 1, 1 { ret; }
.entry pairs() .explicitcluster .reqnctapercluster 2, 1, 1 { ret; }
.entry said() .explicitcluster { ret; }
.entry large() { .shared .b8 most[40000]; ret; }
";

fn module() -> Module {
    warpwave_ptx::compile(MODULE).unwrap()
}

fn buffer(name: &str, dtype: Dtype, init: Vec<u8>) -> Buffer {
    let shape = vec![(init.len() / dtype.bytes()) as u64];
    Buffer {
        name: name.to_owned(),
        layout: Layout { dtype, shape },
        init,
        expect: None,
    }
}

fn scenario(globals: Vec<Buffer>) -> Scenario {
    Scenario {
        name: "s".to_owned(),
        ptx_path: "s.ptx".to_owned(),
        ptx: MODULE.to_owned(),
        buffers: vec![buffer("out", Dtype::U8, vec![5; 300])],
        globals,
        launches: Vec::new(),
        ..Scenario::default()
    }
}

fn launch(entry: Option<&str>, block: u32, args: Vec<Arg>) -> Launch {
    Launch {
        entry: entry.map(str::to_owned),
        grid: [3, 2, 1],
        block: [block, 1, 1],
        dynamic_shared_bytes: 0,
        cluster: None,
        args,
        ..Launch::default()
    }
}

fn grid_of(launch: &Launch) -> Result<(Grid, Placement), HostError> {
    let storage = Storage::new(1 << 20);
    let placement = Placement::new(&scenario(Vec::new()), &module(), &storage)?;
    let tiny = preset::load("tiny", &[]).unwrap().config;
    Ok((
        build_grid(
            0,
            launch,
            &module(),
            &placement,
            (&storage, &mut Workspaces::new(1)),
            &tiny,
        )?,
        placement,
    ))
}

fn refused(launch: &Launch) -> String {
    grid_of(launch).map(|_| ()).unwrap_err().to_string()
}

fn u32_arg(value: u32) -> Arg {
    Arg::Scalar(Dtype::U32, value.to_le_bytes().to_vec())
}

#[test]
fn arguments_of_every_kind_are_at_the_offsets_of_their_parameters() {
    let pack = Arg::Struct(vec![
        Arg::Scalar(Dtype::U8, vec![0xab]),
        Arg::Buffer(0),
        u32_arg(0x1122_3344),
    ]);
    let factor = Arg::Scalar(Dtype::F32, 1.5f32.to_le_bytes().to_vec());
    let args = vec![Arg::Buffer(0), pack, Arg::Bytes(vec![0xcd]), factor];
    let (grid, placement) = grid_of(&launch(Some("k"), 32, args)).unwrap();
    let word = |byte: u16| grid.constant(0, byte / 4);
    let sizes = [0, 4, 8].map(|n| (word(bank0::BLOCK_SIZE + n), word(bank0::GRID_SIZE + n)));
    assert_eq!(sizes, [(32, 3), (1, 2), (1, 1)]);

    // `out` is at 0 and `pack` at 8. In `pack`: the byte, 7 bytes of padding, the address at 16, the word at 24, 4 bytes of padding.
    // `small` is at 32, `factor` at 36.
    let address = placement.buffers[0];
    let halves = [address as u32, (address >> 32) as u32];
    let expected = [
        halves[0],
        halves[1],
        0xab,
        0,
        halves[0],
        halves[1],
        0x1122_3344,
        0,
        0xcd,
        1.5f32.to_bits(),
    ];
    let found: Vec<u32> = (0..10).map(|n| word(bank0::PARAMS + 4 * n)).collect();
    assert_eq!(found, expected);
}

#[test]
fn module_variables_have_addresses_and_initial_values() {
    let storage = Storage::new(1 << 20);
    let given = vec![
        buffer("other", Dtype::U32, [3u32, 4].map(u32::to_le_bytes).concat()),
        buffer("scale", Dtype::U32, [8u32, 10].map(u32::to_le_bytes).concat()),
    ];
    let scenario = scenario(given);
    let placement = Placement::new(&scenario, &module(), &storage).unwrap();
    let [Some(other), None] = placement.globals[..] else {
        panic!("a variable in memory, then a constant: {:?}", placement.globals)
    };
    assert_eq!([storage.load(other), storage.load(other + 4)], [3, 4]);
    assert_eq!(placement.banks[usize::from(CONST_BANK)], [8, 10]);

    // The variables in text order: `link` holds the address of `other`.
    let addresses = &placement.banks[usize::from(ADDRESS_BANK)];
    assert_eq!(addresses[2..], [other as u32, (other >> 32) as u32]);
    let link = u64::from(addresses[0]) | u64::from(addresses[1]) << 32;
    assert_eq!(
        [storage.load(link), storage.load(link + 4)],
        [other as u32, (other >> 32) as u32]
    );
    let named: Vec<_> = placement
        .of(&scenario)
        .map(|(buffer, _)| buffer.name.as_str())
        .collect();
    assert_eq!(named, ["out", "other"]);
}

#[test]
fn address_of_a_constant_leads_to_a_copy_in_device_memory() {
    let storage = Storage::new(1 << 20);
    let to = |offset| Arg::Address(Target::Variable("scale".to_owned()), offset);
    let given = buffer("scale", Dtype::U32, [8u32, 10].map(u32::to_le_bytes).concat());
    let mut scenario = scenario(vec![given]);
    // No code of the module takes the address, so without the argument there is no copy.
    let without = Placement::new(&scenario, &module(), &storage).unwrap();
    scenario.launches = vec![launch(Some("k"), 32, vec![Arg::Struct(vec![to(4)])])];
    let placement = Placement::new(&scenario, &module(), &storage).unwrap();
    assert_eq!(without.regions.len() + 1, placement.regions.len());

    let target = Target::Variable("scale".to_owned());
    let second = placement.address_of(&target, 4).unwrap();
    // The scenario's values, as in the constant bank.
    assert_eq!([storage.load(second - 4), storage.load(second)], [8, 10]);
    assert_eq!(
        placement.address_of(&target, 9).unwrap_err().to_string(),
        "an address is 9 bytes from the start of module variable `scale`, which has 8; give a smaller offset"
    );
}

#[test]
fn variable_without_init_keeps_the_bytes_of_its_program() {
    let storage = Storage::new(1 << 20);
    let unset = |name: &str, dtype, n| Buffer {
        name: name.to_owned(),
        layout: Layout { dtype, shape: vec![n] },
        init: Vec::new(),
        expect: None,
    };
    let given = vec![
        unset("other", Dtype::U32, 2),
        unset("scale", Dtype::U32, 2),
        unset("link", Dtype::U64, 1),
    ];
    let placement = Placement::new(&scenario(given), &module(), &storage).unwrap();
    let [Some(other), None, Some(link)] = placement.globals[..] else {
        panic!("two variables in memory and a constant: {:?}", placement.globals)
    };
    assert_eq!([storage.load(other), storage.load(other + 4)], [1, 2]);
    assert_eq!(placement.banks[usize::from(CONST_BANK)], [7, 9]);
    assert_eq!(
        [storage.load(link), storage.load(link + 4)],
        [other as u32, (other >> 32) as u32]
    );
    let short = Placement::new(&scenario(vec![unset("other", Dtype::U32, 1)]), &module(), &storage);
    assert_eq!(
        short.unwrap_err().to_string(),
        "module variable `other` has 8 bytes, but the scenario gives 4; change dtype or shape"
    );
}

#[test]
fn variable_that_does_not_match_the_module_is_refused() {
    let place = |global: Buffer| {
        let storage = Storage::new(1 << 20);
        Placement::new(&scenario(vec![global]), &module(), &storage)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        place(buffer("othr", Dtype::U32, vec![0; 8])),
        "the program has no module variable `othr` in .global or .const; it has link, other, scale"
    );
    assert_eq!(
        place(buffer("other", Dtype::U32, vec![0; 12])),
        "module variable `other` has 8 bytes, but the scenario gives 12; change dtype or shape"
    );
    let full = Storage::new(1 << 20);
    let mut big = scenario(Vec::new());
    big.buffers[0] = buffer("out", Dtype::U8, vec![0; 2 << 20]);
    assert_eq!(
        Placement::new(&big, &module(), &full).unwrap_err().to_string(),
        "device memory is full: `out` needs 2097152 bytes, the device has 1048576 in all; take a smaller shape or another --gpu"
    );
}

#[test]
fn launch_that_does_not_match_its_kernel_is_refused() {
    assert_eq!(
        refused(&launch(None, 32, Vec::new())),
        "the launch names no kernel; the program has k, fixed, bounded, pairs, said, large; add `entry = \"...\"` to the launch"
    );
    assert_eq!(
        refused(&launch(Some("k"), 32, vec![u32_arg(1)])),
        "kernel `k` takes 4 arguments, not 1: out, pack, small, factor"
    );
    let args = vec![Arg::Buffer(0), Arg::Bytes(vec![0; 23]), Arg::Bytes(vec![0]), u32_arg(1)];
    assert_eq!(
        refused(&launch(Some("k"), 32, args)),
        "argument 1 of kernel `k` is 23 bytes, but its parameter `pack` takes 24 bytes; give a value of that size"
    );
    assert_eq!(
        refused(&launch(Some("fixed"), 32, Vec::new())),
        "kernel `fixed` is compiled for blocks of exactly [64, 1, 1] threads, not [32, 1, 1]; change `block`"
    );
    assert!(grid_of(&launch(Some("fixed"), 64, Vec::new())).is_ok());
    assert!(grid_of(&launch(Some("bounded"), 128, Vec::new())).is_ok());
    assert!(
        refused(&launch(Some("bounded"), 129, Vec::new()))
            .contains("blocks of at most [128, 1, 1] threads, not [129, 1, 1]")
    );
    let mut clustered = launch(Some("bounded"), 32, Vec::new());
    clustered.cluster = Some([2, 1, 1]);
    assert_eq!(
        refused(&clustered),
        "kernel `bounded` cannot be launched: a grid of [3, 2, 1] blocks does not divide into clusters of [2, 1, 1]; change `grid`"
    );
    clustered.cluster = Some([3, 3, 1]);
    assert_eq!(
        refused(&clustered),
        "kernel `bounded` cannot be launched: a cluster has 9 blocks, the limit is 8; change `cluster`"
    );
    assert_eq!(
        refused(&launch(Some("pairs"), 32, Vec::new())),
        "kernel `pairs` cannot be launched: a grid of [3, 2, 1] blocks does not divide into clusters of [2, 1, 1]; change `grid`"
    );
    clustered.entry = Some("pairs".to_owned());
    clustered.cluster = Some([3, 1, 1]);
    assert_eq!(
        refused(&clustered),
        "kernel `pairs` cannot be launched: it is compiled for clusters of exactly [2, 1, 1] blocks, not [3, 1, 1]; \
         change `cluster`"
    );
    assert_eq!(
        refused(&launch(Some("said"), 32, Vec::new())),
        "kernel `said` cannot be launched: it runs in clusters; add their size as `cluster` to the launch"
    );
    let mut large = launch(Some("large"), 32, Vec::new());
    large.cluster = Some([3, 2, 1]);
    assert_eq!(
        refused(&large),
        "kernel `large` cannot be launched: a cluster of 6 blocks does not fit: with 1 on an SM the largest GPC holds 2 \
         at once; take a smaller cluster, or blocks that need less"
    );
    let mut wide = launch(Some("bounded"), 32, Vec::new());
    wide.grid = [1, 65536, 1];
    assert_eq!(
        refused(&wide),
        "blocks in the grid in y: 65536, the limit is 65535; reduce the grid or the block"
    );
}

/// A cooperative launch of `grid` blocks of one thread, on `tiny` with three SMs.
fn cooperative(entry: &str, grid: u32, cluster: Option<u32>) -> Result<Grid, HostError> {
    let sms = ("topology.sms_per_tpc".to_owned(), "3".to_owned());
    let config = preset::load("tiny", &[sms]).unwrap().config;
    cooperative_on(config, entry, grid, cluster)
}

fn cooperative_on(config: GpuConfig, entry: &str, grid: u32, cluster: Option<u32>) -> Result<Grid, HostError> {
    let storage = Storage::new(1 << 20);
    let placement = Placement::new(&scenario(Vec::new()), &module(), &storage)?;
    let launch = Launch {
        grid: [1, grid, 1],
        cluster: cluster.map(|n| [1, n, 1]),
        is_cooperative: true,
        ..launch(Some(entry), 1, Vec::new())
    };
    let memory = (&storage, &mut Workspaces::new(1));
    build_grid(0, &launch, &module(), &placement, memory, &config)
}

#[test]
fn cooperative_grid_has_a_workspace_in_an_allocation_of_its_own() {
    let plain = grid_of(&launch(Some("bounded"), 1, Vec::new())).unwrap().0;
    assert!(!plain.is_cooperative());
    let grid = cooperative("bounded", 6, None).unwrap();
    assert!(grid.is_cooperative());
    let word = |offset: u16| u64::from(grid.constant(0, offset / 4));
    let workspace = word(bank0::WORKSPACE_HIGH) << 32 | word(bank0::WORKSPACE_LOW);
    let [before @ .., (first, bytes)] = &grid.allocations[..] else {
        panic!("no allocation")
    };
    assert_eq!((workspace, before), (*first, &plain.allocations[..]));
    assert!(*bytes >= 8, "a size and a count of arrivals");
}

#[test]
fn workspaces_of_launches_share_allocations_and_no_words() {
    let storage = Storage::new(1 << 20);
    let mut workspaces = Workspaces::new(2);
    let all = [(); 3].map(|()| workspaces.take(&storage).unwrap());
    assert_eq!(storage.allocations().len(), 2);
    assert!(all.is_sorted_by(|a, b| a + 8 <= *b), "{all:x?}");
}

#[test]
fn cooperative_launch_needs_compute_capability_6_0() {
    let on = |major: u32, minor: u32| {
        let config = preset::load("tiny", &[]).unwrap().config;
        let config = GpuConfig {
            cc_major: major,
            cc_minor: minor,
            ..config
        };
        cooperative_on(config, "bounded", 1, None)
    };
    assert!(on(6, 0).is_ok());
    assert_eq!(
        on(5, 3).unwrap_err().to_string(),
        "kernel `bounded` cannot be launched: a cooperative launch needs compute capability 6.0, and tiny has 5.3; \
         take another --gpu, or remove `cooperative`"
    );
}

#[test]
fn cooperative_grid_that_is_not_resident_as_a_whole_is_refused() {
    let refused = |entry: &str, grid, cluster| cooperative(entry, grid, cluster).unwrap_err().to_string();
    // 40,000 of 49,152 bytes of shared memory: one block on an SM.
    assert!(cooperative("large", 3, None).is_ok());
    assert_eq!(
        refused("large", 4, None),
        "kernel `large` cannot be launched: a cooperative grid of 4 blocks does not fit: tiny holds 3 at once, 1 on an SM \
         (limited by shared memory); reduce `grid`, or what a block needs"
    );
    // Three SMs of one GPC hold one pair. The second pair would need a fourth SM.
    assert!(cooperative("large", 2, Some(2)).is_ok());
    assert_eq!(
        refused("large", 4, Some(2)),
        "kernel `large` cannot be launched: a cooperative grid of 4 blocks does not fit: tiny holds 2 in clusters of 2 at once, 1 on an SM \
         (limited by shared memory); reduce `grid`, or what a block needs"
    );
    // 32 block slots on each SM.
    assert!(cooperative("bounded", 96, None).is_ok());
    assert!(refused("bounded", 97, None).contains("tiny holds 96 at once, 32 on an SM (limited by block slots)"));
}
