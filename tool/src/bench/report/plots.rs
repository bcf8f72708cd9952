//! Plots as SVG, to stand inside a page of HTML, or as pictures of their own.
//!
//! The colours are the page's: where plotters writes one, the name of a CSS variable is put (`--s0`, `--s1`, ... for the
//! series, `--grid` for the grid), and the text's own colour for axes and labels. So the same plot serves light and dark
//! pages.

use anyhow::{anyhow, Result};
use maud::html;
use plotters::coord::types::RangedCoordf64;
use plotters::coord::Shift;
use plotters::prelude::*;

/// Small enough for a phone, where it is shown in its own size or a little less.
const SIZE: (u32, u32) = (440, 300);
const FONT: &str = "sans-serif";
const FONT_SIZE: u32 = 13;
/// Colours that stand for others; whatever plotters writes in them is replaced.
const INK: RGBColor = RGBColor(1, 2, 3);
const GRID: RGBColor = RGBColor(1, 2, 4);
const SERIES: RGBColor = RGBColor(1, 3, 0);
/// The opacity of faint lines.
const FAINT: f64 = 0.35;
/// As many as the page has colours.
pub const COLOURS: usize = 14;

/// One line of a plot.
#[derive(Debug, Clone)]
pub struct Line {
    /// Which of the page's colours, below COLOURS.
    pub colour: usize,
    pub points: Vec<(f64, f64)>,
    /// What stands beside single points: their place in `points`, and the text.
    pub labels: Vec<(usize, String)>,
    /// Marks at the points; without them it is a curve.
    pub marks: bool,
    pub thick: bool,
    /// The line between the marks only shows which belong together.
    pub faint: bool,
}

#[derive(Debug, Clone)]
pub struct Plot {
    pub title: String,
    pub x: String,
    pub y: String,
    /// Values that axes must hold besides those of the lines.
    pub hold: Vec<(f64, f64)>,
    pub lines: Vec<Line>,
}

/// The plot as an <svg> element, whose points say their values under the pointer.
pub fn svg(plot: &Plot) -> Result<String> {
    let (text, titles) = drawn(plot)?;
    Ok(text.replacen("</svg>", &format!("{titles}</svg>"), 1))
}

/// The plot, and the titles of its points.
fn drawn(plot: &Plot) -> Result<(String, String)> {
    let (mut text, mut titles) = (String::new(), String::new());
    {
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        draw(plot, &area, &mut titles).map_err(|error| anyhow!("cannot draw {}: {error}", plot.title))?;
        area.present().map_err(|error| anyhow!("cannot draw {}: {error}", plot.title))?;
    }
    Ok((with_page_colours(&text), titles))
}

/// The plot as a file that needs no page: with its title, a size, and the page's colours inside it.
pub fn image(plot: &Plot) -> Result<String> {
    let style = format!(
        "<style>{}svg {{ background: var(--page); color: var(--ink); }}</style>{}",
        include_str!("colours.css"),
        html! { title { (plot.title) } }.into_string()
    );
    let (text, _) = drawn(plot)?;
    let size = format!(" width=\"{}\" height=\"{}\">", SIZE.0 * 3 / 2, SIZE.1 * 3 / 2);
    Ok(text.replacen('>', &format!("{size}\n{style}"), 1))
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

fn draw(plot: &Plot, area: &Area, titles: &mut String) -> Drawn {
    let points = || plot.lines.iter().flat_map(|line| &line.points).chain(&plot.hold).copied();
    let (x_least, x_most) = range(points().map(|(x, _)| x));
    let (_, y_most) = range(points().map(|(_, y)| y));
    // Room for what stands to the right of a point.
    let labelled = plot.lines.iter().any(|line| line.labels.iter().any(|(_, text)| text.len() > 3));
    let (before, after) = if labelled { (0.04, 0.2) } else { (0.04, 0.05) };
    let wide = x_most - x_least;
    let mut chart = ChartBuilder::on(area)
        .margin(6)
        .margin_right(14)
        .x_label_area_size(38)
        .y_label_area_size(58)
        .build_cartesian_2d((x_least - before * wide).max(0.0)..x_most + after * wide, 0.0..y_most * 1.05)?;
    draw_axes(plot, &mut chart)?;
    for line in &plot.lines {
        draw_line(line, &mut chart)?;
        add_titles(plot, line, &chart, titles);
    }
    Ok(())
}

/// So many points of a line say their values; of a curve of thousands each would be a page of its own.
const TITLES: usize = 60;

fn add_titles(plot: &Plot, line: &Line, chart: &Chart, titles: &mut String) {
    for &(x, y) in line.points.iter().step_by(line.points.len().div_ceil(TITLES).max(1)) {
        let (column, row) = chart.backend_coord(&(x, y));
        let said = format!("{}: {}, {}: {}", plot.x, short(x), plot.y, short(y));
        let title = html! { circle cx=(column) cy=(row) r="8" fill="transparent" { title { (said) } } };
        titles.push_str(&title.into_string());
    }
}

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

fn draw_axes(plot: &Plot, chart: &mut Chart) -> Drawn {
    let label = (FONT, FONT_SIZE).into_font().color(&INK);
    // Half a thread is none: where all values are whole numbers, so are the axis's.
    let mut points = plot.lines.iter().flat_map(|line| &line.points);
    let whole = points.all(|(x, _)| x.fract() == 0.0);
    let name_x =
        |value: &f64| if whole && (value - value.round()).abs() > 1e-9 { String::new() } else { short(*value) };
    chart
        .configure_mesh()
        .x_desc(&plot.x)
        .y_desc(&plot.y)
        .x_labels(6)
        .y_labels(6)
        .x_label_formatter(&name_x)
        .y_label_formatter(&|value| short(*value))
        .label_style(label.clone())
        .axis_desc_style(label)
        .axis_style(INK)
        .bold_line_style(GRID)
        .light_line_style(GRID.mix(0.0))
        .draw()?;
    Ok(())
}

fn draw_line(line: &Line, chart: &mut Chart) -> Drawn {
    let colour = RGBColor(SERIES.0, SERIES.1, line.colour.min(COLOURS - 1) as u8);
    let (width, size) = if line.thick { (3, 5) } else { (1, 4) };
    let stroke = colour.mix(if line.faint { FAINT } else { 1.0 }).stroke_width(width);
    chart.draw_series(LineSeries::new(line.points.iter().copied(), stroke))?;
    if line.marks {
        chart.draw_series(line.points.iter().map(|&point| Circle::new(point, size, colour.filled())))?;
    }
    for (place, text) in &line.labels {
        let Some(&point) = line.points.get(*place) else { continue };
        let style = (FONT, FONT_SIZE - 1).into_font().color(&colour);
        let label = EmptyElement::at(point) + Text::new(text.clone(), (6, -14), style);
        chart.draw_series(std::iter::once(label))?;
    }
    Ok(())
}

/// The least and the most; one apart if there is one value only.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (least, most) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(value), most.max(value)));
    match least < most {
        true => (least, most),
        false if least.is_finite() => (least - 0.5, least + 0.5),
        false => (0.0, 1.0),
    }
}

/// A number for an axis: no more digits than it needs.
fn short(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 20.0 || size == 0.0 => 0,
        size if size >= 2.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

fn with_page_colours(svg: &str) -> String {
    let hex = |colour: RGBColor| format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2);
    let mut text = svg.replace(&hex(INK), "currentColor").replace(&hex(GRID), "var(--grid)");
    for colour in 0..COLOURS {
        text = text.replace(&hex(RGBColor(SERIES.0, SERIES.1, colour as u8)), &format!("var(--s{colour})"));
    }
    // The size is the page's business; the view box, which plotters writes too, keeps the proportions.
    text.replacen(&format!("width=\"{}\" height=\"{}\" ", SIZE.0, SIZE.1), "", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot() -> Plot {
        let line = Line {
            colour: 3,
            points: vec![(1.0, 10.0), (2.0, 30.0)],
            labels: vec![(1, "a <label>".into())],
            marks: true,
            thick: false,
            faint: true,
        };
        let [title, x, y] = ["Title", "x axis", "y axis"].map(String::from);
        Plot { title, x, y, hold: vec![], lines: vec![line] }
    }

    #[test]
    fn a_plot_has_its_points_labels_and_the_colours_of_the_page() {
        let text = drawn(&plot()).unwrap().0;
        assert_eq!(text.matches("<circle").count(), 2, "{text}");
        for part in ["<svg", "viewBox", "var(--s3)", "var(--grid)", "currentColor", "x axis", "a &lt;label&gt;", "0.35"]
        {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(!text.contains("#01") && !text.contains("width=\"440\" height=\"300\" viewBox"), "{text}");
    }

    #[test]
    fn a_picture_needs_no_page() {
        let text = image(&plot()).unwrap();
        let document = roxmltree::Document::parse(&text).unwrap();
        let style = document.descendants().find(|node| node.has_tag_name("style")).unwrap().text().unwrap();
        for part in ["--s3:", "--grid:", "prefers-color-scheme: dark", "color: var(--ink)"] {
            assert!(style.contains(part), "{part} is not in {style}");
        }
        assert_eq!(document.root_element().attribute("width"), Some("660"));
        let title = document.descendants().find(|node| node.has_tag_name("title")).unwrap();
        assert_eq!(title.text(), Some("Title"));
        assert_eq!(document.descendants().filter(|node| node.has_tag_name("circle")).count(), 2);
    }

    #[test]
    fn plots_of_little_are_drawn_too() {
        let mut one = plot();
        one.lines[0].points.truncate(1);
        svg(&one).unwrap();
        one.lines.clear();
        svg(&one).unwrap();
    }

    #[test]
    fn numbers_of_axes() {
        assert_eq!([0.0, 0.5, 1.25, 3.0, 150.0].map(short), ["0", "0.5", "1.25", "3", "150"]);
    }

    #[test]
    fn whole_numbers_of_threads_and_values_under_the_pointer() {
        let line = |points: Vec<(f64, f64)>| Line {
            colour: 0,
            points,
            labels: Vec::new(),
            marks: true,
            thick: false,
            faint: false,
        };
        let plot = |points| Plot {
            title: "t".into(),
            x: "threads".into(),
            y: "speed".into(),
            hold: Vec::new(),
            lines: vec![line(points)],
        };
        let text = svg(&plot(vec![(1.0, 3.5), (2.0, 7.0)])).unwrap();
        assert!(text.contains("<title>threads: 2, speed: 7</title>"), "{text}");
        let labels = |text: &str| {
            let document = roxmltree::Document::parse(text).unwrap();
            let texts = document.descendants().filter(|node| node.has_tag_name("text"));
            texts.filter_map(|node| Some(node.text()?.trim().to_string())).collect::<Vec<_>>()
        };
        assert!(!labels(&text).contains(&"1.5".to_string()), "{:?}", labels(&text));
        let fractions = svg(&plot(vec![(1.0, 3.5), (1.9, 7.0)])).unwrap();
        assert!(labels(&fractions).contains(&"1.5".to_string()) || labels(&fractions).contains(&"1.4".to_string()));
    }
}
