//! A report as one page of HTML that needs nothing else: tables, and plots as SVG inside it. Light or dark as the reader
//! has it; on a narrow screen the plots stand one below the other, and wide tables scroll by themselves.

use anyhow::Result;
use maud::{html, Markup, PreEscaped, DOCTYPE};

use super::figures::{self, LIVE_COLOUR};
use super::plots::{self, Plot};
use super::tables::{self, Cell, Table};
use super::{terminal, verdict, words};
use crate::bench::allocators::Allocator;
use crate::bench::results::Lab;

const STYLE: &str = concat!(include_str!("colours.css"), include_str!("page.css"));

pub fn render(lab: &Lab) -> Result<String> {
    let body = html! {
        @if let Some(verdict) = verdict::of_lab(lab) { p.verdict { (verdict) } }
        @for line in words::circumstances(lab) { p { (line) } }
        (legend(&lab.allocators))
        div.plots { @for plot in figures::main(lab) { (figure(&plot)?) } }
        @let behind = tables::behind(lab);
        @if behind.lines.is_empty() { p { "In no row is another allocator ahead of snug beyond chance." } }
        @else { (table(&behind)) }
        @for each in tables::all(lab) { (table(&each)) }
        (list("Failed", &terminal::failures(lab)))
        (list("Not here", &lab.missing))
        @let curves = figures::curves(lab);
        @if !curves.is_empty() {
            h2 { "Memory through each run" }
            p { "Of the last run; the thick grey line is what the program had asked for, beside snug." }
            (legend(&lab.allocators))
            div.plots { @for plot in curves { (figure(&plot)?) } }
        }
    };
    Ok(page(&format!("{}: allocators beside each other", lab.title), &body))
}

/// A page of its own: title, style and all.
pub fn page(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (title) }
                (body)
            }
        }
    };
    page.into_string()
}

fn list(title: &str, lines: &[String]) -> Markup {
    html! {
        @if !lines.is_empty() {
            h2 { (title) }
            ul { @for line in lines { li { (line) } } }
        }
    }
}

pub fn legend(allocators: &[Allocator]) -> Markup {
    html! {
        ul.legend {
            @for (place, allocator) in allocators.iter().enumerate() {
                li { (swatch(figures::colour_of(allocators, place))) (allocator.name) " " small { (allocator.version) } }
            }
            li { (swatch(LIVE_COLOUR)) "requested" }
        }
    }
}

fn swatch(colour: usize) -> Markup {
    html! { span.swatch style={ "background:var(--s" (colour) ")" } {} }
}

pub fn figure(plot: &Plot) -> Result<Markup> {
    Ok(html! {
        figure {
            figcaption { (plot.title) }
            (PreEscaped(plots::svg(plot)?))
        }
    })
}

pub fn table(table: &Table) -> Markup {
    html! {
        h2 { (table.title) }
        div.scroll {
            table {
                thead { tr { th { "row" } @for column in &table.columns { th { (column) } } } }
                tbody {
                    @for line in &table.lines {
                        tr { th scope="row" title=(line.about) { (line.name) } @for cell in &line.cells { (self::cell(cell)) } }
                    }
                }
            }
        }
        p { (table.note) }
    }
}

fn cell(cell: &Cell) -> Markup {
    let title = (!cell.detail.is_empty()).then_some(&cell.detail);
    html! { td title=[title] { @if cell.best { strong { (cell.text) "*" } } @else { (cell.text) } } }
}

#[cfg(test)]
mod tests {
    use super::super::samples::lab;
    use super::*;

    #[test]
    fn the_page_needs_nothing_else() {
        let page = render(&lab()).unwrap();
        for outside in ["http://", "https://www", "src=", "@import", "url("] {
            let found = page.replace("http://www.w3.org/2000/svg", "").contains(outside);
            assert!(!found, "{outside} is in the page");
        }
    }

    #[test]
    fn tables_plots_and_failures_are_there_and_escaped() {
        let page = render(&lab()).unwrap();
        for part in [
            "prefers-color-scheme: dark",
            "width=device-width",
            "<svg",
            "Where snug is behind",
            "larson/2 on mine: signal: 6",
            "other (get it)",
            "imitates &lt;something&gt;",
            "<strong>3.00 ±1.00*</strong>",
        ] {
            assert!(page.contains(part), "{part} is not in the page");
        }
        assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    }

    #[test]
    fn all_colours_of_the_plots_are_defined() {
        for colour in 0..super::plots::COLOURS {
            assert_eq!(STYLE.matches(&format!("--s{colour}:")).count(), 2, "--s{colour}, for light and for dark");
        }
    }
}
