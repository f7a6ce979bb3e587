//! Resolves the text of a scenario: generates elements and expectations, and finds the buffers of arguments.

use std::collections::BTreeMap;

use super::dtype::Dtype;
use super::files::Files;
use super::{Arg, Buffer, Expect, Fault, Layout, ScenarioError, Tiles, data, format, image, nearest};

/// Generates the buffers of a table: initial elements and expected ones.
pub(super) fn buffers<F: FnOnce(Fault) -> ScenarioError>(
    buffers: BTreeMap<String, format::Buffer>,
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
        let init = match buffer.init {
            None if is_variable => Vec::new(),
            init => {
                let init = init.unwrap_or(format::ElementSource::Zeros);
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
    let source = expect.source().ok_or(Fault::NotOneSource)?;
    check_tolerances(rtol, atol)?;
    let bytes = data::bytes(&source, layout, files)?;
    let expect = Expect { bytes, rtol, atol };
    let dtype = layout.dtype;
    let can_fail = (rtol == 0.0 && atol == 0.0)
        || expect
            .bytes
            .chunks_exact(dtype.bytes())
            .any(|want| can_miss(dtype, want, &expect));
    match can_fail {
        true => Ok(expect),
        false => Err(Fault::CannotFail { dtype, rtol, atol }),
    }
}

/// Checks tolerances: finite and not negative. With `rtol` at 1 or more, a buffer of zeros would pass for any expectation.
fn check_tolerances(rtol: f64, atol: f64) -> Result<(), Fault> {
    let is_sound = |value: &f64| value.is_finite() && *value >= 0.0;
    match [rtol, atol].into_iter().find(|value| !is_sound(value)) {
        Some(value) => Err(Fault::BadTolerance { value }),
        None if rtol >= 1.0 => Err(Fault::BadRelative { value: rtol }),
        None => Ok(()),
    }
}

/// True if some finite number of the type fails the expectation of this element. Otherwise `expect` tests nothing.
fn can_miss(dtype: Dtype, want: &[u8], expect: &Expect) -> bool {
    let want = dtype.read(want).value();
    let (least, greatest) = dtype.bounds();
    let distance = (want - least).max(greatest - want);
    // Only an equal value passes for an infinity or a NaN.
    !want.is_finite() || distance > expect.atol + expect.rtol * want.abs()
}

/// Resolves the arguments of a launch.
pub(super) fn args(args: Vec<format::Arg>, buffers: &[Buffer]) -> Result<Vec<Arg>, Fault> {
    args.into_iter().map(|arg| read_arg(arg, buffers)).collect()
}

fn read_arg(arg: format::Arg, buffers: &[Buffer]) -> Result<Arg, Fault> {
    let (dtype, number) = match arg {
        format::Arg::Buffer(name) => return find_buffer(name, buffers),
        format::Arg::Bytes(hex) => return read_hex(&hex).map(Arg::Bytes),
        format::Arg::Image(image) => return image::read(image, buffers).map(Arg::Image),
        format::Arg::Struct(fields) => return args(fields, buffers).map(Arg::Struct),
        format::Arg::TensorMap(map) => return read_map(map, buffers),
        format::Arg::Scalar(dtype, number) => (dtype, number),
    };
    let mut bytes = Vec::new();
    data::append(dtype, &mut bytes, number)?;
    Ok(Arg::Scalar(dtype, bytes))
}

/// Resolves a tensor map. It has one to five dimensions, and its tiles have as many. A size of a tile is 1 to 256, and a row is a
/// multiple of 16 bytes.
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

pub(super) fn find_buffer(name: String, buffers: &[Buffer]) -> Result<Arg, Fault> {
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
