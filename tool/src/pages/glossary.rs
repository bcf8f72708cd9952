//! snug-glossary(7), from docs/glossary.md, and the words in it.

use clap_mangen::roff::{bold, roman};

use super::text::{self, inlines};
use super::Page;

/// The page where each word that messages use is explained once.
const NAME: &str = "snug-glossary";
const TEXT: &str = include_str!("../../../docs/glossary.md");

/// Words, and what they are.
fn words() -> impl Iterator<Item = (&'static str, &'static str)> {
    let rows = TEXT.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    rows.filter(|(word, _)| *word != "word" && !word.starts_with("---"))
}

pub fn page() -> Page {
    let mut roff = text::page(NAME, 7, "snug's manual");
    roff.control("SH", ["NAME"]);
    roff.text([roman("snug-glossary - the words that snug's messages and pages use")]);
    roff.control("SH", ["WORDS"]);
    for (word, meaning) in words() {
        roff.control("TP", []);
        roff.text([bold(word)]);
        roff.text(inlines(meaning));
    }
    roff.control("SH", ["SEE ALSO"]);
    roff.text([bold("snug"), roman("(1), "), bold("snug-options"), roman("(7)")]);
    Page { name: NAME.to_string(), section: 7, text: roff.to_roff() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_messages_are_explained() {
        let known: Vec<&str> = words().map(|(word, _)| word).collect();
        for word in ["magazine", "depot", "slab", "span", "segment", "trim", "purge", "size class", "pinned", "waste"] {
            assert!(known.contains(&word), "{word} is not in docs/glossary.md");
        }
        let text = page().text;
        assert!(text.contains("\\fBdepot\\fR\nfull magazines of one size class"), "{text}");
    }
}
