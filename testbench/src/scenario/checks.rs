//! Resolves expectations that are more than one array for a whole buffer after the last launch.

use super::dtype::Dtype;
use super::elements::{self, Source};
use super::format::{self, ElementSource};
use super::launches::LaunchIndex;
use super::resolve::{Context, can_miss, check_tolerances};
use super::{Check, CheckedData, Expect, Fault, Layout, StructField, View, data};

/// The resolved expectations of one buffer.
pub(super) struct Resolved {
    /// The elements of the whole buffer after the last launch, if one expectation gives them.
    pub expect: Option<Expect>,
    /// All other expectations.
    pub checks: Vec<Check>,
}

/// Resolves the expectations of a buffer, of one field of it, or of a module variable. The layout is that of the elements.
pub(super) fn read(
    texts: &[format::Expect],
    data: CheckedData,
    field: Option<&StructField>,
    layout: &Layout,
    context: &Context<'_>,
    sources: &[Source<'_>],
    launches: &LaunchIndex,
) -> Result<Resolved, Fault> {
    let mut resolved = Resolved {
        expect: None,
        checks: Vec::new(),
    };
    for text in texts {
        let check = Check {
            field: field.cloned(),
            ..read_one(text, data, layout, context, sources, launches)?
        };
        let is_plain = field.is_none() && check.after.is_none() && !check.nan && text.range.is_none();
        match check.want {
            // A buffer holds one plain expectation. A second one becomes a check.
            Some(bytes) if is_plain && resolved.expect.is_none() => {
                let (rtol, atol) = (check.rtol, check.atol);
                resolved.expect = Some(Expect { bytes, rtol, atol });
            }
            want => resolved.checks.push(Check { want, ..check }),
        }
    }
    Ok(resolved)
}

fn read_one(
    text: &format::Expect,
    data: CheckedData,
    layout: &Layout,
    context: &Context<'_>,
    sources: &[Source<'_>],
    launches: &LaunchIndex,
) -> Result<Check, Fault> {
    let (rtol, atol) = (text.rtol, text.atol);
    let source = text.source.as_ref().ok_or(Fault::NotOneSource)?;
    check_tolerances(rtol, atol)?;
    let (view, part) = part(text, layout, context)?;
    data::check_room(part.bytes())?;
    // Only the elements in the range are generated or read.
    let want = match source {
        ElementSource::Reference => None,
        ElementSource::Expr(expr) => Some(elements::bytes(expr, &part, view.first, context.constants, sources)?),
        ElementSource::Table(table) => Some(data::bytes(table, &part, view.first, context.files, context.constants)?),
        // A pattern is one of the whole buffer.
        source => {
            let whole = context.bytes(source, layout)?;
            let bytes = [view.first, view.n].map(|n| n as usize * layout.dtype.bytes());
            Some(whole[bytes[0]..][..bytes[1]].to_vec())
        }
    };
    if let Some(bytes) = &want {
        check_can_fail(layout.dtype, bytes, rtol, atol)?;
    }
    Ok(Check {
        data,
        field: None,
        view,
        after: text.after.as_ref().map(|after| launches.find(after)).transpose()?,
        want,
        rtol,
        atol,
        nan: text.nan,
    })
}

/// The part of the buffer that an expectation covers, with the layout of its elements.
fn part(text: &format::Expect, layout: &Layout, context: &Context<'_>) -> Result<(View, Layout), Fault> {
    let n = layout.elements();
    let Some([from, to]) = &text.range else {
        return Ok((View { first: 0, n }, layout.clone()));
    };
    // The range has at least one element. An empty one would pass whatever the kernel does.
    let first = context.constants.size(from, 0, n - 1)?;
    let end = context.constants.size(to, first + 1, n)?;
    let n = end - first;
    let part = Layout {
        dtype: layout.dtype,
        shape: vec![n],
    };
    Ok((View { first, n }, part))
}

/// Refuses tolerances within which every number of the type agrees with all elements.
fn check_can_fail(dtype: Dtype, bytes: &[u8], rtol: f64, atol: f64) -> Result<(), Fault> {
    let is_exact = rtol == 0.0 && atol == 0.0;
    let can_fail = |want: &[u8]| can_miss(dtype, want, rtol, atol);
    match is_exact || bytes.chunks_exact(dtype.bytes()).any(can_fail) {
        true => Ok(()),
        false => Err(Fault::CannotFail { dtype, rtol, atol }),
    }
}
