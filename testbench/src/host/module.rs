//! Places module variables: initial bytes from the program or the scenario, and constant banks.
//! A variable without `init` in the scenario keeps the bytes of its program.

use warpwave_components::storage::Storage;
use warpwave_isa::exec::texture::Texture;
use warpwave_ptx::{ADDRESS_BANK, CONST_BANK, CONSTANTS_COPY, Module, Relocation};

use super::HostError;
use super::memory::{Given, Region, address_of, allocate, filled};
use crate::scenario::{Buffer, CheckedData, Scenario};

/// The placed variables of a module.
pub(super) struct Placed {
    /// Addresses of the scenario's variables. `None` for constants.
    pub globals: Vec<Option<u64>>,
    /// Address of the copy of the constants in device memory, if there is one.
    pub copy: Option<u64>,
    pub banks: Vec<Vec<u32>>,
}

/// Places all variables of the module, and appends the ones in device memory to `regions`.
///
/// A constant whose address the scenario takes is in device memory too: CUDA gives the host such an address.
pub(super) fn place(
    given: &Given<'_>,
    module: &Module,
    storage: &Storage,
    regions: &mut Vec<Region>,
) -> Result<Placed, HostError> {
    let addresses = module
        .globals
        .iter()
        .map(|global| allocate(storage, &global.name, global.bytes.len() as u64))
        .collect::<Result<Vec<_>, _>>()?;
    // All addresses are known now, so a variable may hold the address of a later one.
    for (global, &address) in module.globals.iter().zip(&addresses) {
        storage.write(address, &relocated(global, &addresses));
        regions.push(Region {
            name: global.name.clone(),
            first: address,
            bytes: global.bytes.len() as u64,
        });
    }
    // `regions` held the buffers of the scenario when the call began.
    let n_buffers = regions.len() - addresses.len();
    let mut constant = module.constant_image.clone();
    let copy = copy_of_constants(given, module, storage, &addresses)?;
    if let Some(copy) = copy.filter(|_| given.takes_constants) {
        regions.extend(module.constants.iter().map(|constant| Region {
            name: constant.name.clone(),
            first: copy + u64::from(constant.offset),
            bytes: constant.bytes.into(),
        }));
    }
    relocate(&mut constant, &module.constant_relocations, &addresses);
    // The scenario's bytes replace the program's after relocation, so they may overwrite addresses.
    let targets = given.pointers.iter();
    let targets = targets.map(|pointers| address_of(&pointers.to, regions, n_buffers));
    let targets = targets.collect::<Result<Vec<_>, _>>()?;
    let mut placed = Vec::new();
    for (n, buffer) in given.globals.iter().enumerate() {
        let init = filled(&buffer.init, CheckedData::Global(n), given.pointers, &targets);
        placed.push(overwrite(buffer, &init, module, storage, &addresses, &mut constant)?);
    }
    // The copy holds what the bank holds, with the scenario's bytes.
    if let Some(copy) = copy {
        storage.write(copy, &constant);
    }
    let mut banks = vec![Vec::new(); usize::from(CONST_BANK.max(ADDRESS_BANK)) + 1];
    banks[usize::from(CONST_BANK)] = words(&constant);
    // Generated code takes the address of a variable from here: 8 bytes each, in the module's order.
    banks[usize::from(ADDRESS_BANK)] = words(&addresses.iter().flat_map(|at| at.to_le_bytes()).collect::<Vec<_>>());
    Ok(Placed {
        globals: placed,
        copy,
        banks,
    })
}

/// Returns the address of the copy of the constants. The module has a copy if its code takes the address of a constant.
fn copy_of_constants(
    given: &Given<'_>,
    module: &Module,
    storage: &Storage,
    addresses: &[u64],
) -> Result<Option<u64>, HostError> {
    let of_module = module.globals.iter().position(|global| global.name == CONSTANTS_COPY);
    match of_module {
        Some(copy) => Ok(Some(addresses[copy])),
        None if given.takes_constants => {
            allocate(storage, CONSTANTS_COPY, module.constant_image.len() as u64).map(Some)
        }
        None => Ok(None),
    }
}

/// The image of each reference of the module.
pub(super) fn references(
    scenario: &Scenario,
    module: &Module,
    buffers: &[u64],
) -> Result<Vec<Option<Texture>>, HostError> {
    let is_known = |name: &String| module.references.contains(name);
    if let Some(unknown) = scenario.references.keys().find(|name| !is_known(name)) {
        return Err(HostError::UnknownReference {
            name: unknown.clone(),
            known: module.references.clone(),
        });
    }
    let bound = |name: &String| {
        let image = scenario.references.get(name)?;
        Some(Texture {
            base: buffers[image.buffer],
            ..image.texture
        })
    };
    Ok(module.references.iter().map(bound).collect())
}

/// The address of a global variable, read from the address bank.
pub(super) fn variable_address(module: &Module, banks: &[Vec<u32>], name: &str) -> Option<u64> {
    let n = module.globals.iter().position(|global| global.name == name)?;
    let words = banks[usize::from(ADDRESS_BANK)].get(2 * n..2 * n + 2)?;
    Some(u64::from(words[1]) << 32 | u64::from(words[0]))
}

/// The initial bytes of a variable, with relocations applied.
fn relocated(global: &warpwave_ptx::Global, addresses: &[u64]) -> Vec<u8> {
    let mut bytes = global.bytes.clone();
    relocate(&mut bytes, &global.relocations, addresses);
    bytes
}

fn relocate(bytes: &mut [u8], relocations: &[Relocation], addresses: &[u64]) {
    for relocation in relocations {
        relocation.apply(bytes, addresses[relocation.global as usize]);
    }
}

/// Overwrites a variable with the scenario's bytes. Returns its address, or `None` for a constant.
fn overwrite(
    buffer: &Buffer,
    init: &[u8],
    module: &Module,
    storage: &Storage,
    addresses: &[u64],
    constant: &mut [u8],
) -> Result<Option<u64>, HostError> {
    let check = |want: u64| match buffer.layout.bytes() {
        found if found == want => Ok(()),
        found => Err(HostError::GlobalSize {
            name: buffer.name.clone(),
            found,
            want,
        }),
    };
    if let Some(n) = module.globals.iter().position(|global| global.name == buffer.name) {
        // A part of a variable cannot be given: `GlobalSize` asks for all of it.
        check(module.globals[n].bytes.len() as u64)?;
        storage.write(addresses[n], init);
        return Ok(Some(addresses[n]));
    }
    let found = module.constants.iter().find(|constant| constant.name == buffer.name);
    let variable = found.ok_or_else(|| HostError::UnknownGlobal {
        name: buffer.name.clone(),
        known: names(module),
    })?;
    check(u64::from(variable.bytes))?;
    if buffer.expect.is_some() {
        return Err(HostError::ConstantExpected {
            name: buffer.name.clone(),
        });
    }
    constant[variable.offset as usize..][..init.len()].copy_from_slice(init);
    Ok(None)
}

fn names(module: &Module) -> Vec<String> {
    let globals = module.globals.iter().map(|global| global.name.clone());
    globals
        .chain(module.constants.iter().map(|constant| constant.name.clone()))
        .collect()
}

/// Bytes as little-endian words. The last word is padded with zeros.
pub(super) fn words(bytes: &[u8]) -> Vec<u32> {
    let word = |chunk: &[u8]| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        u32::from_le_bytes(word)
    };
    bytes.chunks(4).map(word).collect()
}
