//! The pages of section 3: snug(3), one for each section of snug.h, and a reference from each function to its page.

use anyhow::Result;
use clap_mangen::roff::{bold, roman, Inline, Roff};

use super::header::{parse, Header, Paragraph, Section};
use super::text;
use super::Page;
use crate::carried;

const MANUAL: &str = "snug's functions";

pub fn pages() -> Result<Vec<Page>> {
    Ok(pages_of(&parse(&carried::header()?)))
}

/// A section's page has the name of its first function.
fn pages_of(header: &Header) -> Vec<Page> {
    let mut pages = vec![Page { name: "snug".to_string(), section: 3, text: overview(header) }];
    for section in &header.sections {
        let functions = section.functions();
        let Some((first, others)) = functions.split_first() else { continue };
        pages.push(Page { name: first.to_string(), section: 3, text: section_page(first, section) });
        for other in others {
            let text = format!(".so man3/{first}.3\n");
            pages.push(Page { name: other.to_string(), section: 3, text });
        }
    }
    pages
}

fn overview(header: &Header) -> String {
    let mut roff = text::page("snug", 3, MANUAL);
    roff.control("SH", ["NAME"]);
    roff.text([roman("snug - a malloc that fits the program snugly")]);
    synopsis(&mut roff);
    roff.control("SH", ["DESCRIPTION"]);
    paragraphs(&mut roff, &header.about);
    for section in &header.sections {
        let functions = section.functions();
        let Some(first) = functions.first() else { continue };
        roff.control("TP", []);
        roff.text([bold(*first), roman("(3)")]);
        roff.text([roman(format!("{}: {}.", section.title, functions.join(", ")))]);
    }
    see_also(&mut roff);
    roff.to_roff()
}

fn section_page(name: &str, section: &Section) -> String {
    let mut roff = text::page(name, 3, MANUAL);
    roff.control("SH", ["NAME"]);
    roff.text([roman(format!("{} - {}", section.functions().join(", "), section.title.to_lowercase()))]);
    synopsis(&mut roff);
    for prototype in section.paragraphs.iter().flat_map(Paragraph::prototypes) {
        roff.control("PP", []);
        roff.text([bold(prototype)]);
    }
    roff.control("SH", ["DESCRIPTION"]);
    for (place, part) in section.paragraphs.iter().enumerate() {
        if place > 0 && part.functions().is_empty() {
            roff.control("PP", []);
        }
        described(&mut roff, part);
    }
    see_also(&mut roff);
    roff.to_roff()
}

/// What is said of functions stands under their names, what is said of anything else above it.
fn described(roff: &mut Roff, part: &Paragraph) {
    let functions = part.functions();
    if functions.is_empty() {
        paragraphs(roff, &part.text);
        if part.has_types() {
            if !part.text.is_empty() {
                roff.control("PP", []);
            }
            text::literal(roff, &part.code);
        }
        return;
    }
    let names: Vec<Inline> = vec![bold(functions.join("(), ") + "()")];
    roff.control("TP", []);
    roff.text(names);
    for (place, paragraph) in part.text.iter().enumerate() {
        if place > 0 {
            roff.control("IP", []);
        }
        roff.text(text::inlines(paragraph));
    }
}

fn paragraphs(roff: &mut Roff, found: &[String]) {
    for (place, paragraph) in found.iter().enumerate() {
        if place > 0 {
            roff.control("PP", []);
        }
        roff.text(text::inlines(paragraph));
    }
}

fn synopsis(roff: &mut Roff) {
    roff.control("SH", ["SYNOPSIS"]);
    roff.text([bold("#include <snug/snug.h>")]);
    roff.control("PP", []);
    roff.text([roman("Link with "), bold("-lsnug"), roman(".")]);
}

fn see_also(roff: &mut Roff) {
    roff.control("SH", ["SEE ALSO"]);
    roff.text([bold("snug"), roman("(3), "), bold("snug-options"), roman("(7), "), bold("malloc"), roman("(3)")]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_of_the_header_has_a_page_that_is_about_it() {
        let header = carried::header().unwrap();
        let declared: Vec<&str> = header
            .match_indices("\nSNUG_PUBLIC")
            .filter_map(|(start, _)| header[start..].split_once('('))
            .filter_map(|(before, _)| before.split([' ', '*', '\n']).next_back())
            .collect();
        let pages = pages().unwrap();
        assert!(declared.len() > 35, "{declared:?}");
        for function in declared {
            let page =
                pages.iter().find(|page| page.name == function).unwrap_or_else(|| panic!("{function} has no page"));
            let page = match page.text.strip_prefix(".so man3/").and_then(|name| name.strip_suffix(".3\n")) {
                Some(name) => pages.iter().find(|page| page.name == name).unwrap(),
                None => page,
            };
            let is_explained =
                page.text.lines().any(|line| line.starts_with("\\fB") && line.contains(&format!("{function}()")));
            assert!(is_explained, "nothing is said of {function} in\n{}", page.text);
        }
    }
}
