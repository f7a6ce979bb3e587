//! `warpwave bench`: simulation speed on this host, by kernel.

use warpwave::suite::threads::{Gain, gain};
use warpwave::suite::{self, Figure, Size};
use warpwave_components::preset;

use super::args;
use super::failure::Failure;
use super::print;

/// Simulates the kernels on each GPU and prints a table of their speed.
pub fn bench(options: &args::Speed) -> Result<(), Failure> {
    let kernels = selected(&options.kernels)?;
    for gpu in &options.gpu {
        let config = preset::load(gpu, &options.set).map_err(Failure::input)?.config;
        print(&format!("{gpu}\n{}\n", Figure::head()))?;
        for &kernel in &kernels {
            let figure = suite::best_of(options.runs.into(), kernel, &config, Size::Whole).map_err(Failure::input)?;
            print(&format!("{kernel:<26}{figure}\n"))?;
        }
    }
    match suite::peak_memory() {
        Some(bytes) => print(&format!("peak memory: {} MB\n", bytes / 1_000_000)),
        None => Ok(()),
    }
}

/// Prints a table of the speed-up of `threads` threads over one thread.
pub fn threads(options: &args::Speed, threads: u16) -> Result<(), Failure> {
    let kernels = selected(&options.kernels)?;
    for gpu in &options.gpu {
        let config = preset::load(gpu, &options.set).map_err(Failure::input)?.config;
        print(&format!("{gpu}\n{}\n", Gain::head(threads.into())))?;
        for &kernel in &kernels {
            let gain = gain(kernel, &config, threads.into(), options.runs.into()).map_err(Failure::input)?;
            print(&format!("{kernel:<26}{gain}\n"))?;
        }
    }
    Ok(())
}

/// The kernels with these names, or all kernels if there are none.
fn selected(names: &[String]) -> Result<Vec<&'static str>, Failure> {
    let kernels = suite::kernels();
    if let Some(unknown) = names.iter().find(|name| !kernels.contains(&name.as_str())) {
        return Err(Failure::input(format!(
            "the suite has no kernel `{unknown}`; it has {}",
            kernels.join(", ")
        )));
    }
    let is_selected = |kernel: &&str| names.is_empty() || names.iter().any(|name| name == kernel);
    Ok(kernels.into_iter().filter(is_selected).collect())
}
