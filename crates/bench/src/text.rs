//! Names and numbers as text, for the terminal and the documents.

use std::collections::BTreeMap;
use std::mem;

use serde::Serialize;
use serde_json::Value;

/// The name of one choice among several, as in JSON.
pub fn name(choice: impl Serialize) -> String {
    match serde_json::to_value(choice) {
        Ok(Value::String(name)) => name,
        other => panic!("a choice is written as its name, not as {other:?}"),
    }
}

/// "1 thread", "2 threads".
pub fn threads(count: usize) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} thread{plural}")
}

/// "5 %", of a share; "–" of none.
pub fn percent(share: Option<f64>) -> String {
    share.map_or("–".into(), |share| format!("{:.0} %", 100.0 * share))
}

/// Bytes as MiB, in two digits: "290"; "–" of none.
pub fn mebibytes(bytes: Option<u64>) -> String {
    match bytes.map(|bytes| bytes as f64 / f64::from(1 << 20)) {
        None => "–".into(),
        // A few pages.
        Some(..0.1) => "< 0.1".into(),
        Some(mebibytes) => significant(mebibytes, 2),
    }
}

/// An argument as a shell reads it back.
pub fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@".contains(c);
    match !argument.is_empty() && argument.chars().all(plain) {
        true => argument.into(),
        false => format!("'{}'", argument.replace('\'', "'\\''")),
    }
}

/// "51200 GFLOP/s in f32, 612000 in bf16".
pub fn matmul_peaks(peaks: &BTreeMap<impl Serialize, f64>) -> String {
    let mut unit = " GFLOP/s";
    let peaks = peaks.iter().map(|(precision, peak)| {
        let unit = mem::take(&mut unit);
        format!("{}{unit} in {}", significant(*peak, 3), name(precision))
    });
    match peaks.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "not known".into(),
        some => some,
    }
}

/// So many significant digits, without an exponent.
pub fn significant(x: f64, digits: i32) -> String {
    if x == 0.0 {
        return "0".into();
    }
    let places = |x: f64| digits - 1 - x.abs().log10().floor() as i32;
    // What rounds up to the next power of ten has a place less: 0.996 is 1.0.
    let unit = 10f64.powi(places(x));
    let rounded = (x * unit).round() / unit;
    format!("{rounded:.*}", places(rounded).max(0) as usize)
}

#[cfg(test)]
mod tests;
