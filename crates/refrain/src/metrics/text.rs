//! The text of the metrics, in Prometheus' format.

use std::fmt::{Display, Write};
use std::ops::RangeInclusive;

use refrain_pool::stats::{BUCKETS, Histogram};

/// The bounds of a histogram that a scrape shows: from 2^6 to 2^26 µs. The sums include shorter and
/// longer times.
const BOUNDS: RangeInclusive<usize> = 6..=BUCKETS - 2;

/// The reason why writing to a `String` does not fail.
const FITS: &str = "memory is there";

/// Text in Prometheus' format.
#[derive(Default)]
pub(super) struct Text(pub(super) String);

impl Text {
    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}").expect(FITS);
    }

    pub(super) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0 += name;
        for (at, (label, text)) in labels.iter().enumerate() {
            self.0.push(if at == 0 { '{' } else { ',' });
            write!(self.0, "{label}=\"").expect(FITS);
            self.escape(text);
            self.0.push('"');
        }
        let end = if labels.is_empty() { "" } else { "}" };
        writeln!(self.0, "{end} {value}").expect(FITS);
    }

    /// Writes a histogram. Its buckets are cumulative, as Prometheus wants them: each one includes
    /// all before it.
    pub(super) fn histogram(&mut self, name: &str, labels: &[(&str, &str)], histogram: &Histogram) {
        let bucket = format!("{name}_bucket");
        let mut sum = 0;
        for (power, count) in histogram.buckets.iter().enumerate() {
            sum += count;
            if BOUNDS.contains(&power) {
                let bound = seconds(1 << power).to_string();
                self.sample(&bucket, &[labels, &[("le", &bound)]].concat(), sum);
            }
        }
        self.sample(&bucket, &[labels, &[("le", "+Inf")]].concat(), sum);
        self.sample(&format!("{name}_sum"), labels, seconds(histogram.sum_us));
        self.sample(&format!("{name}_count"), labels, sum);
    }

    fn escape(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '\\' => self.0 += r"\\",
                '"' => self.0 += "\\\"",
                '\n' => self.0 += r"\n",
                _ => self.0.push(c),
            }
        }
    }
}

/// Returns a time in seconds.
pub(super) fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_and_their_labels() {
        let mut text = Text::default();
        text.sample("a", &[], 1);
        text.sample("b", &[("x", "1\"2\\3\n")], 2.5);
        assert_eq!(text.0, "a 1\nb{x=\"1\\\"2\\\\3\\n\"} 2.5\n");
    }

    #[test]
    fn buckets_add_up() {
        let mut histogram = Histogram::default();
        [10, 100, 1_000_000, u64::MAX >> 20].into_iter().for_each(|us| histogram.count(us));
        let mut text = Text::default();
        text.histogram("h", &[("database", "d"), ("user", "u")], &histogram);
        let value = |of: &str| {
            let line = text.0.lines().find(|line| line.contains(of)).unwrap();
            line.rsplit(' ').next().unwrap().to_owned()
        };
        assert_eq!(value("le=\"0.000064\""), "1");
        assert_eq!(value("le=\"0.000128\""), "2");
        assert_eq!(value("le=\"1.048576\""), "3");
        assert_eq!(value("le=\"+Inf\""), "4");
        assert_eq!(value("h_count"), "4");
    }
}
