//! Passes of variants in turns, their medians, and the lines of a table.

/// The times of one variant, one for each pass.
pub(crate) type Times = Vec<f64>;

/// Runs each variant once in each pass.
pub(crate) fn passes(count: usize, variants: &mut [&mut dyn FnMut() -> f64]) -> Vec<Times> {
    let mut times = vec![Times::new(); variants.len()];
    for _ in 0..count {
        for (times, variant) in times.iter_mut().zip(variants.iter_mut()) {
            times.push(variant());
        }
    }
    times
}

pub(crate) fn median(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Returns the median of how many times as long `slow` takes as `fast` in the same pass.
pub(crate) fn ratio(slow: &[f64], fast: &[f64]) -> f64 {
    let ratios: Vec<_> = slow.iter().zip(fast).map(|(slow, fast)| slow / fast).collect();
    median(&ratios)
}

/// Formats the median in microseconds, with two digits.
pub(crate) fn micros(times: &[f64]) -> String {
    format!("{:.2}", median(times) / 1000.0)
}

/// Formats a ratio with the bar that it must reach.
pub(crate) fn judged(ratio: f64, at_least: f64) -> String {
    let verdict = if ratio >= at_least { "" } else { ", **missed**" };
    format!("{ratio:.2} (≥ {at_least}{verdict})")
}

/// Prints a line of a table.
pub(crate) fn line(cells: &[String]) {
    println!("| {} |", cells.join(" | "));
}

/// Prints the head of a table.
pub(crate) fn head(title: &str, cells: &[&str]) {
    println!("\n{title}\n");
    println!("| {} |", cells.join(" | "));
    println!("|---{}|", "|---:".repeat(cells.len() - 1));
}
