//! Builds the grid of a launch: kernel, sizes, and the arguments in constant bank 0. Refuses a launch that exceeds a limit.

use std::sync::Arc;

use warpwave_components::config::GpuConfig;
use warpwave_components::occupancy::occupancy;
use warpwave_components::proto::launch::Grid;
use warpwave_components::storage::Storage;
use warpwave_isa::exec::bulk::TensorMap;
use warpwave_isa::exec::texture::Texture;
use warpwave_isa::inst::{Operand, Source};
use warpwave_isa::program::{ClusterRequirement, Program, Requirements};
use warpwave_isa::space::bank0;
use warpwave_ptx::{ADDRESS_BANK, Module};

use super::cooperative::{check_capability, check_residency};
use super::module::words;
use super::{ClusterFault, HostError, Placement, Workspaces};
use crate::scenario::{Arg, Image, Launch, Tiles};

/// Largest grid in x, y, z (CUDA programming guide, compute capability 3.0 and later).
const MAX_GRID: [u32; 3] = [(1 << 31) - 1, 65535, 65535];
/// Largest block in x, y, z (same source). The product of the sizes has a limit too: `occupancy` checks it.
const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];

/// Builds the grid of launch `id` of a scenario. A cooperative launch takes a workspace.
///
/// # Errors
/// If the launch does not match its kernel, or exceeds a limit of the machine.
pub fn build_grid(
    id: u32,
    launch: &Launch,
    module: &Module,
    placement: &Placement,
    (storage, workspaces): (&Storage, &mut Workspaces),
    config: &GpuConfig,
) -> Result<Grid, HostError> {
    let program = entry(launch, module)?;
    let needs = program.requirements();
    check_sizes(launch, &program)?;
    let shared_bytes = needs.shared_bytes.saturating_add(launch.dynamic_shared_bytes);
    let threads = launch.block.iter().product();
    // Sizes are at most 1024, 1024 and 64 here, so their product fits 32 bits.
    let fit = occupancy(config, threads, needs.registers, shared_bytes).map_err(|reason| HostError::DoesNotFit {
        entry: program.name().to_owned(),
        gpu: config.name.clone(),
        reason,
    })?;
    let cluster = cluster_size(launch, &program, config, fit.blocks).map_err(|fault| HostError::Cluster {
        entry: program.name().to_owned(),
        fault,
    })?;
    let mut constants = placement.banks.clone();
    // The other banks hold constants and addresses of the module, equal for all launches.
    constants[0] = param_bank(launch, &program, placement)?;
    if launch.is_cooperative {
        check_capability(program.name(), config)?;
        check_residency(launch.grid, cluster, config, &fit).map_err(|fault| HostError::NotResident {
            entry: program.name().to_owned(),
            fault,
        })?;
        let workspace = workspaces.take(storage)?;
        constants[0][usize::from(bank0::WORKSPACE_HIGH) / 4] = (workspace >> 32) as u32;
        constants[0][usize::from(bank0::WORKSPACE_LOW) / 4] = workspace as u32;
    }
    let textures = textures_of(&launch.args, placement);
    bind_references(
        &program,
        module,
        placement,
        &textures,
        &mut constants[usize::from(ADDRESS_BANK)],
    )?;
    Ok(Grid {
        id,
        grid: launch.grid,
        block: launch.block,
        cluster,
        shared_bytes,
        dynamic_shared_bytes: launch.dynamic_shared_bytes,
        registers: needs.registers,
        program: program.clone(),
        allocations: storage.allocations(),
        constants,
        ctas_per_sm: fit.blocks,
        textures,
        // GigaThread fills in the rest when the launch begins.
        local_base: 0,
        l1_bytes: 0,
        timing: Vec::new(),
        predecoded: Arc::default(),
    })
}

/// The program of a launch. A launch without a kernel name takes the module's only kernel.
fn entry(launch: &Launch, module: &Module) -> Result<Arc<Program>, HostError> {
    let entries = || module.entries.iter().map(|entry| entry.name.clone()).collect();
    let entry = match (&launch.entry, &module.entries[..]) {
        (None, [only]) => only,
        (None, _) => return Err(HostError::WhichEntry { entries: entries() }),
        (Some(name), _) => module.entry(name).ok_or_else(|| HostError::UnknownEntry {
            entry: name.clone(),
            entries: entries(),
        })?,
    };
    entry.program().clone().map_err(|findings| HostError::Unsupported {
        entry: entry.name.clone(),
        findings,
    })
}

fn check_sizes(launch: &Launch, program: &Program) -> Result<(), HostError> {
    let limits = [
        ("blocks in the grid", launch.grid, MAX_GRID),
        ("threads of a block", launch.block, MAX_BLOCK),
    ];
    for (what, sizes, limits) in limits {
        for ((size, limit), axis) in sizes.into_iter().zip(limits).zip(["x", "y", "z"]) {
            if size > limit {
                let what = format!("{what} in {axis}: {size}, the limit is {limit}");
                return Err(HostError::TooMany { what });
            }
        }
    }
    check_block(launch, program.name(), program.requirements())
}

/// Checks the block size against `.reqntid` (exact) and `.maxntid` (bound).
fn check_block(launch: &Launch, entry: &str, needs: &Requirements) -> Result<(), HostError> {
    let demand = |want, exact| HostError::BlockSize {
        entry: entry.to_owned(),
        found: launch.block,
        want,
        exact,
    };
    let threads = |block: [u32; 3]| block.iter().map(|&n| u64::from(n)).product::<u64>();
    match (needs.required_block, needs.max_block) {
        // `.reqntid` fixes each size. `.maxntid` bounds only the product (PTX ISA).
        (Some(want), _) if want != launch.block => Err(demand(want, true)),
        (_, Some(want)) if threads(launch.block) > threads(want) => Err(demand(want, false)),
        _ => Ok(()),
    }
}

/// The CTAs of a cluster, from the launch or the kernel. Checks them against the grid and the GPU.
fn cluster_size(launch: &Launch, program: &Program, config: &GpuConfig, per_sm: u32) -> Result<[u32; 3], ClusterFault> {
    let cluster = match (launch.cluster, program.requirements().cluster) {
        (None, ClusterRequirement::Any) => [1; 3],
        (None, ClusterRequirement::Explicit) => return Err(ClusterFault::Missing),
        (None, ClusterRequirement::Exact(want)) => want,
        (Some(found), ClusterRequirement::Exact(want)) if found != want => {
            return Err(ClusterFault::NotAsCompiled { found, want });
        }
        (Some(found), _) => found,
    };
    // Saturating: a scenario may give any sizes, and an overflow must not pass for a small cluster.
    let need = cluster.iter().fold(1u32, |product, &n| product.saturating_mul(n));
    // A cluster of one CTA is an ordinary launch, which every GPU runs.
    if need == 1 && !program.needs_clusters() {
        return Ok(cluster);
    }
    let limit = config.cluster.max_ctas;
    if limit == 0 {
        let gpu = config.name.clone();
        return Err(ClusterFault::None { gpu });
    }
    if need > limit {
        return Err(ClusterFault::TooLarge { need, limit });
    }
    if (0..3).any(|axis| !launch.grid[axis].is_multiple_of(cluster[axis])) {
        let grid = launch.grid;
        return Err(ClusterFault::Uneven { grid, cluster });
    }
    // All CTAs of a cluster run at once, in one GPC.
    let largest = config.gpcs().iter().map(ExactSizeIterator::len).max().unwrap_or(0) as u32;
    let limit = largest * per_sm;
    if need > limit {
        return Err(ClusterFault::NoRoom { need, limit, per_sm });
    }
    Ok(cluster)
}

/// Builds constant bank 0: block and grid sizes, then the arguments at the offsets of their parameters.
fn param_bank(launch: &Launch, program: &Program, placement: &Placement) -> Result<Vec<u32>, HostError> {
    let params = &program.requirements().params;
    if params.len() != launch.args.len() {
        return Err(HostError::ArgumentCount {
            entry: program.name().to_owned(),
            found: launch.args.len(),
            params: params.iter().map(|param| param.name.clone()).collect(),
        });
    }
    let end = params.iter().map(|param| param.offset + param.bytes).max().unwrap_or(0);
    let mut bytes = vec![0; usize::from(bank0::PARAMS) + end as usize];
    let textures = textures_of(&launch.args, placement);
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    for (offset, sizes) in [(bank0::BLOCK_SIZE, launch.block), (bank0::GRID_SIZE, launch.grid)] {
        for (n, size) in sizes.into_iter().enumerate() {
            // `ntid` and `nctaid` are reads of constant bank 0, as on the hardware.
            put(usize::from(offset) + 4 * n, &size.to_le_bytes());
        }
    }
    put(bank0::CONSTANTS.into(), &placement.constants.unwrap_or(0).to_le_bytes());
    for (index, (param, arg)) in params.iter().zip(&launch.args).enumerate() {
        let value = bytes_of(arg, placement, &textures)?;
        if value.len() != param.bytes as usize {
            return Err(HostError::ArgumentSize {
                entry: program.name().to_owned(),
                index,
                param: param.name.clone(),
                found: describe(arg, value.len()),
                want: param.bytes,
            });
        }
        if let (true, Arg::Scalar(dtype, _)) = (param.is_float, arg)
            && !dtype.is_float()
        {
            return Err(HostError::ArgumentType {
                entry: program.name().to_owned(),
                index,
                param: param.name.clone(),
                found: *dtype,
                bits: 8 * param.bytes,
            });
        }
        put(usize::from(bank0::PARAMS) + param.offset as usize, &value);
    }
    Ok(words(&bytes))
}

/// Appends the handles of the module's references to the bank of addresses. A reference without an image has handle 0.
fn bind_references(
    program: &Program,
    module: &Module,
    placement: &Placement,
    textures: &[Texture],
    bank: &mut Vec<u32>,
) -> Result<(), HostError> {
    for (name, image) in module.references.iter().zip(&placement.references) {
        // The compiler numbered references after the global variables, 8 bytes each. The bank grows in the same order.
        let offset = 4 * bank.len() as u16;
        let reads = |operand: &Operand| matches!(operand.source, Source::Const { bank: ADDRESS_BANK, offset: at } if at == offset);
        let is_used = program.code().iter().flat_map(|inst| &inst.src).any(reads);
        // A handle is never 0, so 0 can mark an unbound reference.
        let handle = image.map_or(0, |image| handle_of(&image, textures));
        if handle == 0 && is_used {
            return Err(HostError::UnboundReference {
                entry: program.name().to_owned(),
                name: name.clone(),
            });
        }
        bank.extend([handle as u32, (handle >> 32) as u32]);
    }
    Ok(())
}

/// The handle of an image of a launch. Equal images share one.
fn handle_of(image: &Texture, textures: &[Texture]) -> u64 {
    let index = textures.iter().position(|other| other == image);
    index.map_or(0, |index| index as u64 + 1)
}

/// The textures and surfaces of a launch: of its arguments in their order, then of references. A handle is an index here plus 1.
fn textures_of(args: &[Arg], placement: &Placement) -> Vec<Texture> {
    let mut textures = argument_textures(args, placement);
    textures.extend(placement.references.iter().flatten());
    textures
}

fn argument_textures(args: &[Arg], placement: &Placement) -> Vec<Texture> {
    let found = |arg: &Arg| match arg {
        Arg::Image(image) => vec![texture(image, placement)],
        Arg::Struct(fields) => argument_textures(fields, placement),
        _ => Vec::new(),
    };
    args.iter().flat_map(found).collect()
}

fn texture(image: &Image, placement: &Placement) -> Texture {
    Texture {
        base: placement.buffers[image.buffer],
        ..image.texture
    }
}

/// The bytes of an argument.
fn bytes_of(arg: &Arg, placement: &Placement, textures: &[Texture]) -> Result<Vec<u8>, HostError> {
    Ok(match arg {
        Arg::Buffer(index) => placement.buffers[*index].to_le_bytes().to_vec(),
        Arg::Address(to, offset) => placement.address_of(to, *offset)?.to_le_bytes().to_vec(),
        Arg::Scalar(_, bytes) | Arg::Bytes(bytes) => bytes.clone(),
        Arg::Struct(fields) => structure(fields, placement, textures)?,
        Arg::TensorMap(tiles) => tensor_map(tiles, placement).to_bytes().to_vec(),
        Arg::Image(image) => handle_of(&texture(image, placement), textures).to_le_bytes().to_vec(),
    })
}

/// The bytes of a structure in C layout: fields and total size are padded to their alignments.
fn structure(fields: &[Arg], placement: &Placement, textures: &[Texture]) -> Result<Vec<u8>, HostError> {
    let mut bytes = Vec::new();
    for field in fields {
        let value = bytes_of(field, placement, textures)?;
        // Padding before the field.
        bytes.resize(bytes.len().next_multiple_of(field.alignment()), 0);
        bytes.extend(value);
    }
    let whole = fields.iter().map(Arg::alignment).max().unwrap_or(1);
    bytes.resize(bytes.len().next_multiple_of(whole), 0);
    Ok(bytes)
}

/// The tensor map of a buffer. Its dimensions are reversed: a tensor map has the contiguous dimension first.
fn tensor_map(tiles: &Tiles, placement: &Placement) -> TensorMap {
    let reversed = |list: &[u32]| {
        let mut all = [1; 5];
        all.iter_mut().zip(list.iter().rev()).for_each(|(to, &n)| *to = n);
        all
    };
    // Unused dimensions of the five have size 1.
    let sizes = reversed(&tiles.shape);
    let mut strides = [u64::from(tiles.element.bytes()); 5];
    for n in 1..5 {
        strides[n] = strides[n - 1] * u64::from(sizes[n - 1]);
    }
    let mut steps = [1; 5];
    steps
        .iter_mut()
        .zip(tiles.steps.iter().rev())
        .for_each(|(to, &n)| *to = n);
    TensorMap {
        base: placement.buffers[tiles.buffer],
        rank: tiles.shape.len() as u8,
        element: tiles.element,
        swizzle: tiles.swizzle,
        sizes,
        strides,
        tile: reversed(&tiles.tile),
        steps,
        nan_fill: tiles.nan_fill,
        im2col: tiles.im2col,
    }
}

fn describe(arg: &Arg, bytes: usize) -> String {
    match arg {
        Arg::Buffer(_) | Arg::Address(..) => "an address (8 bytes)".to_owned(),
        Arg::Scalar(dtype, _) => format!("a scalar {dtype} ({bytes} bytes)"),
        Arg::Image(_) => "the handle of a texture or surface (8 bytes)".to_owned(),
        Arg::Bytes(_) => format!("{bytes} bytes"),
        Arg::Struct(_) => format!("a structure of {bytes} bytes"),
        Arg::TensorMap(_) => format!("a tensor map ({bytes} bytes)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::dtype::Dtype;

    #[test]
    fn structure_is_padded_as_in_c_between_its_fields_and_at_its_end() {
        let placement = Placement {
            buffers: Vec::new(),
            targets: Vec::new(),
            globals: Vec::new(),
            references: Vec::new(),
            print: None,
            constants: None,
            banks: Vec::new(),
            regions: Vec::new(),
        };
        let byte = || Arg::Scalar(Dtype::U8, vec![0xa1]);
        let word = || Arg::Scalar(Dtype::U32, vec![0xb1, 0xb2, 0xb3, 0xb4]);
        let wide = || Arg::Scalar(Dtype::F64, vec![0xc1; 8]);
        let inner = || Arg::Struct(vec![wide(), byte()]);
        // sizeof as a C compiler for x86-64 gives it.
        for (fields, size) in [
            (vec![byte()], 1),
            (vec![word(), byte()], 8),
            (vec![byte(), word(), byte()], 12),
            (vec![wide(), byte()], 16),
            (vec![inner(), byte()], 24),
            (vec![byte(), inner()], 24),
        ] {
            let bytes = structure(&fields, &placement, &[]).unwrap();
            assert_eq!(bytes.len(), size, "{fields:?}");
        }
        let bytes = structure(&[byte(), word(), byte()], &placement, &[]).unwrap();
        assert_eq!(bytes, [0xa1, 0, 0, 0, 0xb1, 0xb2, 0xb3, 0xb4, 0xa1, 0, 0, 0]);
    }
}
