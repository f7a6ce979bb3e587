//! A scenario: a program, its buffers, its launches, what must come out. See [`format`] for the text.
//!
//! A [`Scenario`] is complete: every file beside it is read, every element made, every name resolved. What only the program
//! can tell (entries, parameters, module variables) is checked when it is placed in a device ([`crate::host`]).

pub mod dtype;

mod format;

mod files;

pub mod npy;

mod data;

pub mod builtin;

mod image;

mod error;

use std::path::Path;

pub use data::Layout;
pub use error::{Fault, ScenarioError, nearest};

use dtype::Dtype;
use files::Files;
use warpwave_isa::exec::texture::Texture;

/// A scenario, ready to run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name: that of the built-in scenario, or the file's without folder and ending.
    pub name: String,
    /// What it is.
    pub title: Option<String>,
    /// The sentence that it proves.
    pub claim: Option<String>,
    /// Path of the PTX file, as the scenario names it.
    pub ptx_path: String,
    /// PTX text.
    pub ptx: String,
    /// Preset that it asks for: a name or a path.
    pub gpu: Option<String>,
    /// Device buffers, by name.
    pub buffers: Vec<Buffer>,
    /// Module variables that the scenario names, by symbol.
    pub globals: Vec<Buffer>,
    /// Launches in order.
    pub launches: Vec<Launch>,
    /// What must hold of the metrics.
    pub asserts: Vec<Assert>,
}

/// A buffer in device memory.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// Its name.
    pub name: String,
    /// Element type and shape.
    pub layout: Layout,
    /// Its bytes before the first launch. Empty for a module variable that keeps the bytes of its program.
    pub init: Vec<u8>,
    /// What it must hold after the last one.
    pub expect: Option<Expect>,
}

/// What a buffer must hold: elements *w* such that |found - w| <= atol + rtol |w|.
#[derive(Clone, PartialEq, Debug)]
pub struct Expect {
    /// The elements.
    pub bytes: Vec<u8>,
    /// Relative tolerance; with both at 0 the bits must agree (any NaN agrees with any other).
    pub rtol: f64,
    /// Absolute tolerance.
    pub atol: f64,
}

/// A launch.
#[derive(Clone, PartialEq, Debug)]
pub struct Launch {
    /// Kernel; none where the module's only entry is meant.
    pub entry: Option<String>,
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// Shared memory beside the declared, in bytes.
    pub dynamic_shared_bytes: u32,
    /// CTAs of a cluster in x, y, z, where the launch says it.
    pub cluster: Option<[u32; 3]>,
    /// Arguments in order.
    pub args: Vec<Arg>,
}

/// An argument of a kernel.
#[derive(Clone, PartialEq, Debug)]
pub enum Arg {
    /// The address of a buffer, by its index in [`Scenario::buffers`].
    Buffer(usize),
    /// A scalar's bytes.
    Scalar(Dtype, Vec<u8>),
    /// A structure, byte by byte.
    Bytes(Vec<u8>),
    /// A structure with natural alignment.
    Struct(Vec<Arg>),
    /// The handle of a texture or surface.
    Image(Image),
    /// A tensor map, by which bulk copies take tiles of a buffer.
    TensorMap(Tiles),
}

/// An image in a buffer.
#[derive(Clone, PartialEq, Debug)]
pub struct Image {
    /// The buffer, by its index in [`Scenario::buffers`].
    pub buffer: usize,
    /// All but its address.
    pub texture: Texture,
}

/// A buffer as tiles.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tiles {
    /// Index in [`Scenario::buffers`].
    pub buffer: usize,
    /// Elements of the tensor in each dimension, the contiguous one last as in the buffer's shape.
    pub shape: Vec<u32>,
    /// Elements of a tile, likewise.
    pub tile: Vec<u32>,
    /// Bits of swizzling in shared memory: 0 none, 1 over 32 bytes, 2 over 64, 3 over 128.
    pub swizzle: u8,
    /// Bytes of an element.
    pub element: u8,
}

/// What must hold of a metric.
#[derive(Clone, PartialEq, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assert {
    /// Name in the report.
    pub metric: String,
    /// Least value.
    pub min: Option<f64>,
    /// Greatest value.
    pub max: Option<f64>,
    /// The value itself.
    pub equal: Option<f64>,
    /// Index of the launch; none for all together.
    pub launch: Option<usize>,
}

impl Scenario {
    /// Loads a scenario: a file where there is one of this path, else a built-in one of this name.
    ///
    /// # Errors
    /// If there is neither, or if it cannot be used.
    pub fn find(name_or_path: &str) -> Result<Scenario, ScenarioError> {
        let path = Path::new(name_or_path);
        if path.is_file() || path.extension().is_some_and(|end| end == "toml") {
            Self::load(path)
        } else {
            builtin::load(name_or_path)
        }
    }

    /// Loads all that a name stands for: a file or a built-in scenario as [`Scenario::find`] does, else every built-in scenario of
    /// the folder of that name.
    ///
    /// ```
    /// use warpwave::scenario::Scenario;
    /// let n = |name| Scenario::find_all(name).unwrap().len();
    /// assert_eq!((n("saxpy"), n("transpose_naive"), n("transpose")), (1, 1, 3));
    /// ```
    ///
    /// # Errors
    /// If there is none, or if one cannot be used.
    pub fn find_all(name_or_path: &str) -> Result<Vec<Scenario>, ScenarioError> {
        let folder = builtin::in_folder(name_or_path);
        if folder.is_empty() || folder.contains(&name_or_path) || Path::new(name_or_path).is_file() {
            return Ok(vec![Self::find(name_or_path)?]);
        }
        folder.into_iter().map(builtin::load).collect()
    }

    /// Loads a scenario file.
    ///
    /// # Errors
    /// If it cannot be read or used.
    pub fn load(path: &Path) -> Result<Scenario, ScenarioError> {
        let shown = path.display().to_string();
        let text = Files::Disk(".".into()).read_text(&shown);
        let text = text.map_err(|fault| ScenarioError::new(&shown, "", fault))?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Self::build(&shown, read_format(&shown, &text)?, &Files::Disk(folder))
    }

    fn build(shown: &str, file: format::File, files: &Files) -> Result<Scenario, ScenarioError> {
        let at = |key: &str| {
            let key = key.to_owned();
            move |fault| ScenarioError::new(shown, &key, fault)
        };
        let name = Path::new(shown).file_stem().unwrap_or_default();
        let buffers = read_buffers(file.buffers, "buffers", files, at)?;
        let launches = (0..).zip(file.launch).map(|(n, launch)| {
            let args = read_args(launch.args, &buffers).map_err(at(&format!("launch[{n}].args")))?;
            Ok(Launch {
                entry: launch.entry,
                grid: launch.grid.0,
                block: launch.block.0,
                dynamic_shared_bytes: launch.dynamic_shared_bytes,
                cluster: launch.cluster.map(|sizes| sizes.0),
                args,
            })
        });
        let scenario = Scenario {
            name: name.to_string_lossy().into_owned(),
            title: file.title,
            claim: file.claim,
            ptx: files.read_text(&file.ptx).map_err(at("ptx"))?,
            ptx_path: file.ptx,
            gpu: file.gpu.map(|gpu| {
                if gpu.ends_with(".toml") {
                    files.resolve(&gpu)
                } else {
                    gpu
                }
            }),
            globals: read_buffers(file.globals, "globals", files, at)?,
            launches: launches.collect::<Result<_, _>>()?,
            buffers,
            asserts: file.assert,
        };
        scenario.check().map_err(|(key, fault)| at(&key)(fault))?;
        Ok(scenario)
    }

    fn check(&self) -> Result<(), (String, Fault)> {
        let n = self.launches.len();
        if n == 0 {
            return Err((String::new(), Fault::NoLaunch));
        }
        for (i, assert) in self.asserts.iter().enumerate() {
            let key = format!("assert[{i}]");
            match assert.launch {
                Some(launch) if launch >= n => return Err((key, Fault::NoSuchLaunch { launch, n })),
                _ if assert.min.or(assert.max).or(assert.equal).is_none() => return Err((key, Fault::NothingAsserted)),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Reads the text; a slip in it comes with its line and the nearest known word.
fn read_format(shown: &str, text: &str) -> Result<format::File, ScenarioError> {
    let error = |key: String, mut error: toml::de::Error| {
        error.set_input(Some(text));
        let (nearest, message) = (meant(error.message()), error.to_string());
        ScenarioError::new(shown, &key, Fault::Syntax { message, nearest })
    };
    let reader = toml::Deserializer::parse(text).map_err(|fault| error(String::new(), fault))?;
    serde_path_to_error::deserialize(reader).map_err(|fault| {
        let key = fault.path().to_string();
        error(if key == "." { String::new() } else { key }, fault.into_inner())
    })
}

/// In "unknown field `a`, expected one of `b`, `c`": which of the expected words is nearest to the first.
fn meant(message: &str) -> Option<String> {
    let mut words = message.split('`').skip(1).step_by(2);
    let unknown = words.next().filter(|_| message.starts_with("unknown"))?;
    nearest(unknown, words)
}

fn read_buffers<F: FnOnce(Fault) -> ScenarioError>(
    buffers: std::collections::BTreeMap<String, format::Buffer>,
    table: &str,
    files: &Files,
    at: impl Fn(&str) -> F,
) -> Result<Vec<Buffer>, ScenarioError> {
    let is_variable = table == "globals";
    let read = |(name, buffer): (String, format::Buffer)| {
        let key = |key: &str| format!("{table}.{name}.{key}");
        let layout = Layout {
            dtype: buffer.dtype,
            shape: buffer.shape,
        };
        layout.check().map_err(at(&key("shape")))?;
        let init = match buffer.init {
            None if is_variable => Vec::new(),
            init => {
                let init = init.unwrap_or(format::Source::Zeros);
                data::bytes(&init, &layout, files).map_err(at(&key("init")))?
            }
        };
        let expect = buffer.expect.map(|expect| read_expect(expect, &layout, files));
        let expect = expect.transpose().map_err(at(&key("expect")))?;
        Ok(Buffer {
            name,
            layout,
            init,
            expect,
        })
    };
    buffers.into_iter().map(read).collect()
}

fn read_expect(expect: format::Expect, layout: &Layout, files: &Files) -> Result<Expect, Fault> {
    let (rtol, atol) = (expect.rtol, expect.atol);
    if let Some(value) = [rtol, atol]
        .into_iter()
        .find(|tolerance| tolerance.is_nan() || *tolerance < 0.0)
    {
        return Err(Fault::BadTolerance { value });
    }
    let source = expect.source().ok_or(Fault::NotOneSource)?;
    let bytes = data::bytes(&source, layout, files)?;
    Ok(Expect { bytes, rtol, atol })
}

fn read_args(args: Vec<format::Arg>, buffers: &[Buffer]) -> Result<Vec<Arg>, Fault> {
    args.into_iter().map(|arg| read_arg(arg, buffers)).collect()
}

fn read_arg(arg: format::Arg, buffers: &[Buffer]) -> Result<Arg, Fault> {
    let (dtype, number) = match arg {
        format::Arg::Buffer(name) => return find_buffer(name, buffers),
        format::Arg::Bytes(hex) => return read_hex(&hex).map(Arg::Bytes),
        format::Arg::Image(image) => return image::read(image, buffers).map(Arg::Image),
        format::Arg::Struct(fields) => return read_args(fields, buffers).map(Arg::Struct),
        format::Arg::TensorMap(map) => return read_map(map, buffers),
        format::Arg::Scalar(dtype, number) => (dtype, number),
    };
    let mut bytes = Vec::new();
    data::append(dtype, &mut bytes, number)?;
    Ok(Arg::Scalar(dtype, bytes))
}

/// A tensor map must have one to five dimensions, and tiles of as many, each of 1 to 256 elements and whole 16 bytes a row.
fn read_map(map: format::TensorMap, buffers: &[Buffer]) -> Result<Arg, Fault> {
    let Arg::Buffer(buffer) = find_buffer(map.buffer, buffers)? else {
        unreachable!("a buffer's name gives a buffer")
    };
    let layout = &buffers[buffer].layout;
    let element = layout.dtype.bytes() as u8;
    let shape: Option<Vec<u32>> = layout.shape.iter().map(|&n| u32::try_from(n).ok()).collect();
    let swizzle = [0, 32, 64, 128].iter().position(|&bytes| bytes == map.swizzle);
    let row = map.tile.last().map_or(0, |&n| n.saturating_mul(element.into()));
    match (shape, swizzle) {
        (Some(shape), Some(swizzle))
            if (1..=5).contains(&shape.len())
                && shape.len() == map.tile.len()
                && map.tile.iter().all(|n| (1..=256).contains(n))
                && row.is_multiple_of(16)
                && (swizzle == 0 || row <= map.swizzle) =>
        {
            Ok(Arg::TensorMap(Tiles {
                buffer,
                shape,
                tile: map.tile,
                swizzle: swizzle as u8,
                element,
            }))
        }
        _ => Err(Fault::BadTiles {
            shape: layout.shape.clone(),
            tile: map.tile,
            swizzle: map.swizzle,
        }),
    }
}

fn find_buffer(name: String, buffers: &[Buffer]) -> Result<Arg, Fault> {
    let found = buffers.iter().position(|buffer| buffer.name == name);
    found.map(Arg::Buffer).ok_or_else(|| Fault::UnknownBuffer {
        nearest: nearest(&name, buffers.iter().map(|buffer| buffer.name.as_str())),
        name,
    })
}

fn read_hex(hex: &str) -> Result<Vec<u8>, Fault> {
    if !hex.len().is_multiple_of(2) || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(Fault::NotHex);
    }
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("checked to be digits");
    Ok((0..hex.len()).step_by(2).map(byte).collect())
}

#[cfg(test)]
mod tests;
