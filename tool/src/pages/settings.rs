//! snug-options(7), from the library's table of options.

use anyhow::Result;
use clap_mangen::roff::{bold, italic, roman};

use super::text::{self, inlines};
use super::Page;
use crate::show::options::{table, Shown, GROUPS};

const READ: &str = "Options are environment variables, read once, at the program's first allocation. A name that does \
                    not exist and a value that cannot be used are reported by one line on stderr, and the default holds. \
                    Sizes take `k`, `MiB`, `1.5G` and the like, in powers of 1024; delays `ms` and `s`.";
const SECURE: &str = "A program that runs with rights that its caller need not have (set-user-ID, set-group-ID, \
                      capabilities of its file) obeys none of them.";

fn page_text(options: &[Shown]) -> String {
    let mut roff = text::page("snug-options", 7, "snug's manual");
    roff.control("SH", ["NAME"]);
    roff.text([roman("snug-options - environment variables that snug's malloc obeys")]);
    roff.control("SH", ["DESCRIPTION"]);
    roff.text(inlines(READ));
    roff.control("PP", []);
    roff.text(inlines(SECURE));
    for (group, about, _) in GROUPS {
        roff.control("SH", [group.to_uppercase().as_str()]);
        roff.text([roman(format!("{}{}.", about[..1].to_uppercase(), &about[1..]))]);
        for option in options.iter().filter(|option| option.group == group) {
            roff.control("TP", []);
            roff.text([bold(&option.name), roman(" = "), italic(&option.allowed)]);
            roff.text(inlines(&option.text));
            roff.control("br", []);
            let mut facts = format!("Default: {}", option.default);
            for (preset, value) in [("lean", &option.lean), ("fast", &option.fast)] {
                if let Some(value) = value {
                    facts += &format!("; {preset}: {value}");
                }
            }
            roff.text([roman(facts + ".")]);
        }
    }
    roff.control("SH", ["SEE ALSO"]);
    roff.text([bold("snug"), roman("(1), "), bold("snug-options"), roman("(1), "), bold("snug"), roman("(3)")]);
    roff.to_roff()
}

pub fn page() -> Result<Page> {
    let text = page_text(&table(std::iter::empty()));
    Ok(Page { name: "snug-options".to_string(), section: 7, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_option_stands_in_it_once() {
        let options = table(std::iter::empty());
        let text = page_text(&options);
        for option in &options {
            let head = format!("\n\\fB{}\\fR = ", option.name);
            assert_eq!(text.matches(&head).count(), 1, "{head} in\n{text}");
        }
    }
}
