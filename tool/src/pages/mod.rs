//! `snug man` and `snug completions`: the manual, and what shells complete.
//!
//! Nothing of it is written by hand: the pages of commands and the completions come from the declarations of the command
//! line, snug-glossary(7) from docs/glossary.md, snug-options(7) from the library's table of options, and the pages of functions from the public header. What
//! they say cannot be other than what `--help`, `snug options` and snug.h say.
//!
//!     commands  snug(1) and a page for each command      settings   snug-options(7)
//!     header    what snug.h declares, and says of it      functions  snug(3), and the pages of functions

mod commands;
mod functions;
mod glossary;
mod header;
mod settings;
mod text;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{bail, Context, Result};
use clap::{Args, Command as CommandLine};
use clap_complete::Shell;

use crate::output;
use crate::refusal::Refusal;
use crate::whole::Whole;

/// Show a page of the manual, or write all of them as files
///
/// Pages are snug, snug-COMMAND, snug-options(7), snug-glossary(7), and those of the functions, such as snug(3) and snug_heap_create. In a
/// terminal man(1) shows the page; otherwise it is printed as it is, for man or groff.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write all pages to man1, man3 and man7 in this directory, as for MANPATH
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "page")]
    pub to: Option<PathBuf>,

    /// The page: a command's name, or the name of a page with its section if several have it, such as snug.3
    #[arg(value_name = "PAGE", default_value = "snug")]
    pub page: String,
}

/// Print what a shell needs to complete snug's commands and options
///
/// For the current user: bash: ~/.local/share/bash-completion/completions/snug; fish: ~/.config/fish/completions/snug.fish;
/// zsh: _snug in a directory of $fpath.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// A page of the manual: its name, its section, and its text for man.
struct Page {
    name: String,
    section: u8,
    text: String,
}

impl Page {
    fn file_name(&self) -> String {
        format!("{}.{}", self.name, self.section)
    }

    /// The name of the file that is to be read in its stead, without its folder.
    fn refers_to(&self) -> Option<&str> {
        Some(self.text.strip_prefix(".so ")?.split_once('/')?.1.trim_end())
    }

    /// `run` is snug-run.
    fn is_called(&self, word: &str) -> bool {
        word == self.name || word == self.file_name() || self.name.strip_prefix("snug-") == Some(word)
    }
}

fn all(command_line: CommandLine) -> Result<Vec<Page>> {
    let mut pages = commands::pages(command_line)?;
    pages.push(settings::page()?);
    pages.push(glossary::page());
    pages.extend(functions::pages()?);
    Ok(pages)
}

pub fn man(args: &ManArgs, command_line: CommandLine) -> Result<ExitCode> {
    let pages = all(command_line)?;
    if let Some(directory) = &args.to {
        for page in &pages {
            write_page(directory, page)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let Some(page) = pages.iter().find(|page| page.is_called(&args.page)) else {
        let known =
            "each command has one, such as run, and so have options, glossary, and the functions of snug/snug.h";
        bail!(Refusal::misuse(format!("there is no page {}; {known}", args.page)));
    };
    let text = text_of(page, &pages);
    if !std::io::stdout().is_terminal() || !show(text) {
        output::print(text.as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What is to be read: of a page that only refers to another one, that one's text. man(1) follows a reference from
/// where pages are installed alone.
fn text_of<'a>(page: &'a Page, pages: &'a [Page]) -> &'a str {
    let meant = page.refers_to().and_then(|name| pages.iter().find(|other| other.file_name() == name));
    &meant.unwrap_or(page).text
}

fn write_page(directory: &Path, page: &Page) -> Result<()> {
    let directory = directory.join(format!("man{}", page.section));
    let path = directory.join(page.file_name());
    std::fs::create_dir_all(&directory).with_context(|| output::cannot_write(&path))?;
    Whole::new(&path)?.write(page.text.as_bytes())
}

/// By man(1); false if it could not, or there is none.
fn show(text: &str) -> bool {
    let Ok(mut man) = Command::new("man").args(["-l", "-"]).stdin(Stdio::piped()).spawn() else { return false };
    let is_written = man.stdin.take().is_some_and(|mut pipe| pipe.write_all(text.as_bytes()).is_ok());
    man.wait().is_ok_and(|status| status.success()) && is_written
}

pub fn completions(args: &CompletionsArgs, command_line: CommandLine) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut commands::with_hints(command_line), "snug", &mut script);
    output::print(&script)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_has_a_name_of_its_own_and_is_found() {
        let pages = all(CommandLine::new("snug").subcommand(CommandLine::new("run"))).unwrap();
        for (place, page) in pages.iter().enumerate() {
            assert!(pages.iter().position(|other| other.file_name() == page.file_name()) == Some(place));
            assert!(page.is_called(&page.file_name()) && page.is_called(&page.name));
            let text = text_of(page, &pages);
            assert!(text.contains("\n.SH NAME\n"), "{} is shown as {text}", page.name);
        }
        for wanted in [
            "snug.1",
            "snug-run.1",
            "snug-options.7",
            "snug-glossary.7",
            "snug.3",
            "snug_malloc.3",
            "snug_heap_destroy.3",
        ] {
            assert!(pages.iter().any(|page| page.file_name() == wanted), "{wanted}");
        }
    }
}
