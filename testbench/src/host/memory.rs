//! Places buffers and module variables in device memory.

use std::borrow::Cow;

use warpwave_components::storage::Storage;
use warpwave_isa::exec::texture::Texture;
use warpwave_ptx::{Module, printf};

use super::HostError;
use super::module;
use crate::scenario::{Buffer, CheckedData, Pointers, Scenario, Target, nearest};

/// Device addresses of a scenario's data, and the constant banks of every launch.
#[derive(Clone, Debug)]
pub struct Placement {
    /// Address of each buffer, by its index in the scenario.
    pub buffers: Vec<u64>,
    /// Address that each entry of [`Scenario::pointers`] points to.
    pub(super) targets: Vec<u64>,
    /// Address of each module variable of the scenario. `None` for a constant.
    pub globals: Vec<Option<u64>>,
    /// The image that the scenario binds to each texture, surface or sampler reference of the module.
    pub references: Vec<Option<Texture>>,
    /// Address of the `vprintf` buffer. `None` if the module does not call `vprintf`.
    pub print: Option<u64>,
    /// Address of the copy of the constants. `None` if neither the module nor the scenario takes the address of one.
    pub(super) constants: Option<u64>,
    /// Constant banks by number, in words. Each launch has its own bank 0.
    pub(super) banks: Vec<Vec<u32>>,
    /// All named regions of device memory: the scenario's buffers, the module's global variables, then workspaces.
    pub regions: Vec<Region>,
}

/// A named region of memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Region {
    /// The buffer or variable.
    pub name: String,
    /// The first address.
    pub first: u64,
    /// The size in bytes.
    pub bytes: u64,
}

impl Placement {
    /// Allocates and fills buffers in the scenario's order, then the module's variables.
    ///
    /// # Errors
    /// If memory is full, or if a variable of the scenario does not match the module.
    pub fn new(scenario: &Scenario, program: &Module, storage: &Storage) -> Result<Placement, HostError> {
        let place = |buffer: &Buffer| allocate(storage, &buffer.name, buffer.layout.bytes());
        let buffers = scenario.buffers.iter().map(place).collect::<Result<Vec<_>, _>>()?;
        let named = |(buffer, &first): (&Buffer, &u64)| Region {
            name: buffer.name.clone(),
            first,
            bytes: buffer.layout.bytes(),
        };
        let mut regions: Vec<Region> = scenario.buffers.iter().zip(&buffers).map(named).collect();
        let given = Given {
            globals: &scenario.globals,
            pointers: &scenario.pointers,
            takes_constants: takes_constants(scenario, program),
        };
        let placed = module::place(&given, program, storage, &mut regions)?;
        check_offsets(scenario, &regions)?;
        // After all allocations: a pointer may lead to a buffer or variable that comes later.
        let targets = scenario.pointers.iter();
        let targets = targets.map(|pointers| address_of(&pointers.to, &regions, scenario.buffers.len()));
        let targets = targets.collect::<Result<Vec<_>, _>>()?;
        for (n, (buffer, &address)) in scenario.buffers.iter().zip(&buffers).enumerate() {
            let init = filled(&buffer.init, CheckedData::Buffer(n), &scenario.pointers, &targets);
            storage.write(address, &init);
        }
        Ok(Placement {
            targets,
            globals: placed.globals,
            print: module::variable_address(program, &placed.banks, printf::BUFFER),
            constants: placed.copy,
            references: module::references(scenario, program, &buffers)?,
            buffers,
            banks: placed.banks,
            regions,
        })
    }

    /// Allocates and fills the module's variables only. The caller allocates buffers.
    ///
    /// # Errors
    /// If memory is full.
    pub fn of_module(program: &Module, storage: &Storage) -> Result<Placement, HostError> {
        let mut regions = Vec::new();
        let placed = module::place(&Given::default(), program, storage, &mut regions)?;
        Ok(Placement {
            references: vec![None; program.references.len()],
            buffers: Vec::new(),
            targets: Vec::new(),
            globals: placed.globals,
            print: module::variable_address(program, &placed.banks, printf::BUFFER),
            constants: placed.copy,
            banks: placed.banks,
            regions,
        })
    }

    /// The initial bytes of a buffer, with its addresses.
    pub(crate) fn init_of<'a>(&self, scenario: &'a Scenario, buffer: usize) -> Cow<'a, [u8]> {
        let init = &scenario.buffers[buffer].init;
        filled(init, CheckedData::Buffer(buffer), &scenario.pointers, &self.targets)
    }

    /// The address `offset` bytes from a target, both of an argument of a launch.
    pub(super) fn address_of(&self, to: &Target, offset: u64) -> Result<u64, HostError> {
        if let Target::Variable(name) = to {
            check_offset(variable(name, &self.regions, self.buffers.len())?, offset)?;
        }
        Ok(address_of(to, &self.regions, self.buffers.len())? + offset)
    }

    /// The data that a run may change, with addresses: buffers, then module variables in device memory.
    pub fn of<'a>(&'a self, scenario: &'a Scenario) -> impl Iterator<Item = (&'a Buffer, u64)> {
        let buffers = scenario.buffers.iter().zip(self.buffers.iter().copied());
        let globals = scenario.globals.iter().zip(&self.globals);
        buffers.chain(globals.filter_map(|(global, address)| Some((global, (*address)?))))
    }
}

/// The module variables and addresses that a scenario gives.
#[derive(Clone, Copy, Default)]
pub(super) struct Given<'a> {
    pub globals: &'a [Buffer],
    pub pointers: &'a [Pointers],
    /// True if an address leads to a constant.
    pub takes_constants: bool,
}

/// True if the scenario has the address of a constant, in initial elements or in arguments.
fn takes_constants(scenario: &Scenario, program: &Module) -> bool {
    let is_constant = |to: &Target| match to {
        Target::Variable(name) => program.constants.iter().any(|constant| constant.name == *name),
        Target::Buffer(_) => false,
    };
    let mut args = scenario.launches.iter().flat_map(|launch| &launch.args);
    scenario.pointers.iter().any(|pointers| is_constant(&pointers.to))
        || args.any(|arg| arg.has_address_of(&is_constant))
}

/// The address of a target. `regions` has the buffers of the scenario, then the module's variables.
pub(super) fn address_of(to: &Target, regions: &[Region], n_buffers: usize) -> Result<u64, HostError> {
    match to {
        Target::Buffer(index) => Ok(regions[*index].first),
        Target::Variable(name) => variable(name, regions, n_buffers).map(|region| region.first),
    }
}

/// The module variable of this name.
fn variable<'a>(name: &str, regions: &'a [Region], n_buffers: usize) -> Result<&'a Region, HostError> {
    let found = regions[n_buffers..].iter().find(|region| region.name == name);
    found.ok_or_else(|| HostError::UnknownAddress {
        nearest: nearest(name, regions.iter().map(|region| region.name.as_str())),
        name: name.to_owned(),
    })
}

/// Checks the addresses in initial elements that lead to module variables. The scenario knows the sizes of buffers alone.
fn check_offsets(scenario: &Scenario, regions: &[Region]) -> Result<(), HostError> {
    for Pointers { data, at, to } in &scenario.pointers {
        let Target::Variable(name) = to else { continue };
        let variable = variable(name, regions, scenario.buffers.len())?;
        let init = match *data {
            CheckedData::Buffer(n) => &scenario.buffers[n].init,
            CheckedData::Global(n) => &scenario.globals[n].init,
        };
        let mut offsets = at.iter().map(|&at| offset_at(init, at));
        offsets.try_for_each(|offset| check_offset(variable, offset))?;
    }
    Ok(())
}

/// Checks an offset into a variable. The end of the variable is allowed, as for buffers.
fn check_offset(variable: &Region, offset: u64) -> Result<(), HostError> {
    match offset <= variable.bytes {
        true => Ok(()),
        false => Err(HostError::OffsetOutside {
            name: variable.name.clone(),
            offset,
            bytes: variable.bytes,
        }),
    }
}

/// The offset in an element that is an address, at byte `at` of the initial bytes.
fn offset_at(init: &[u8], at: u64) -> u64 {
    let element = &init[at as usize..][..8];
    u64::from_le_bytes(element.try_into().expect("an address has 8 bytes"))
}

/// Initial bytes with the addresses of their targets added to the offsets.
pub(super) fn filled<'a>(init: &'a [u8], data: CheckedData, pointers: &[Pointers], targets: &[u64]) -> Cow<'a, [u8]> {
    // Few buffers hold pointers. The others are written without a copy.
    let mut bytes = Cow::Borrowed(init);
    let of_it = pointers
        .iter()
        .zip(targets)
        .filter(|(pointers, _)| pointers.data == data);
    for (Pointers { at, .. }, target) in of_it {
        for &at in at {
            let address = target + offset_at(&bytes, at);
            // The first address copies the bytes: the scenario's stay as they are.
            bytes.to_mut()[at as usize..][..8].copy_from_slice(&address.to_le_bytes());
        }
    }
    bytes
}

pub(crate) fn allocate(storage: &Storage, name: &str, bytes: u64) -> Result<u64, HostError> {
    storage.allocate(bytes).ok_or_else(|| HostError::OutOfMemory {
        name: name.to_owned(),
        need: bytes,
        limit: storage.capacity(),
    })
}
