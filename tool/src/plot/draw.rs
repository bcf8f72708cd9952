//! The picture as SVG: one process's memory in lines, and that of all processes stacked.
//!
//! Colours are written as they are on a light ground, which every viewer understands; a style sheet in the picture changes
//! them where the reader prefers dark. The picture has proportions and no size, so it fits the screen it is shown on.
//! Points of the lines carry their values as titles, which browsers show under the pointer.

use std::fmt::Write;

use anyhow::{anyhow, Result};
use plotters::coord::types::RangedCoordf64;
use plotters::coord::Shift;
use plotters::prelude::*;

use super::stack::{self, Layer};
use super::SiteNames;
use crate::watch::{Heap, Point, Process};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

const WIDTH: u32 = 1000;
const UPPER: u32 = 470;
const LOWER: u32 = 330;
/// Of the width, what the names of lines beside the plot have.
const NAMES: u32 = 240;
const KIB: f64 = 1024.0;
const FONT: &str = "sans-serif";
/// So many points of a line say their value.
const TITLES: usize = 80;

const INK: RGBColor = RGBColor(26, 26, 26);
const GRID: RGBColor = RGBColor(221, 221, 221);
const GROUND: RGBColor = RGBColor(255, 255, 255);
/// Of each colour, the one on a dark ground.
const DARK: [(RGBColor, &str); 3] = [(INK, "#e8e8e8"), (GRID, "#3a3a3a"), (GROUND, "#16181c")];

struct Line {
    name: &'static str,
    color: RGBColor,
    of: fn(&Point) -> Option<f64>,
}

const fn heap_line(name: &'static str, color: RGBColor, of: fn(&Point) -> Option<f64>) -> Line {
    Line { name, color, of }
}

fn of_heap(point: &Point, value: fn(&Heap) -> f64) -> Option<f64> {
    point.heap.as_ref().map(value)
}

const LINES: [Line; 4] = [
    heap_line("mapped by snug", RGBColor(140, 140, 140), |point| of_heap(point, |heap| heap.mapped)),
    heap_line("resident, the whole process", RGBColor(214, 39, 40), |point| Some(point.resident)),
    heap_line("granted to the program", RGBColor(31, 119, 180), |point| of_heap(point, |heap| heap.live)),
    heap_line("requested (estimate)", RGBColor(44, 160, 44), |point| of_heap(point, |heap| heap.requested)),
];

/// A unit in which the largest value has one to four digits before the point.
fn unit_of(bytes: f64) -> (f64, &'static str) {
    let units = [(1.0, "B"), (KIB, "KiB"), (KIB * KIB, "MiB"), (KIB * KIB * KIB, "GiB")];
    *units.iter().rev().find(|(size, _)| bytes >= *size).unwrap_or(&units[0])
}

fn amount(bytes: f64) -> String {
    let (unit, name) = unit_of(bytes);
    format!("{:.1} {name}", bytes / unit)
}

/// The picture as text.
pub fn svg(process: &Process, all: &[Process], names: SiteNames) -> Result<String> {
    let layers = if all.len() > 1 { stack::layers(all) } else { Vec::new() };
    let height = UPPER + if layers.is_empty() { 0 } else { LOWER };
    let (mut text, mut titles) = (String::new(), String::new());
    {
        let root = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
        root.fill(&GROUND).map_err(|error| anyhow!("{error}"))?;
        let (upper, lower) = root.split_vertically(UPPER);
        lines(&upper, process, &stack::sites(process, names), &mut titles)?;
        if !layers.is_empty() {
            stacked(&lower, &layers, all.len())?;
        }
        root.present().map_err(|error| anyhow!("{error}"))?;
    }
    Ok(dressed(&text, &titles))
}

/// Adds what plotters does not know: the style sheet, the titles, and a size that fits.
fn dressed(text: &str, titles: &str) -> String {
    let size_of = |name: &str| {
        text.find(&format!(" {name}=\""))
            .map_or(0..0, |at| at..at + text[at + name.len() + 3..].find('"').map_or(0, |end| end + name.len() + 4))
    };
    let (width, height) = (size_of("width"), size_of("height"));
    let mut dark = String::new();
    for (light, instead) in DARK {
        let light = hexadecimal(light);
        let _ = write!(dark, "[fill=\"{light}\"]{{fill:{instead}}}[stroke=\"{light}\"]{{stroke:{instead}}}");
    }
    // Where the picture is shown by itself, what is around it has its ground.
    dark += ":root{background:#16181c}";
    let style = format!("<style>:root{{background:#fff}}circle.v{{fill:transparent}}circle.v:hover{{fill:#888}}@media(prefers-color-scheme:dark){{{dark}}}</style>");
    let head = text.find('>').map_or(0, |end| end + 1);
    let body = text[head..].trim_end().trim_end_matches("</svg>");
    let opening = format!("{}{}{}", &text[..width.start], &text[width.end..height.start], &text[height.end..head]);
    format!("{opening}\n{style}\n{body}{titles}</svg>\n")
}

fn hexadecimal(color: RGBColor) -> String {
    format!("#{:02X}{:02X}{:02X}", color.0, color.1, color.2)
}

/// Whole numbers are written as such.
fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// Axes from zero to a bit above the highest value.
fn chart<'a>(area: &Area<'a>, title: &str, end: f64, most: f64) -> Result<(Chart<'a>, f64)> {
    let (unit, unit_name) = unit_of(most);
    let mut chart = ChartBuilder::on(area)
        .caption(title, (FONT, 21).into_font().color(&INK))
        .margin(12)
        .x_label_area_size(46)
        .y_label_area_size(72)
        .build_cartesian_2d(0.0..end, 0.0..most / unit * 1.12)
        .map_err(|error| anyhow!("{error}"))?;
    chart
        .configure_mesh()
        .x_desc("time since the start (s)")
        .y_desc(format!("memory ({unit_name})"))
        .x_label_formatter(&|value| short(*value))
        .y_label_formatter(&|value| short(*value))
        .label_style((FONT, 14).into_font().color(&INK))
        .axis_desc_style((FONT, 15).into_font().color(&INK))
        .axis_style(INK)
        .bold_line_style(GRID)
        .light_line_style(GROUND)
        .max_light_lines(1)
        .draw()
        .map_err(|error| anyhow!("{error}"))?;
    Ok((chart, unit))
}

/// A name beside the plot, with the colour that it stands for.
fn name(area: &Area, row: i32, color: RGBColor, text: &str) -> Result<()> {
    let top = 60 + 24 * row;
    let swatch = Rectangle::new([(4, top), (20, top + 10)], color.filled());
    area.draw(&swatch).map_err(|error| anyhow!("{error}"))?;
    let style = (FONT, 14).into_font().color(&INK);
    area.draw(&Text::new(text.to_string(), (26, top - 3), style)).map_err(|error| anyhow!("{error}"))
}

fn lines(area: &Area, process: &Process, layers: &[Layer], titles: &mut String) -> Result<()> {
    let (left, right) = area.split_horizontally(WIDTH - NAMES);
    let points = &process.points;
    let values = |line: &Line| points.iter().filter_map(|point| Some((point.seconds, (line.of)(point)?))).collect();
    let drawn: Vec<(&Line, Vec<(f64, f64)>)> = LINES.iter().map(|line| (line, values(line))).collect();
    let most = drawn.iter().flat_map(|(_, values)| values.iter().map(|value| value.1)).fold(1.0, f64::max);
    let most = most.max(process.peak as f64);
    let (begin, end) =
        (points.first().map_or(0.0, |point| point.seconds), points.last().map_or(1.0, |point| point.seconds));
    let title = format!("Memory of {} on snug", process.name);
    let (mut chart, unit) = chart(&left, &title, (end).max(begin + 0.001), most)?;
    sites(&mut chart, &right, layers, unit)?;
    for (row, (line, values)) in drawn.iter().enumerate().filter(|(_, (_, values))| !values.is_empty()) {
        let style = line.color.stroke_width(2);
        let path = steps(values.iter().map(|&(time, value)| (time, value / unit)));
        chart.draw_series(LineSeries::new(path, style)).map_err(|error| anyhow!("{error}"))?;
        name(&right, row as i32, line.color, line.name)?;
        for &(time, value) in values.iter().step_by(values.len().div_ceil(TITLES)) {
            let (x, y) = chart.backend_coord(&(time, value / unit));
            let _ = writeln!(
                titles,
                "<circle class=\"v\" cx=\"{x}\" cy=\"{y}\" r=\"6\"><title>{}: {} at {time:.2} s</title></circle>",
                line.name,
                amount(value)
            );
        }
    }
    peak(&mut chart, process, unit)?;
    Ok(())
}

/// The area that what the program holds is, in the colours of the sites that hold most.
fn sites(chart: &mut Chart, names: &Area, layers: &[Layer], unit: f64) -> Result<()> {
    // From the top down, as below.
    for (row, layer) in layers.iter().enumerate().rev() {
        let mut outline = steps(layer.top.iter().map(|&(time, bytes)| (time, bytes / unit)));
        let (begin, end) = (outline[0].0, outline[outline.len() - 1].0);
        outline.extend([(end, 0.0), (begin, 0.0)]);
        // Light, for lines are drawn over it; and not through each other.
        let color = lighter(layer.color);
        let shape = Polygon::new(outline, color.filled());
        chart.draw_series(std::iter::once(shape)).map_err(|error| anyhow!("{error}"))?;
        name(names, (LINES.len() + layers.len() - row) as i32, color, &layer.name)?;
    }
    Ok(())
}

/// Half way to white.
fn lighter(color: RGBColor) -> RGBColor {
    let half = |part: u8| part / 2 + 127;
    RGBColor(half(color.0), half(color.1), half(color.2))
}

/// The kernel's mark of the highest value, which may lie between two looks, at the look that came nearest to it.
fn peak(chart: &mut Chart, process: &Process, unit: f64) -> Result<()> {
    let highest = process.points.iter().max_by(|a, b| a.resident.total_cmp(&b.resident));
    let Some(at) = highest else { return Ok(()) };
    let level = process.peak as f64;
    let position = (at.seconds, level / unit);
    let mark = Circle::new(position, 4, LINES[1].color.filled());
    // The text stands on the side where there is room.
    let (x, _) = chart.backend_coord(&position);
    let shift = if x > 560 { -130 } else { 8 };
    let style = (FONT, 15).into_font().color(&INK);
    let text = EmptyElement::at(position) + Text::new(format!("peak {}", amount(level)), (shift, -18), style);
    chart.plotting_area().draw(&mark).map_err(|error| anyhow!("{error}"))?;
    chart.plotting_area().draw(&text).map_err(|error| anyhow!("{error}"))
}

fn stacked(area: &Area, layers: &[Layer], count: usize) -> Result<()> {
    let (left, right) = area.split_horizontally(WIDTH - NAMES);
    let most = layers.last().map_or(1.0, |layer| layer.top.iter().map(|point| point.1).fold(1.0, f64::max));
    let end = layers[0].top.last().map_or(1.0, |point| point.0).max(0.001);
    let (mut chart, unit) = chart(&left, &format!("Resident memory of all {count} processes"), end, most)?;
    // From the top down: each layer covers what lies below it of the one above.
    for (row, layer) in layers.iter().enumerate().rev() {
        let mut outline: Vec<(f64, f64)> = layer.top.iter().map(|&(time, bytes)| (time, bytes / unit)).collect();
        outline.extend([(end, 0.0), (0.0, 0.0)]);
        let shape = Polygon::new(outline, layer.color.filled());
        chart.draw_series(std::iter::once(shape)).map_err(|error| anyhow!("{error}"))?;
        name(&right, (layers.len() - 1 - row) as i32, layer.color, &layer.name)?;
    }
    Ok(())
}

/// What was true at one point is true until the next.
fn steps(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut path: Vec<(f64, f64)> = Vec::new();
    for (time, value) in points {
        if let Some(&(_, last)) = path.last() {
            path.push((time, last));
        }
        path.push((time, value));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_fit() {
        assert_eq!(unit_of(0.0).1, "B");
        assert_eq!(unit_of(1500.0).1, "KiB");
        assert_eq!(unit_of(5e9).1, "GiB");
    }

    #[test]
    fn values_stay_until_the_next() {
        assert_eq!(steps([(0.0, 1.0), (2.0, 5.0)].into_iter()), [(0.0, 1.0), (2.0, 1.0), (2.0, 5.0)]);
    }

    #[test]
    fn a_picture_has_proportions_and_no_size() {
        let text = "<svg width=\"10\" height=\"20\" viewBox=\"0 0 10 20\" xmlns=\"x\">\n<a/>\n</svg>\n";
        let dressed = dressed(text, "<b/>");
        assert!(dressed.starts_with("<svg viewBox=\"0 0 10 20\" xmlns=\"x\">\n<style>"), "{dressed}");
        assert!(dressed.ends_with("<a/>\n<b/></svg>\n"), "{dressed}");
    }
}
