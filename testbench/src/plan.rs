//! Plans: launches as data, for a real GPU. A separate program runs them there: `validation/measure.py`.
//!
//! ```text
//! Scenario ── Plan::of ──┐                                          ┌─> values beside those of the model
//!                        ├─> folder: plan.json, PTX, data ── GPU ──┤
//! validate ── Lab ───────┘                                          └─> results.json ── Measured ──> silicon figures
//! ```
//!
//! A plan has the PTX text, the buffers with their first bytes, and the steps of the host in order. It has no device address: a word
//! that is an address holds its offset, and a [`Relocation`] names what it points to.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::scenario::{Arg, CheckedData, Scenario, Step, Target};

/// A part of a scenario that a plan cannot hold.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{0}` cannot run on a real GPU from a plan: it uses {1}; plans hold buffers, module variables and scalars alone"
)]
pub struct NotPortable(pub String, pub &'static str);

/// The launches of one scenario or one microbenchmark.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Plan {
    /// The name.
    pub name: String,
    /// The program. In the folder it is a file, named by its hash.
    #[serde(serialize_with = "file_name")]
    pub ptx: String,
    /// Most registers of a thread.
    pub max_registers: Option<u8>,
    /// The data.
    pub buffers: Vec<PlannedBuffer>,
    /// The actions of the host, in order.
    pub steps: Vec<PlannedStep>,
}

/// A buffer in device memory, or a variable of the program.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PlannedBuffer {
    /// The name. For a variable, its symbol.
    pub name: String,
    /// True for a variable of the program.
    pub is_variable: bool,
    /// Type of the elements, such as `f32`.
    pub dtype: String,
    /// Size in bytes.
    pub bytes: u64,
    /// The bytes before the first step.
    pub init: Init,
    /// Words that are addresses.
    pub relocations: Vec<Relocation>,
}

/// The first bytes of a buffer.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Init {
    /// Zeros.
    Zeros,
    /// Of a variable: those of the program.
    Program,
    /// A ring through all nodes of this size, in random order. Each node begins with the offset of the next one.
    Ring(u64),
    /// These bytes. In the folder they are a file, named by its hash.
    #[serde(serialize_with = "data_name")]
    Data(Vec<u8>),
}

/// A word that is an address. Its bytes hold an offset from the start of the target.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Relocation {
    /// Offset of the word, in bytes.
    pub at: u64,
    /// Index of a buffer of the plan, or the symbol of a variable.
    pub to: RelocationTarget,
}

/// What a relocated word points to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum RelocationTarget {
    /// Index of a buffer of the plan.
    Buffer(usize),
    /// Symbol of a variable.
    Variable(String),
}

/// An argument: its bytes in hexadecimal digits, and the addresses in it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct PlannedArg {
    /// The bytes.
    pub hex: String,
    /// Words that are addresses.
    pub relocations: Vec<Relocation>,
}

/// An action of the host. Numbers are indices of buffers.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlannedStep {
    /// Launches a kernel.
    Launch(Box<PlannedLaunch>),
    /// Reads a buffer of 64-bit clock values into the results.
    Read(usize),
    /// Copies one buffer to another.
    Copy(usize, usize),
    /// Writes the same element, given in hexadecimal digits, to a whole buffer.
    Fill(usize, String),
    /// Restores the first bytes.
    Reset(usize),
    /// Exchanges two buffers.
    Swap(usize, usize),
}

/// A launch of a kernel.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PlannedLaunch {
    /// The kernel. `None` is the only one of the program.
    pub kernel: Option<String>,
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// CTAs of a cluster in x, y, z.
    pub cluster: Option<[u32; 3]>,
    /// Dynamic shared memory of a CTA, in bytes.
    pub dynamic_shared_bytes: u32,
    /// True for a cooperative launch.
    pub is_cooperative: bool,
    /// Arguments in order.
    pub args: Vec<PlannedArg>,
    /// True if the time of the launch counts: it is made several times, and the mean is a result.
    pub is_timed: bool,
}

impl Plan {
    /// The launches of a scenario.
    ///
    /// # Errors
    /// If the scenario uses textures, surfaces or tensor maps.
    pub fn of(scenario: &Scenario) -> Result<Plan, NotPortable> {
        let refuse = |what| NotPortable(scenario.name.clone(), what);
        if !scenario.references.is_empty() {
            return Err(refuse("texture references"));
        }
        let data = scenario.buffers.iter().map(|buffer| (buffer, false));
        let data = data.chain(scenario.globals.iter().map(|global| (global, true)));
        let buffers = data.map(|(buffer, is_variable)| PlannedBuffer {
            name: buffer.name.clone(),
            is_variable,
            dtype: buffer.layout.dtype.to_string(),
            bytes: buffer.layout.bytes(),
            init: Init::of(&buffer.init, is_variable),
            relocations: Vec::new(),
        });
        let mut plan = Plan {
            name: scenario.name.clone(),
            ptx: scenario.ptx.clone(),
            max_registers: scenario.max_registers,
            buffers: buffers.collect(),
            steps: Vec::new(),
        };
        for pointers in &scenario.pointers {
            let owner = match pointers.data {
                CheckedData::Buffer(index) => index,
                // A plan lists the variables after the buffers.
                CheckedData::Global(index) => scenario.buffers.len() + index,
            };
            let to = RelocationTarget::of(&pointers.to);
            let words = pointers.at.iter().map(|&at| Relocation { at, to: to.clone() });
            plan.buffers[owner].relocations.extend(words);
        }
        for launch in &scenario.launches {
            plan.steps.extend(launch.before.iter().map(PlannedStep::of));
            let args = launch.args.iter().map(PlannedArg::of).collect::<Result<_, _>>();
            plan.steps.push(PlannedStep::Launch(Box::new(PlannedLaunch {
                kernel: launch.entry.clone(),
                grid: launch.grid,
                block: launch.block,
                cluster: launch.cluster,
                dynamic_shared_bytes: launch.dynamic_shared_bytes,
                is_cooperative: launch.is_cooperative,
                args: args.map_err(refuse)?,
                is_timed: false,
            })));
        }
        Ok(plan)
    }

    /// The files of the folder that the plan needs: names and bytes.
    fn files(&self) -> impl Iterator<Item = (String, &[u8])> {
        let data = self.buffers.iter().filter_map(|buffer| match &buffer.init {
            Init::Data(bytes) => Some((name_of(bytes, "bin"), bytes.as_slice())),
            _ => None,
        });
        data.chain([(name_of(self.ptx.as_bytes(), "ptx"), self.ptx.as_bytes())])
    }
}

/// Writes a folder: `plan.json` with all plans, and a file for each text and for the first bytes of each buffer.
///
/// # Errors
/// If a file cannot be written.
pub fn write(folder: &Path, plans: &[Plan]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut written = BTreeSet::new();
    for (name, bytes) in plans.iter().flat_map(Plan::files) {
        // Equal bytes have one name, so several plans share a program or an array.
        if written.insert(name.clone()) {
            fs::write(folder.join(name), bytes)?;
        }
    }
    let text = serde_json::to_string_pretty(plans).expect("every key of a plan is a text");
    fs::write(folder.join("plan.json"), text + "\n")
}

impl Init {
    fn of(bytes: &[u8], is_variable: bool) -> Init {
        match bytes {
            // Without bytes in the scenario, the program's stay.
            [] if is_variable => Init::Program,
            // No file for the most frequent content.
            _ if bytes.iter().all(|&byte| byte == 0) => Init::Zeros,
            _ => Init::Data(bytes.to_vec()),
        }
    }
}

impl RelocationTarget {
    fn of(target: &Target) -> Self {
        match target {
            Target::Buffer(index) => RelocationTarget::Buffer(*index),
            Target::Variable(symbol) => RelocationTarget::Variable(symbol.clone()),
        }
    }
}

impl PlannedArg {
    /// An argument, or what it uses that a plan cannot hold.
    fn of(arg: &Arg) -> Result<Self, &'static str> {
        let (mut bytes, mut relocations) = (Vec::new(), Vec::new());
        append(arg, &mut bytes, &mut relocations)?;
        Ok(PlannedArg {
            hex: hex(&bytes),
            relocations,
        })
    }
}

/// Appends an argument in C layout: fields and structures are padded to their alignments.
fn append(arg: &Arg, bytes: &mut Vec<u8>, relocations: &mut Vec<Relocation>) -> Result<(), &'static str> {
    let alignment = arg.alignment();
    bytes.resize(bytes.len().next_multiple_of(alignment), 0);
    let mut address = |to, offset: u64, bytes: &mut Vec<u8>| {
        // The word holds its offset until the GPU's allocator has placed the target.
        let at = bytes.len() as u64;
        relocations.push(Relocation { at, to });
        bytes.extend(offset.to_le_bytes());
    };
    match arg {
        Arg::Buffer(index) => address(RelocationTarget::Buffer(*index), 0, bytes),
        Arg::Address(to, offset) => address(RelocationTarget::of(to), *offset, bytes),
        Arg::Scalar(_, value) | Arg::Bytes(value) => bytes.extend(value),
        Arg::Struct(fields) => {
            for field in fields {
                append(field, bytes, relocations)?;
            }
            // C pads the end of a structure too, so that the elements of an array stay aligned.
            bytes.resize(bytes.len().next_multiple_of(alignment), 0);
        }
        Arg::Image(_) => return Err("a texture or surface"),
        Arg::TensorMap(_) => return Err("a tensor map"),
    }
    Ok(())
}

impl PlannedStep {
    fn of(step: &Step) -> Self {
        match step {
            Step::Copy { from, to } => PlannedStep::Copy(*from, *to),
            Step::Fill { buffer, element } => PlannedStep::Fill(*buffer, hex(element)),
            Step::Reset(buffer) => PlannedStep::Reset(*buffer),
            Step::Swap(first, second) => PlannedStep::Swap(*first, *second),
        }
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The name of a file: a hash of its bytes.
fn name_of(bytes: &[u8], extension: &str) -> String {
    format!("{}.{extension}", &blake3::hash(bytes).to_hex()[..16])
}

fn file_name<S: serde::Serializer>(ptx: &str, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&name_of(ptx.as_bytes(), "ptx"))
}

fn data_name<S: serde::Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&name_of(bytes, "bin"))
}

/// The results of one plan on a GPU. `measure.py` writes them in the order of the plans.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Measured {
    /// Name of the plan.
    pub name: String,
    /// Clock of the SMs while the plan ran, in GHz.
    pub core_ghz: f64,
    /// One entry per repetition of the plan. Empty if it failed.
    pub repetitions: Vec<Repetition>,
    /// Why it failed.
    pub error: Option<String>,
}

/// One pass through the steps of a plan.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Repetition {
    /// Nanoseconds of each timed launch, in order.
    pub launches: Vec<f64>,
    /// The clock values of each read, in order.
    pub reads: Vec<Vec<u64>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structure_with_an_address_has_c_layout_and_a_relocation() {
        // struct { char tag; double *data; short last; }: offsets 0, 8, 16, size 24.
        let tag = Arg::Scalar(crate::scenario::dtype::Dtype::U8, vec![0xab]);
        let last = Arg::Scalar(crate::scenario::dtype::Dtype::U16, vec![0x34, 0x12]);
        let arg = Arg::Struct(vec![tag, Arg::Address(Target::Buffer(3), 5), last]);
        let planned = PlannedArg::of(&arg).unwrap();
        assert_eq!(
            planned.hex,
            "ab00000000000000".to_owned() + "0500000000000000" + "3412000000000000"
        );
        let to = RelocationTarget::Buffer(3);
        assert_eq!(planned.relocations, [Relocation { at: 8, to }]);
    }

    #[test]
    fn plan_of_saxpy_has_its_launch_and_its_data() {
        let scenario = Scenario::find("saxpy").unwrap();
        let plan = Plan::of(&scenario).unwrap();
        let names: Vec<_> = plan.buffers.iter().map(|buffer| buffer.name.as_str()).collect();
        assert_eq!(names, ["x", "y"]);
        let [PlannedStep::Launch(launch)] = plan.steps.as_slice() else {
            panic!("one launch, no other step: {:?}", plan.steps);
        };
        assert_eq!(launch.args.len(), scenario.launches[0].args.len());
        let buffers = launch.args.iter().flat_map(|arg| &arg.relocations);
        assert_eq!(buffers.count(), 2, "two arguments are addresses");
    }
}
