//! The curve of a training as a picture: losses above, accuracies below.

use std::path::Path;

use example_common::error::Error;
use example_common::files;
use plotters::coord::Shift;
use plotters::prelude::*;

use burn_attn_models::train::{Accuracy, CurvePoint};

/// Its name in the folder of the run.
pub const FILE: &str = "curve.svg";

/// The name of what the steps of training measured, with their dropout.
const LEARNING: &str = "training (as the model learns)";
const TRAINING: RGBColor = RGBColor(31, 119, 180);
const VALIDATION: RGBColor = RGBColor(214, 97, 26);

/// The numbers of a line and the steps after which they were measured, with the name of the line.
type Line = (&'static str, Vec<(usize, f64)>);

/// Draws the curve as SVG into a file.
///
/// # Errors
/// If the file cannot be written. The old one is untouched then.
pub fn draw(curve: &[CurvePoint], path: &Path) -> Result<(), Error> {
    let svg = svg(curve).map_err(|error| format!("cannot draw the curve: {error}"))?;
    Ok(files::replace(path, svg.as_bytes())?)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Failed<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

fn svg(curve: &[CurvePoint]) -> Result<String, Box<dyn std::error::Error>> {
    let mut svg = String::new();
    {
        let whole = SVGBackend::with_string(&mut svg, (800, 640)).into_drawing_area();
        whole.fill(&WHITE)?;
        let (above, below) = whole.split_vertically(320);
        let line = |name, number: fn(&CurvePoint) -> Option<f64>| -> Line {
            let points = curve.iter();
            let points = points.filter_map(|point| Some((point.step, number(point)?)));
            (name, points.collect())
        };
        let losses = [
            line(LEARNING, |point| Some(point.train)),
            line("validation", |point| Some(point.validation)),
        ];
        let corner = SeriesLabelPosition::UpperRight;
        chart(&above, "loss (nats per token)", losses, corner)?;
        let accuracies = [
            line(LEARNING, |point| percent(point.train_accuracy)),
            line("validation", |point| percent(point.validation_accuracy)),
        ];
        let corner = SeriesLabelPosition::LowerRight;
        chart(&below, "tokens predicted correctly (%)", accuracies, corner)?;
        whole.present()?;
    }
    Ok(svg)
}

fn percent(accuracy: Accuracy) -> Option<f64> {
    accuracy.fraction().map(|part| 100.0 * part)
}

/// Two lines over the steps, that of the training part and that of the validation part, with their names in a corner.
fn chart<'a>(
    area: &Area<'a>,
    title: &str,
    lines: [Line; 2],
    corner: SeriesLabelPosition,
) -> Result<(), Failed<'a>> {
    let points = lines.iter().flat_map(|(_, points)| points);
    let (last, highest) = points.fold((1, 1e-3), |(last, highest), &(step, number)| {
        (step.max(last), number.max(highest))
    });
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 16))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(48)
        .build_cartesian_2d(0..last, 0.0..1.05 * highest)?;
    chart
        .configure_mesh()
        .x_desc("step")
        .light_line_style(TRANSPARENT)
        .draw()?;
    for ((name, points), colour) in lines.into_iter().zip([TRAINING, VALIDATION]) {
        let series = LineSeries::new(points, colour.stroke_width(2)).point_size(2);
        chart
            .draw_series(series)?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(corner)
        .border_style(BLACK.mix(0.2))
        .background_style(WHITE)
        .draw()
}

#[cfg(test)]
mod tests;
