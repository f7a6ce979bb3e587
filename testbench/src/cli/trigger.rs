//! Parses `--trace-on`: the event that starts a waveform.

use warpwave::bench::Bench;
use warpwave::report::units::count;
use warpwave::scenario::{Buffer, Layout, Scenario};
use warpwave_waveforms::trigger::Trigger;

use super::failure::Failure;

/// Parses a trigger.
pub fn parse(text: &str, scenario: &Scenario, bench: &Bench<'_>) -> Result<Trigger, Failure> {
    let wrong = || {
        Failure::input(format!(
            "--trace-on {text}: write launch=2, pc=0x40, stall>1000 or address=BUFFER[INDEX]"
        ))
    };
    let (word, value) = text.split_once(['=', '>']).ok_or_else(wrong)?;
    let (word, value) = (word.trim(), value.trim());
    // Only a stall is compared with `>`. The other events name one thing.
    let is_more = text.contains('>');
    match (word, is_more) {
        ("launch", false) => launch(number(value).ok_or_else(wrong)?, scenario),
        ("pc", false) => pc(number(value).ok_or_else(wrong)?, bench),
        // A number of cycles: any is possible.
        ("stall", true) => Ok(Trigger::Stall(number(value).ok_or_else(wrong)?)),
        ("address", false) => {
            let (name, index) = value
                .strip_suffix(']')
                .and_then(|v| v.split_once('['))
                .ok_or_else(wrong)?;
            let indices: Option<Vec<u64>> = index.split(',').map(|index| number(index.trim())).collect();
            address(name.trim(), &indices.ok_or_else(wrong)?, bench)
        }
        _ => Err(wrong()),
    }
}

/// Parses a decimal number, or a hexadecimal one with `0x`.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.replace('_', "").parse().ok(),
    }
}

fn launch(number: u64, scenario: &Scenario) -> Result<Trigger, Failure> {
    match scenario.launches.len() as u64 {
        n if number < n => Ok(Trigger::Launch(number)),
        n => Err(Failure::input(format!(
            "--trace-on launch={number}: {} has {}, counted from 0",
            scenario.name,
            count(n, "launch")
        ))),
    }
}

fn pc(number: u64, bench: &Bench<'_>) -> Result<Trigger, Failure> {
    let longest = bench.programs().iter().map(|program| program.code().len()).max();
    match longest.unwrap_or(0) as u64 {
        n if number < n => Ok(Trigger::Pc(number)),
        n => Err(Failure::input(format!(
            "--trace-on pc={number:#x}: the longest kernel has {n} instructions, counted from 0"
        ))),
    }
}

fn address(name: &str, indices: &[u64], bench: &Bench<'_>) -> Result<Trigger, Failure> {
    let found = bench.data().find(|(buffer, _)| buffer.name == name);
    let Some((Buffer { layout, .. }, first)) = found else {
        let names: Vec<_> = bench.data().map(|(buffer, _)| buffer.name.as_str()).collect();
        return Err(Failure::input(format!(
            "--trace-on address={name}: no buffer is named `{name}`; there are: {}",
            names.join(", ")
        )));
    };
    let element = element(layout, indices).ok_or_else(|| {
        let shape: Vec<_> = layout.shape.iter().map(u64::to_string).collect();
        let remedy = match indices.len() {
            1 => format!("an index in memory order is below {}", layout.elements()),
            n if n == shape.len() => "each index is below the size of its dimension".to_owned(),
            _ => "give one index per dimension, or one index in memory order".to_owned(),
        };
        let shape = shape.join(", ");
        Failure::input(format!(
            "--trace-on address={name}: `{name}` has the shape [{shape}]; {remedy}"
        ))
    })?;
    Ok(Trigger::Address(first + element * layout.dtype.bytes() as u64))
}

/// The index in memory order of an element, given by one index per dimension or by that index itself.
fn element(layout: &Layout, indices: &[u64]) -> Option<u64> {
    // One index counts elements in memory order, for any shape.
    if let [number] = indices {
        return (*number < layout.elements()).then_some(*number);
    }
    let fits =
        indices.len() == layout.shape.len() && indices.iter().zip(&layout.shape).all(|(index, size)| index < size);
    fits.then(|| {
        indices
            .iter()
            .zip(&layout.shape)
            .fold(0, |number, (index, size)| number * size + index)
    })
}
