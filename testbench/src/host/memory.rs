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
    /// Constant banks by number, in words. Each launch has its own bank 0.
    pub(super) banks: Vec<Vec<u32>>,
    /// All named regions of device memory: the scenario's buffers, then the module's global variables.
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
        };
        let (globals, banks) = module::place(&given, program, storage, &mut regions)?;
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
            globals,
            print: module::variable_address(program, &banks, printf::BUFFER),
            references: module::references(scenario, program, &buffers)?,
            buffers,
            banks,
            regions,
        })
    }

    /// Allocates and fills the module's variables only. The caller allocates buffers.
    ///
    /// # Errors
    /// If memory is full.
    pub fn of_module(program: &Module, storage: &Storage) -> Result<Placement, HostError> {
        let mut regions = Vec::new();
        let (globals, banks) = module::place(&Given::default(), program, storage, &mut regions)?;
        Ok(Placement {
            references: vec![None; program.references.len()],
            buffers: Vec::new(),
            targets: Vec::new(),
            globals,
            print: module::variable_address(program, &banks, printf::BUFFER),
            banks,
            regions,
        })
    }

    /// The initial bytes of a buffer, with its addresses.
    pub(crate) fn init_of<'a>(&self, scenario: &'a Scenario, buffer: usize) -> Cow<'a, [u8]> {
        let init = &scenario.buffers[buffer].init;
        filled(init, CheckedData::Buffer(buffer), &scenario.pointers, &self.targets)
    }

    /// The address of a target that an argument of a launch names.
    pub(super) fn address_of(&self, to: &Target) -> Result<u64, HostError> {
        address_of(to, &self.regions, self.buffers.len())
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
}

/// The address of a target. `regions` has the buffers of the scenario, then the variables of the module.
pub(super) fn address_of(to: &Target, regions: &[Region], n_buffers: usize) -> Result<u64, HostError> {
    let name = match to {
        Target::Buffer(index) => return Ok(regions[*index].first),
        Target::Variable(name) => name,
    };
    let variables = &regions[n_buffers..];
    let found = variables.iter().find(|region| region.name == *name);
    found
        .map(|region| region.first)
        .ok_or_else(|| HostError::UnknownAddress {
            nearest: nearest(name, regions.iter().map(|region| region.name.as_str())),
            name: name.clone(),
        })
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
            // The first address copies the bytes: the scenario's stay as they are.
            let element = &mut bytes.to_mut()[at as usize..][..8];
            let offset = u64::from_le_bytes(element.try_into().expect("an address has 8 bytes"));
            element.copy_from_slice(&(target + offset).to_le_bytes());
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
