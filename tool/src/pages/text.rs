//! Text for man(1), from text with `code` in it.

use clap_mangen::roff::{bold, roman, Inline, Roff};

/// The day of the version in Cargo.toml, which changes with it: a page has a date, and a build must not depend on the clock.
const RELEASED: &str = "2026-11-22";

/// The title line; the version stands in the footer.
pub fn page(name: &str, section: u8, what: &str) -> Roff {
    let version = concat!("snug ", env!("CARGO_PKG_VERSION"));
    let mut roff = Roff::new();
    roff.control("TH", [name, &section.to_string(), RELEASED, version, what]);
    roff
}

/// What stands between backquotes is bold.
pub fn inlines(text: &str) -> Vec<Inline> {
    let parts = text.split('`').enumerate().filter(|(_, part)| !part.is_empty());
    parts.map(|(place, part)| if place % 2 == 1 { bold(part) } else { roman(part) }).collect()
}

/// Lines as they are.
pub fn literal(roff: &mut Roff, lines: &str) {
    roff.control("nf", []);
    for line in lines.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_bold_and_nothing_is_a_request() {
        let mut roff = Roff::new();
        roff.text(inlines("Use `free`, not -x."));
        literal(&mut roff, ".so x\n  'y\\n");
        let text = roff.render();
        assert!(text.contains("\\fBfree\\fR"), "{text}");
        assert!(!text.contains("\n.so x") && text.contains(".so x"), "{text}");
    }
}
