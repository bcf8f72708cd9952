//! The picture: requested, granted, mapped and resident memory over time, as SVG.

use anyhow::Result;
use plotters::prelude::*;

use super::Row;

const SIZE: (u32, u32) = (1000, 560);
const KIB: f64 = 1024.0;

struct Line {
    name: &'static str,
    color: RGBColor,
    of: fn(&Row) -> Option<f64>,
}

const LINES: [Line; 4] = [
    Line {
        name: "mapped by snug (of metadata, what is in use)",
        color: RGBColor(150, 150, 150),
        of: |row| Some(row.mapped - row.metadata + row.metadata_used.min(row.metadata)),
    },
    Line { name: "resident, the whole process", color: RGBColor(214, 39, 40), of: |row| row.resident },
    Line { name: "granted to the program", color: RGBColor(31, 119, 180), of: |row| Some(row.live) },
    Line { name: "requested by the program (estimate)", color: RGBColor(44, 160, 44), of: |row| Some(row.requested) },
];

/// A unit in which the largest value has one to four digits before the point.
fn unit_of(bytes: f64) -> (f64, &'static str) {
    let units = [(1.0, "B"), (KIB, "KiB"), (KIB * KIB, "MiB"), (KIB * KIB * KIB, "GiB")];
    *units.iter().rev().find(|(size, _)| bytes >= *size).unwrap_or(&units[0])
}

/// The picture as text.
pub fn svg(rows: &[Row], program: &str) -> Result<String> {
    let mut text = String::new();
    draw(rows, program, &mut text)?;
    Ok(text)
}

fn draw(rows: &[Row], program: &str, into: &mut String) -> Result<()> {
    let most = rows.iter().flat_map(|row| LINES.iter().filter_map(|line| (line.of)(row))).fold(1.0, f64::max);
    let (unit, unit_name) = unit_of(most);
    let end = rows.last().map_or(1.0, |row| row.milliseconds / 1000.0).max(0.001);
    let root = SVGBackend::with_string(into, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(format!("Memory of {program} on snug"), ("sans-serif", 22))
        .margin(14)
        .x_label_area_size(46)
        .y_label_area_size(76)
        .build_cartesian_2d(0.0..end, 0.0..most / unit * 1.25)?;
    chart
        .configure_mesh()
        .x_desc("time since the start (s)")
        .y_desc(format!("memory ({unit_name})"))
        .label_style(("sans-serif", 15))
        .axis_desc_style(("sans-serif", 16))
        .light_line_style(WHITE)
        .draw()?;
    for line in &LINES {
        let style = line.color.stroke_width(2);
        let points = rows.iter().filter_map(|row| Some((row.milliseconds / 1000.0, (line.of)(row)? / unit)));
        chart
            .draw_series(LineSeries::new(steps(points), style))?
            .label(line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .legend_area_size(34)
        .label_font(("sans-serif", 15))
        .draw()?;
    root.present()?;
    Ok(())
}

/// What was true at one row is true until the next.
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
}
