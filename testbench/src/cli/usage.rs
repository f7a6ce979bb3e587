//! The command's own words: completion scripts, man pages, and a hint if the first word is a scenario.

use std::process;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, Error};
use clap_complete::Shell;
use clap_mangen::Man;
use warpwave::scenario::{builtin, nearest};

use super::args::Arguments;
use super::failure::{Failure, shown, tell};
use super::print;

/// `warpwave completions`: the completion script of a shell.
pub fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "warpwave", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// `warpwave man`: the man page of the whole command, or of one command, in roff.
pub fn man(name: Option<&str>) -> Result<(), Failure> {
    let mut all = Arguments::command();
    // Gives the options of all commands to each one.
    all.build();
    let command = match name {
        None => all,
        Some(name) => all
            .find_subcommand(name)
            .cloned()
            .ok_or_else(|| unknown_command(name, &all))?,
    };
    let mut page = Vec::new();
    Man::new(command).render(&mut page).expect("memory can be written");
    print(&String::from_utf8_lossy(&page))
}

fn unknown_command(name: &str, all: &Command) -> Failure {
    let hint = nearest(name, all.get_subcommands().map(Command::get_name));
    let hint = hint.map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
    Failure::input(format!("no command is named `{name}`{hint}"))
}

/// Prints an error of the arguments, and ends the process. A scenario in the place of a command gets a hint.
pub fn exit(mut error: Error) -> ! {
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && let Some(tip) = tip(word)
    {
        // clap has a hint of its own, which is the same or worse.
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![StyledStr::from(tip)]),
        );
    }
    let plain = error.render().to_string();
    let printable = shown(&plain);
    // clap prints with colours. A text with control characters is printed escaped instead.
    if printable == plain {
        error.exit();
    }
    tell(printable.trim_end());
    process::exit(error.exit_code())
}

/// The hint for a word that is no command.
fn tip(word: &str) -> Option<String> {
    if word.ends_with(".toml") || !builtin::in_folder(word).is_empty() {
        return Some(format!("`{word}` is a scenario: warpwave run {word}"));
    }
    let all = Arguments::command();
    let command = nearest(word, all.get_subcommands().map(Command::get_name))?;
    Some(format!("a similar subcommand exists: '{command}'"))
}
