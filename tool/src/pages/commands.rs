//! The pages of section 1, from the command line's declarations; and these, with what shells may complete.

use anyhow::Result;
use clap::{Arg, Command, ValueHint};
use clap_mangen::roff::{bold, roman};
use clap_mangen::Man;

use super::text;
use super::Page;

const MANUAL: &str = "snug's manual";

/// Names of commands and files are completed as what they are.
pub fn with_hints(command_line: Command) -> Command {
    command_line.mut_subcommands(|command| command.mut_args(with_hint))
}

fn with_hint(argument: Arg) -> Arg {
    let names = argument.get_value_names().unwrap_or_default();
    let hint = match names.first().map(|name| name.as_str()) {
        // The word of an option is one command line, for sh.
        Some("CMD") if argument.is_positional() => ValueHint::CommandWithArguments,
        Some("CMD") => ValueHint::CommandString,
        Some("DIRECTORY" | "DIR") => ValueHint::DirPath,
        Some(name) if name.starts_with("FILE") || name == "PATH" || name == "TRACE" => ValueHint::FilePath,
        _ => return argument,
    };
    argument.value_hint(hint)
}

pub fn pages(command_line: Command) -> Result<Vec<Page>> {
    // clap's own command `help` is no page.
    let mut whole = command_line.disable_help_subcommand(true).version(env!("CARGO_PKG_VERSION"));
    whole.build();
    let mut pages = vec![page(whole.clone(), "snug".to_string())?];
    for command in whole.get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = format!("snug-{}", command.get_name());
        pages.push(page(command.clone().version(env!("CARGO_PKG_VERSION")), name)?);
    }
    Ok(pages)
}

fn page(command: Command, name: String) -> Result<Page> {
    let has_commands = command.has_subcommands();
    let after = command.get_after_help().map(|text| text.to_string()).unwrap_or_default();
    let man = Man::new(command.display_name(&name).disable_version_flag(true));
    let mut body = Vec::new();
    man.render_name_section(&mut body)?;
    man.render_synopsis_section(&mut body)?;
    man.render_description_section(&mut body)?;
    man.render_options_section(&mut body)?;
    if has_commands {
        man.render_subcommands_section(&mut body)?;
    }
    // A blank line between two breaks is more than one of them.
    let body = String::from_utf8(body)?.replace(".br\n\n.br\n", ".br\n");
    let mut roff = text::page(&name, 1, MANUAL);
    if let Some((heading, lines)) = after.split_once(":\n") {
        roff.control("SH", [heading.to_uppercase().as_str()]);
        text::literal(&mut roff, lines);
    }
    roff.control("SH", ["SEE ALSO"]);
    roff.text([bold("snug"), roman("(1), "), bold("snug"), roman("(3), "), bold("snug-options"), roman("(7)")]);
    let rest = roff.to_roff();
    let (title, rest) = rest.split_once('\n').unwrap_or((&rest, ""));
    Ok(Page { name, section: 1, text: format!("{title}\n{body}{rest}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_a_page_with_its_flags() {
        let flag = Arg::new("plot").long("plot").help("Draw.\nMore.");
        let run = Command::new("run").about("Run it").override_usage("snug run [SNUG_NAME=value]... CMD").arg(flag);
        let line = Command::new("snug").about("Runs things").after_help("Exit status:\n  0  all went well");
        let pages = pages(line.subcommand(run).subcommand(Command::new("secret").hide(true))).unwrap();
        let [whole, run] = &pages[..] else { panic!("{} pages", pages.len()) };
        for part in [r"snug \- Runs things", r"snug\-run(1)", ".SH \"EXIT STATUS\"", "  0  all went well"] {
            assert!(whole.text.contains(part), "{part} is not in\n{}", whole.text);
        }
        for part in [r"snug\-run \- Run it", r"\-\-plot", "[SNUG_NAME=value]... CMD"] {
            assert!(run.text.contains(part), "{part} is not in\n{}", run.text);
        }
    }
}
