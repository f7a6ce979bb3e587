//! The command `warpwave`.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    warpwave::huge_pages::ask();
    cli::main()
}
