//! Resolves the text of a scenario: generates elements and expectations, and finds the buffers of arguments.

use std::collections::BTreeMap;

use warpwave_isa::exec::bulk::{Element, Im2col};

use super::dtype::Dtype;
use super::elements::{self, Source};
use super::files::Files;
use super::format::{ElementSource, TileFill};
use super::patterns::{self, Matrix};
use super::pointers::{self, Elements, Named, Owner};
use super::quantity::Constants;
use super::structures::Structure;
use super::{Arg, Buffer, Fault, Layout, ScenarioError, StructField, Target, Tiles, data, format, image, nearest};

/// A buffer, and the targets of the addresses in it.
pub(super) struct Resolved {
    pub buffer: Buffer,
    /// Addresses in it: the target, and their offsets in bytes.
    pub pointers: Vec<(Target, Vec<u64>)>,
    /// The fields of a buffer of structures, each with its elements before the first launch.
    pub fields: Vec<(StructField, Vec<u8>)>,
}

/// Generates the buffers of a table with their initial elements. The caller adds the expected ones.
pub(super) fn buffers<F: FnOnce(Fault) -> ScenarioError>(
    texts: &BTreeMap<String, format::Buffer>,
    table: &str,
    context: &Context<'_>,
    at: impl Fn(&str) -> F,
) -> Result<Vec<Resolved>, ScenarioError> {
    let is_variable = table == "globals";
    let read = |(n, (name, text)): (usize, (&String, &format::Buffer))| {
        let key = format!("{table}.{name}");
        let layout = context.layout(name, text).map_err(at(&format!("{key}.shape")))?;
        let target = match is_variable {
            true => Target::Variable(name.clone()),
            false => Target::Buffer(n),
        };
        let buffer = |init| Buffer {
            name: name.clone(),
            layout: layout.clone(),
            init,
            expect: None,
        };
        if let Some(fields) = &text.fields {
            return structures(name, fields, &layout, &target, context, |rest| {
                at(&format!("{key}.fields{rest}"))
            })
            .map(|(init, pointers, fields)| Resolved {
                buffer: buffer(init),
                pointers,
                fields,
            });
        }
        let owner = Owner {
            target,
            stride: layout.dtype.bytes() as u64,
            count: 1,
        };
        let elements = match &text.init {
            // Empty: the variable keeps the bytes of its program.
            None if is_variable => Vec::new().into(),
            init => {
                let init = init.as_ref().unwrap_or(&ElementSource::Zeros);
                context
                    .elements(init, &layout, &owner)
                    .map_err(at(&format!("{key}.init")))?
            }
        };
        let offset = |index: &u64| index * layout.dtype.bytes() as u64;
        let pointers = elements.pointers.into_iter();
        let pointers = pointers.map(|to| (to.to, to.elements.iter().map(offset).collect()));
        Ok(Resolved {
            pointers: pointers.collect(),
            fields: Vec::new(),
            buffer: buffer(elements.bytes),
        })
    };
    texts.iter().enumerate().map(read).collect()
}

/// Bytes of a buffer of structures, its addresses, and the elements of each field.
type Structures = (Vec<u8>, Vec<(Target, Vec<u64>)>, Vec<(StructField, Vec<u8>)>);

fn structures<F: FnOnce(Fault) -> ScenarioError>(
    name: &str,
    texts: &[format::Field],
    layout: &Layout,
    target: &Target,
    context: &Context<'_>,
    at: impl Fn(&str) -> F,
) -> Result<Structures, ScenarioError> {
    let structure = Structure::new(name, texts, context.constants).map_err(at(""))?;
    data::check_room(layout.bytes()).map_err(at(""))?;
    let (mut bytes, mut pointers, mut fields) = (vec![0; layout.bytes() as usize], Vec::new(), Vec::new());
    for (text, field) in texts.iter().zip(structure.fields) {
        let owner = Owner {
            target: target.clone(),
            stride: field.stride,
            count: field.count,
        };
        let init = text.init.as_ref().unwrap_or(&ElementSource::Zeros);
        let elements = context.elements(init, &field.layout(layout), &owner);
        let elements = elements.map_err(at(&format!(".{}.init", text.name)))?;
        field.scatter(&elements.bytes, &mut bytes);
        for to in elements.pointers {
            pointers.push((to.to, to.elements.iter().map(|&index| field.at(index)).collect()));
        }
        fields.push((field, elements.bytes));
    }
    Ok((bytes, pointers, fields))
}

impl Resolved {
    /// The initial elements, for expressions: the buffer's, or those of each field. Addresses are not known yet.
    pub fn sources(&self) -> Vec<Source<'_>> {
        // Every source of addresses makes the first element one, so that one tells.
        let holds_address = |first: u64| self.pointers.iter().any(|(_, at)| at.contains(&first));
        let fields = self.fields.iter().filter(|(field, _)| !holds_address(field.at(0)));
        let fields = fields.map(|(field, bytes)| Source {
            name: &field.name,
            dtype: field.dtype,
            bytes,
        });
        let is_plain = self.fields.is_empty() && self.pointers.is_empty();
        let whole = Source {
            name: &self.buffer.name,
            dtype: self.buffer.layout.dtype,
            bytes: &self.buffer.init,
        };
        Some(whole).filter(|_| is_plain).into_iter().chain(fields).collect()
    }
}

/// What the text of a buffer may refer to.
pub(super) struct Context<'a> {
    pub files: &'a Files,
    pub constants: &'a Constants,
    pub matrices: &'a BTreeMap<String, format::Matrix>,
    /// All buffers, in order.
    pub named: Vec<Named<'a>>,
}

impl Context<'_> {
    /// Evaluates type and shape of a buffer.
    pub fn layout(&self, name: &str, buffer: &format::Buffer) -> Result<Layout, Fault> {
        let size = |size| self.constants.size(size, 0, u64::MAX);
        let shape = buffer.shape.iter().map(size).collect::<Result<_, _>>()?;
        match (buffer.dtype, &buffer.fields) {
            (Some(dtype), None) => Ok(Layout { dtype, shape }),
            // Each field has sources of its own.
            (None, Some(fields)) if buffer.init.is_none() && buffer.expect.0.is_empty() => {
                Ok(Structure::new(name, fields, self.constants)?.layout(shape))
            }
            _ => Err(Fault::DtypeOrFields),
        }
    }

    /// Generates initial elements.
    pub fn elements(&self, source: &ElementSource, layout: &Layout, owner: &Owner) -> Result<Elements, Fault> {
        data::check_room(layout.bytes())?;
        match source {
            ElementSource::Address(address) => pointers::all(address, layout, &self.named, self.constants),
            ElementSource::Addresses(list) => pointers::list(list, layout, &self.named, self.constants),
            ElementSource::Ring(ring) => pointers::ring(ring, layout, owner, self.constants),
            source => self.bytes(source, layout).map(Elements::from),
        }
    }

    /// Generates initial elements without addresses, or expected ones that name no other buffer.
    pub fn bytes(&self, source: &ElementSource, layout: &Layout) -> Result<Vec<u8>, Fault> {
        data::check_room(layout.bytes())?;
        match source {
            ElementSource::Zeros => Ok(vec![0; layout.bytes() as usize]),
            ElementSource::Expr(expr) => elements::bytes(expr, layout, 0, self.constants, &[]),
            ElementSource::Table(table) => data::bytes(table, layout, 0, self.files, self.constants),
            ElementSource::Permutation(permutation) => {
                let seed = self.constants.size(&permutation.seed, 0, u64::MAX)?;
                data::integers(layout.dtype, &patterns::permutation(layout.elements(), seed))
            }
            ElementSource::Csr(part) => self.matrix_part(part, layout),
            ElementSource::Reference
            | ElementSource::Address(_)
            | ElementSource::Addresses(_)
            | ElementSource::Ring(_) => Err(Fault::ReferenceAsInit),
        }
    }

    /// The row offsets or the columns of a sparse matrix.
    fn matrix_part(&self, name: &str, layout: &Layout) -> Result<Vec<u8>, Fault> {
        let unknown = || Fault::UnknownMatrix {
            nearest: nearest(
                name.split('.').next().unwrap_or_default(),
                self.matrices.keys().map(String::as_str),
            ),
            name: name.to_owned(),
        };
        // At the last dot: the name of a matrix may have dots.
        let (matrix, part) = name.rsplit_once('.').ok_or_else(unknown)?;
        let matrix = Matrix::new(self.matrices.get(matrix).ok_or_else(unknown)?, self.constants)?;
        let [rows, nonzeros] = matrix.sizes();
        let want = match part {
            "offsets" => rows + 1,
            "columns" => nonzeros,
            _ => return Err(unknown()),
        };
        let found = layout.elements();
        if found != want {
            let name = name.to_owned();
            return Err(Fault::MatrixShape { name, found, want });
        }
        let numbers = match part {
            "offsets" => matrix.offsets(),
            _ => matrix.columns(),
        };
        data::integers(layout.dtype, &numbers)
    }
}

/// Checks tolerances: finite and not negative. With `rtol` at 1 or more, a buffer of zeros would pass for any expectation.
pub(super) fn check_tolerances(rtol: f64, atol: f64) -> Result<(), Fault> {
    let is_sound = |value: &f64| value.is_finite() && *value >= 0.0;
    match [rtol, atol].into_iter().find(|value| !is_sound(value)) {
        Some(value) => Err(Fault::BadTolerance { value }),
        None if rtol >= 1.0 => Err(Fault::BadRelative { value: rtol }),
        None => Ok(()),
    }
}

/// True if some finite number of the type fails the expectation of this element. Otherwise `expect` tests nothing.
pub(super) fn can_miss(dtype: Dtype, want: &[u8], rtol: f64, atol: f64) -> bool {
    let want = dtype.read(want).value();
    let (least, greatest) = dtype.bounds();
    let distance = (want - least).max(greatest - want);
    // Only an equal value passes for an infinity or a NaN.
    !want.is_finite() || distance > atol + rtol * want.abs()
}

/// Resolves the arguments of a launch.
pub(super) fn args(args: Vec<format::Arg>, buffers: &[Buffer], constants: &Constants) -> Result<Vec<Arg>, Fault> {
    let read = |arg| read_arg(arg, buffers, constants);
    args.into_iter().map(read).collect()
}

fn read_arg(arg: format::Arg, buffers: &[Buffer], constants: &Constants) -> Result<Arg, Fault> {
    let (dtype, quantity) = match arg {
        format::Arg::Buffer(name) => return find_buffer(name, buffers),
        format::Arg::Address(address) => {
            let named = buffers.iter().map(|buffer| Named {
                name: &buffer.name,
                bytes: buffer.layout.bytes(),
            });
            let (to, offset) = pointers::address(&address, &named.collect::<Vec<_>>(), constants)?;
            return Ok(Arg::Address(to, offset));
        }
        format::Arg::Bytes(hex) => return read_hex(&hex).map(Arg::Bytes),
        format::Arg::Image(image) => return image::read(image, buffers).map(Arg::Image),
        format::Arg::Struct(fields) => return args(fields, buffers, constants).map(Arg::Struct),
        format::Arg::TensorMap(map) => return read_map(map, buffers, constants),
        format::Arg::Scalar(dtype, quantity) => (dtype, quantity),
    };
    let mut bytes = Vec::new();
    data::append(dtype, &mut bytes, constants.number(&quantity)?)?;
    Ok(Arg::Scalar(dtype, bytes))
}

/// Resolves a tensor map. It has one to five dimensions, and its tiles have as many. A size of a tile is 1 to 256, and a row is a
/// multiple of 16 bytes. A tile of an im2col map is its pixels per column, up to 1024, and its channels per pixel.
fn read_map(map: format::TensorMap, buffers: &[Buffer], constants: &Constants) -> Result<Arg, Fault> {
    let Arg::Buffer(buffer) = find_buffer(map.buffer, buffers)? else {
        unreachable!("a buffer's name gives a buffer")
    };
    let size = |size| constants.size(size, 0, u32::MAX.into()).map(|size| size as u32);
    let tile = map.tile.iter().map(size).collect::<Result<Vec<u32>, _>>()?;
    let layout = &buffers[buffer].layout;
    let element = layout.dtype.element();
    // The sizes of a tensor map have 32 bits.
    let shape: Option<Vec<u32>> = layout.shape.iter().map(|&n| u32::try_from(n).ok()).collect();
    // The position is the encoding of the swizzle mode.
    let swizzle = [0, 32, 64, 128].iter().position(|&bytes| bytes == map.swizzle);
    let row = tile.last().map_or(0, |&n| n.saturating_mul(element.bytes().into()));
    let rank = layout.shape.len();
    let im2col = map.im2col.map(|corners| bounding_box(&corners, rank)).transpose()?;
    let fits = match im2col {
        None => (1..=5).contains(&rank) && rank == tile.len() && tile.iter().all(|n| (1..=256).contains(n)),
        Some(_) => matches!(tile[..], [1..=1024, 1..=256]),
    };
    let is_float = matches!(element, Element::F16 | Element::Bf16 | Element::F32 | Element::F64);
    // Only a float can be filled with NaN: checked below.
    let nan_fill = map.fill == TileFill::Nan;
    // `cuTensorMapEncode` takes steps from 1 to 8, one for each dimension.
    let has_steps = map.steps.is_empty() || map.steps.len() == rank && map.steps.iter().all(|n| (1..=8).contains(n));
    match (shape, swizzle) {
        (Some(shape), Some(swizzle))
            if fits
                // The rules of `cuTensorMapEncode`: rows of whole 16 bytes, and a swizzle span that holds a row.
                && row.is_multiple_of(16)
                && (swizzle == 0 || row <= map.swizzle)
                && has_steps
                && (is_float || !nan_fill) =>
        {
            Ok(Arg::TensorMap(Tiles {
                buffer,
                shape,
                tile,
                swizzle: swizzle as u8,
                element,
                steps: map.steps,
                nan_fill,
                im2col,
            }))
        }
        _ => Err(Fault::BadTiles {
            shape: layout.shape.clone(),
            tile,
            swizzle: map.swizzle,
        }),
    }
}

/// The bounding box of an im2col map. The text gives corners in the order of the shape, so the width is last.
fn bounding_box(corners: &format::Corners, rank: usize) -> Result<Im2col, Fault> {
    // Without the images and the channels.
    let pixels = rank.saturating_sub(2);
    if !(3..=5).contains(&rank) || corners.lower.len() != pixels || corners.upper.len() != pixels {
        return Err(Fault::BadIm2col { rank });
    }
    let reversed = |list: &[i16]| {
        let mut all = [0; 3];
        all.iter_mut().zip(list.iter().rev()).for_each(|(to, &n)| *to = n);
        all
    };
    Ok(Im2col {
        lower: reversed(&corners.lower),
        upper: reversed(&corners.upper),
    })
}

pub(super) fn find_buffer(name: String, buffers: &[Buffer]) -> Result<Arg, Fault> {
    let found = buffers.iter().position(|buffer| buffer.name == name);
    found.map(Arg::Buffer).ok_or_else(|| Fault::UnknownBuffer {
        nearest: nearest(&name, buffers.iter().map(|buffer| buffer.name.as_str())),
        name,
    })
}

fn read_hex(hex: &str) -> Result<Vec<u8>, Fault> {
    // ASCII, so the slices below end between characters.
    if !hex.len().is_multiple_of(2) || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(Fault::NotHex);
    }
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("checked to be digits");
    Ok((0..hex.len()).step_by(2).map(byte).collect())
}
