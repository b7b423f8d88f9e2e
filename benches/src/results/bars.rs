//! Bar charts as SVG: panels side by side, groups in a panel, one bar per series in a group.

use std::path::Path;

use anyhow::{Context, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::statistics::Spread;

const PANEL: (u32, u32) = (560, 460);
/// Told apart also by those who see few colours (Okabe and Ito).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
    RGBColor(120, 120, 120),
];
const INK: RGBColor = RGBColor(60, 60, 60);

pub struct Panel {
    pub title: String,
    pub groups: Vec<Group>,
    /// A line across: no bar can be shorter than this.
    pub limit: Option<f64>,
}

pub struct Group {
    pub name: String,
    /// Height in seconds of each series' bar, if it was measured.
    pub bars: Vec<Option<Spread>>,
}

/// Draws the panels; `series` names the bars of each group, if there are several.
pub fn draw(file: &Path, panels: &[Panel], series: &[String]) -> anyhow::Result<()> {
    let size = (PANEL.0 * panels.len() as u32, PANEL.1);
    let root = SVGBackend::new(file, size).into_drawing_area();
    root.fill(&WHITE).map_err(explain)?;
    for (area, panel) in root.split_evenly((1, panels.len())).iter().zip(panels) {
        draw_panel(area, panel, series).with_context(|| format!("cannot draw {}", file.display()))?;
    }
    root.present().map_err(explain).with_context(|| format!("cannot write {}", file.display()))
}

fn draw_panel(area: &DrawingArea<SVGBackend, Shift>, panel: &Panel, series: &[String]) -> anyhow::Result<()> {
    let all = panel.groups.iter().flat_map(|group| group.bars.iter().flatten());
    let top = all.map(|bar| bar.most).chain(panel.limit).fold(0.0, f64::max) * 1.15;
    let count = panel.groups.len() as f64;
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, ("sans-serif", 17).into_font().color(&INK))
        .margin(14)
        .x_label_area_size(if series.len() > 1 { 40 } else { 135 })
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..count, 0.0..top)
        .map_err(explain)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .disable_x_axis()
        .light_line_style(WHITE)
        .bold_line_style(RGBColor(225, 225, 225))
        .axis_style(INK)
        .y_desc("seconds (median; whiskers: least and most)")
        .label_style(("sans-serif", 13).into_font().color(&INK))
        .draw()
        .map_err(explain)?;

    for (number, group) in panel.groups.iter().enumerate() {
        let width = 0.8 / group.bars.len() as f64;
        for (index, bar) in group.bars.iter().enumerate() {
            let Some(bar) = bar else { continue };
            let left = number as f64 + 0.1 + width * index as f64;
            let (right, middle) = (left + width * 0.92, left + width * 0.46);
            let colour = COLOURS[if series.len() > 1 { index } else { number.min(4) } % COLOURS.len()];
            let body = Rectangle::new([(left, 0.0), (right, bar.median)], colour.filled());
            chart.draw_series([body]).map_err(explain)?;
            let whisker = PathElement::new([(middle, bar.least), (middle, bar.most)], INK.stroke_width(2));
            chart.draw_series([whisker]).map_err(explain)?;
            let size = if group.bars.len() > 2 { 9 } else { 12 };
            let value = if bar.median < 10.0 { format!("{:.2}", bar.median) } else { format!("{:.1}", bar.median) };
            let style = ("sans-serif", size).into_font().color(&INK);
            chart.draw_series([Text::new(value, (left, bar.most + top * 0.035), style)]).map_err(explain)?;
        }
    }
    if let Some(limit) = panel.limit {
        chart.draw_series([PathElement::new([(0.0, limit), (count, limit)], RED.stroke_width(1))]).map_err(explain)?;
        let style = ("sans-serif", 11).into_font().color(&RED);
        chart.draw_series([Text::new("limit", (count * 0.95, limit + top * 0.03), style)]).map_err(explain)?;
    }
    label_groups(area, &chart, panel, series)
}

/// Names under the groups, slanted where there are many, and a legend where groups have several bars.
fn label_groups(
    area: &DrawingArea<SVGBackend, Shift>,
    chart: &ChartContext<
        SVGBackend,
        Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
    >,
    panel: &Panel,
    series: &[String],
) -> anyhow::Result<()> {
    let (left, _) = area.get_base_pixel();
    let style = ("sans-serif", 12).into_font().color(&INK);
    for (number, group) in panel.groups.iter().enumerate() {
        let (x, y) = chart.backend_coord(&(number as f64 + 0.5, 0.0));
        let (style, at) = match series.len() > 1 {
            true => (style.clone(), (x - left - 4 * group.name.len() as i32, y + 8)),
            false => (style.clone().transform(FontTransform::Rotate90), (x - left + 6, y + 8)),
        };
        area.draw_text(&group.name, &style, at).map_err(explain)?;
    }
    for (index, name) in series.iter().enumerate().filter(|_| series.len() > 1) {
        let at = (80 + 120 * index as i32, PANEL.1 as i32 - 24);
        let swatch = Rectangle::new([at, (at.0 + 12, at.1 + 12)], COLOURS[index % COLOURS.len()].filled());
        area.draw(&swatch).map_err(explain)?;
        area.draw_text(name, &style, (at.0 + 18, at.1)).map_err(explain)?;
    }
    Ok(())
}

/// The drawing library's errors are tied to its back end.
fn explain(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("{error}")
}
