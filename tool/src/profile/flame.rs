//! A profile as a flame graph: one file, which a browser shows by itself, with a search.

use anyhow::{ensure, Result};
use inferno::flamegraph::{self, Direction, Options, TextTruncateDirection};
use maud::{html, Markup, PreEscaped, DOCTYPE};

use super::model::{Profile, What};
use super::show::{self, amount, folded};
use super::view::View;

/// Where the reader wants it dark: the paper and what is written on it; on the frames black stays the ink.
const DARK: &str = "@media (prefers-color-scheme: dark) {
  svg { background: #16181c; }
  svg > rect { fill: #16181c; }
  svg > text { fill: #e8e8e8; }
}";

const STYLE: &str = "
:root { color-scheme: light dark; }
body { margin: 0; font: 15px/1.45 system-ui, sans-serif; background: #fff; color: #1a1a1a; }
header, main > section { padding: 0 12px; }
h1 { font-size: 1.25em; margin: 10px 0 2px; }
p { margin: 2px 0 8px; color: #666; }
nav { display: flex; flex-wrap: wrap; gap: 6px; margin: 8px 0; }
nav button { font: inherit; padding: 6px 12px; border: 1px solid #999; border-radius: 6px; background: none; color: inherit; }
nav button[aria-pressed=true] { background: #1f5fa8; border-color: #1f5fa8; color: #fff; }
#picture { max-height: 75vh; overflow: auto; }
#search { opacity: 0.6 !important; text-decoration: underline; }
#picture svg { display: block; width: 100%; }
[hidden] { display: none; }
details { border-top: 1px solid #ccc; padding: 6px 0; }
summary { cursor: pointer; overflow-wrap: anywhere; }
pre { margin: 4px 0 4px 16px; white-space: pre-wrap; overflow-wrap: anywhere; font-size: 13px; }
@media (prefers-color-scheme: dark) {
  body { background: #16181c; color: #e8e8e8; }
  p { color: #aaa; }
  details { border-color: #3a3a3a; }
}";

/// Shows one of the views: its picture becomes part of the page, and the script that inferno puts into each of them runs
/// once, as the page's own, so that it may ask what to search for.
const SCRIPT: &str = "
const buttons = document.querySelectorAll('nav button'), views = document.querySelectorAll('main > section');
const box = document.getElementById('picture');
function show(name) {
  buttons.forEach(button => button.setAttribute('aria-pressed', button.value === name));
  views.forEach(view => { view.hidden = view.id !== name; });
  const text = document.querySelector('#' + name + ' template').content.textContent;
  const picture = new DOMParser().parseFromString(text, 'image/svg+xml').documentElement;
  const code = picture.querySelector('script');
  code.remove();
  picture.removeAttribute('onload');
  box.replaceChildren(document.importNode(picture, true));
  if (!window.init) document.head.appendChild(document.createElement('script')).textContent = code.textContent;
  window.init();
}
buttons.forEach(button => { button.onclick = () => show(button.value); });
show(document.body.dataset.first);
";

/// Percent: what has less than that of the width, a pixel of a large screen, is not drawn.
const WIDTH_LEAST: f64 = 0.1;

/// Pixels: what a finger finds.
const FRAME_HEIGHT: usize = 20;

/// What a page lets its reader choose from, and the words for it.
const VIEWS: [(What, &str, &str); 5] = [
    (What::Live, "live", "Live"),
    (What::Peak, "peak", "At the peak"),
    (What::Allocated, "allocated", "Allocated"),
    (What::Freed, "freed", "Freed again"),
    (What::Pinned, "pinned", "Pinned"),
];

pub fn svg(profile: &Profile, by: What) -> Result<Vec<u8>> {
    let lines = folded(profile, by);
    ensure!(!lines.is_empty(), "there is nothing to draw: {}", nothing(profile, by));
    let mut options = Options::default();
    options.title = format!("Memory {}", by.words());
    options.count_name = if by.is_bytes() { "bytes" } else { "blocks" }.to_string();
    options.deterministic = true;
    options.direction = Direction::Inverted; // what there is most of is where one begins to read
    options.text_truncate_direction = TextTruncateDirection::Right;
    options.min_width = WIDTH_LEAST;
    options.frame_height = FRAME_HEIGHT;
    let mut out = Vec::new();
    flamegraph::from_lines(&mut options, lines.lines(), &mut out)?;
    // At the very end: the frames are a picture in the picture, and its script takes all that is in there for frames.
    let end = out.windows(6).rposition(|word| word == b"</svg>").unwrap_or(out.len());
    out.splice(end..end, format!("<style>{DARK}</style>").into_bytes());
    Ok(out)
}

fn nothing(profile: &Profile, by: What) -> String {
    match profile.samples.is_empty() {
        true => show::NOTHING.to_string(),
        false => format!("no site has anything {}", by.words()),
    }
}

/// A page that fits a phone: a picture for each of the views that have something, and the largest sites as text.
pub fn html(profile: &Profile, view: &View) -> Result<Vec<u8>> {
    let first = view.by(profile);
    let mut views: Vec<(What, &str, &str)> = VIEWS.to_vec();
    if views.iter().all(|(what, ..)| *what != first) {
        views.insert(0, (first, "chosen", first.words()));
    }
    views.retain(|(what, ..)| !folded(profile, *what).is_empty());
    let chosen = views.iter().find(|(what, ..)| *what == first).map(|view| view.1);
    let Some(chosen) = chosen else { anyhow::bail!("there is nothing to draw: {}", nothing(profile, first)) };
    let totals = profile.totals();
    let mut sections = Vec::new();
    for (what, name, _) in &views {
        sections.push(section(profile, *what, name, view.top)?);
    }
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Memory by code" }
                style { (PreEscaped(STYLE)) }
            }
            body data-first=(chosen) {
                header {
                    h1 { "Which code holds the memory" }
                    p { (show::rate(profile)) " was looked at; click a frame to zoom into it, Ctrl-F or Search to find one" }
                    @for note in &profile.notes { p { (note) } }
                    nav {
                        @for (what, name, words) in &views {
                            button value=(name) { (words) " " (amount(*what, what.of(&totals))) }
                        }
                    }
                }
                div id="picture" {}
                main { @for section in &sections { (section) } }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    Ok(page.into_string().into_bytes())
}

fn section(profile: &Profile, by: What, name: &str, top: usize) -> Result<Markup> {
    let svg = String::from_utf8(svg(profile, by)?)?;
    let picture = svg.find("<svg").map_or("", |start| &svg[start..]);
    let samples = profile.sorted(by);
    let whole = profile.whole(by).max(1.0);
    Ok(html! {
        section id=(name) hidden {
            template { (picture) } // as text
            h1 { "The largest sites" }
            @for sample in samples.iter().take(top) {
                details {
                    summary {
                        (amount(by, by.of(&sample.numbers)))
                        (show::error(by, by.error_of(&sample.numbers)))
                        (format!(", {:.1} %: ", 100.0 * by.of(&sample.numbers) as f64 / whole))
                        (profile.names(&sample.stack).first().map_or("", String::as_str))
                    }
                    pre { (show::others(&sample.numbers, by)) "\n" (show::frames(profile, &sample.stack).join("\n")) }
                }
            }
        }
    })
}
