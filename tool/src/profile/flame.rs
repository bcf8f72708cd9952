//! A profile as a flame graph: one file, which a browser shows by itself, with a search.

use anyhow::{ensure, Result};
use inferno::flamegraph::{self, Options};

use super::model::{Profile, What};
use super::show::folded;

/// Where the reader wants it dark: the paper and what is written on it; on the frames black stays the ink.
const DARK: &str = "@media (prefers-color-scheme: dark) {
  body { background: #1b1b1b; }
  svg > rect { fill: #1b1b1b; }
  svg > text { fill: #dddddd; }
}";

pub fn svg(profile: &Profile, by: What) -> Result<Vec<u8>> {
    let lines = folded(profile, by);
    ensure!(!lines.is_empty(), "there is nothing to draw: no site has anything {}", by.words());
    let mut options = Options::default();
    options.title = format!("Memory {}", by.words());
    options.count_name = if by.is_bytes() { "bytes" } else { "blocks" }.to_string();
    options.deterministic = true;
    let mut out = Vec::new();
    flamegraph::from_lines(&mut options, lines.lines(), &mut out)?;
    let text = String::from_utf8(out)?;
    Ok(text.replacen("</svg>", &format!("<style>{DARK}</style></svg>"), 1).into_bytes())
}

/// The same in a page that fits the width of a phone.
pub fn html(profile: &Profile, by: What) -> Result<Vec<u8>> {
    let svg = String::from_utf8(svg(profile, by)?)?;
    let picture = svg.find("<svg").map_or("", |start| &svg[start..]);
    let page = maud::html! {
        (maud::DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Memory " (by.words()) }
                style { (maud::PreEscaped("body { margin: 0; }")) }
            }
            body { (maud::PreEscaped(picture)) }
        }
    };
    Ok(page.into_string().into_bytes())
}
