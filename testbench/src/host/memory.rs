//! Places buffers and module variables in device memory.

use warpwave_components::storage::Storage;
use warpwave_ptx::{Module, printf};

use super::HostError;
use super::module;
use crate::scenario::{Buffer, Scenario};

/// Device addresses of a scenario's data, and the constant banks of every launch.
#[derive(Clone, Debug)]
pub struct Placement {
    /// Address of each buffer, by its index in the scenario.
    pub buffers: Vec<u64>,
    /// Address of each module variable of the scenario. `None` for a constant.
    pub globals: Vec<Option<u64>>,
    /// Address of the `vprintf` buffer. `None` if the module does not call `vprintf`.
    pub print: Option<u64>,
    /// Constant banks by number, in words. Each launch has its own bank 0.
    pub(super) banks: Vec<Vec<u32>>,
    /// All named regions of device memory: the scenario's buffers, then the module's variables.
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
        let place = |buffer: &Buffer| {
            let address = allocate(storage, &buffer.name, buffer.layout.bytes())?;
            storage.write(address, &buffer.init);
            Ok(address)
        };
        let buffers = scenario.buffers.iter().map(place).collect::<Result<Vec<_>, _>>()?;
        let named = |(buffer, &first): (&Buffer, &u64)| Region {
            name: buffer.name.clone(),
            first,
            bytes: buffer.layout.bytes(),
        };
        let mut regions: Vec<Region> = scenario.buffers.iter().zip(&buffers).map(named).collect();
        let (globals, banks) = module::place(&scenario.globals, program, storage, &mut regions)?;
        Ok(Placement {
            buffers,
            globals,
            print: module::address_of(program, &banks, printf::BUFFER),
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
        let (globals, banks) = module::place(&[], program, storage, &mut regions)?;
        Ok(Placement {
            buffers: Vec::new(),
            globals,
            print: module::address_of(program, &banks, printf::BUFFER),
            banks,
            regions,
        })
    }

    /// The data that a run may change, with addresses: buffers, then module variables in device memory.
    pub fn of<'a>(&'a self, scenario: &'a Scenario) -> impl Iterator<Item = (&'a Buffer, u64)> {
        let buffers = scenario.buffers.iter().zip(self.buffers.iter().copied());
        let globals = scenario.globals.iter().zip(&self.globals);
        buffers.chain(globals.filter_map(|(global, address)| Some((global, (*address)?))))
    }
}

pub(crate) fn allocate(storage: &Storage, name: &str, bytes: u64) -> Result<u64, HostError> {
    storage.allocate(bytes).ok_or_else(|| HostError::OutOfMemory {
        name: name.to_owned(),
        need: bytes,
        limit: storage.capacity(),
    })
}
