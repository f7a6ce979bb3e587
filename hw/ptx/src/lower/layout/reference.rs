//! Initial values of texture, surface and sampler references (PTX ISA, "Texture Sampler and Surface Types").

use crate::ast::{Init, Name, Type, Variable};
use crate::diag::Diagnostic;
use warpwave_isa::exec::texture::{AddressMode, Sampler};

/// Fields with an address mode, one for each dimension.
const ADDRESS_MODES: [&str; 3] = ["addr_mode_0", "addr_mode_1", "addr_mode_2"];

/// Returns the sampler of an initialised `.samplerref`. `None` for a reference without an initial value, and for other variables.
///
/// The host gives a texture or surface with its size and format, so their fields are unsupported.
pub(super) fn initialised(variable: &Variable<'_>) -> Option<Result<Sampler, Diagnostic>> {
    let Some(Init::Fields(fields, span)) = &variable.init else {
        return None;
    };
    match variable.ty {
        Type::Sampler => Some(sampler(fields)),
        Type::Handle => {
            let finding = Diagnostic::unsupported(*span, "fields of a texture or surface reference");
            Some(Err(
                finding.help("leave them out: the host gives the image with size and format")
            ))
        }
        _ => None,
    }
}

fn sampler(fields: &[(Name<'_>, Init<'_>)]) -> Result<Sampler, Diagnostic> {
    let mut sampler = Sampler::default();
    let mut first_mode = None;
    for (n, (name, value)) in fields.iter().enumerate() {
        if fields[..n].iter().any(|(other, _)| other.text == name.text) {
            let message = format!("two values of the field `{}`", name.text);
            return Err(Diagnostic::malformed(name.span, message).help("keep one of them"));
        }
        match (name.text, value) {
            (field, Init::Symbol(word, ..)) if ADDRESS_MODES.contains(&field) => {
                let mode = address_mode(*word)?;
                if *first_mode.get_or_insert(mode) != mode {
                    let finding = Diagnostic::unsupported(word.span, "a sampler with two address modes");
                    return Err(finding.help("give all dimensions one mode"));
                }
                sampler.address_mode = mode;
            }
            ("filter_mode", Init::Symbol(word, ..)) => sampler.linear_filter = is_linear(*word)?,
            ("force_unnormalized_coords", Init::Int(value @ (0 | 1), _)) => sampler.unnormalized = *value == 1,
            (field, _) if ADDRESS_MODES.contains(&field) || field == "filter_mode" => {
                return Err(Diagnostic::malformed(
                    name.span,
                    format!("`{field}` takes the name of a mode"),
                ));
            }
            ("force_unnormalized_coords", _) => {
                return Err(Diagnostic::malformed(
                    name.span,
                    "`force_unnormalized_coords` is 0 or 1",
                ));
            }
            (field, _) => {
                let finding = Diagnostic::malformed(name.span, format!("a sampler has no field `{field}`"));
                let help =
                    "its fields are `addr_mode_0` to `addr_mode_2`, `filter_mode` and `force_unnormalized_coords`";
                return Err(finding.help(help));
            }
        }
    }
    Ok(sampler)
}

fn address_mode(word: Name<'_>) -> Result<AddressMode, Diagnostic> {
    Ok(match word.text {
        "wrap" => AddressMode::Wrap,
        "mirror" => AddressMode::Mirror,
        "clamp_to_edge" => AddressMode::Clamp,
        "clamp_to_border" => AddressMode::Border,
        "clamp_ogl" => {
            let finding = Diagnostic::unsupported(word.span, "the address mode `clamp_ogl`");
            return Err(finding.help("use `clamp_to_edge` or `clamp_to_border`"));
        }
        other => {
            let finding = Diagnostic::malformed(word.span, format!("unknown address mode `{other}`"));
            return Err(finding.help("write `wrap`, `mirror`, `clamp_to_edge` or `clamp_to_border`"));
        }
    })
}

fn is_linear(word: Name<'_>) -> Result<bool, Diagnostic> {
    match word.text {
        "nearest" => Ok(false),
        "linear" => Ok(true),
        other => {
            let finding = Diagnostic::malformed(word.span, format!("unknown filter mode `{other}`"));
            Err(finding.help("write `nearest` or `linear`"))
        }
    }
}
