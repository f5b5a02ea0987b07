//! The text of the metrics, in Prometheus' format or as OpenMetrics.

use std::fmt::{Display, Write};
use std::ops::RangeInclusive;

use refrain_pool::stats::{BUCKETS, Histogram};

/// The bounds of a histogram that a scrape shows: from 2^6 to 2^26 µs. The sums include shorter and
/// longer times.
const BOUNDS: RangeInclusive<usize> = 6..=BUCKETS - 2;

/// The reason why writing to a `String` does not fail.
const FITS: &str = "memory is there";

/// Text in Prometheus' format.
pub(super) struct Text {
    text: String,
    /// Whether the text is OpenMetrics.
    is_open: bool,
}

impl Text {
    pub(super) fn new(is_open: bool) -> Self {
        Self { text: String::new(), is_open }
    }

    /// Returns the whole text.
    pub(super) fn end(mut self) -> String {
        if self.is_open {
            self.text += "# EOF\n";
        }
        self.text
    }

    /// Writes the head of a family. OpenMetrics calls a counter without the ending of its samples.
    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        let name = match name.strip_suffix("_total") {
            Some(short) if self.is_open && kind == "counter" => short,
            _ => name,
        };
        writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}").expect(FITS);
    }

    pub(super) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.text += name;
        for (at, (label, text)) in labels.iter().enumerate() {
            self.text.push(if at == 0 { '{' } else { ',' });
            write!(self.text, "{label}=\"").expect(FITS);
            self.escape(text);
            self.text.push('"');
        }
        let end = if labels.is_empty() { "" } else { "}" };
        writeln!(self.text, "{end} {value}").expect(FITS);
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
                '\\' => self.text += r"\\",
                '"' => self.text += "\\\"",
                '\n' => self.text += r"\n",
                _ => self.text.push(c),
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
        let mut text = Text::new(false);
        text.sample("a", &[], 1);
        text.sample("b", &[("x", "1\"2\\3\n")], 2.5);
        assert_eq!(text.end(), "a 1\nb{x=\"1\\\"2\\\\3\\n\"} 2.5\n");
    }

    #[test]
    fn families_have_a_name_in_each_format() {
        let written = |is_open| {
            let mut text = Text::new(is_open);
            text.family("a_total", "counter", "A.");
            text.sample("a_total", &[], 1);
            text.family("b", "gauge", "B.");
            text.end()
        };
        let open = "# HELP a A.\n# TYPE a counter\na_total 1\n# HELP b B.\n# TYPE b gauge\n# EOF\n";
        assert_eq!(written(true), open);
        assert_eq!(written(false), open.replace(" a ", " a_total ").replace("# EOF\n", ""));
    }

    #[test]
    fn buckets_add_up() {
        let mut histogram = Histogram::default();
        [10, 100, 1_000_000, u64::MAX >> 20].into_iter().for_each(|us| histogram.count(us));
        let mut text = Text::new(false);
        text.histogram("h", &[("database", "d"), ("user", "u")], &histogram);
        let value = |of: &str| {
            let line = text.text.lines().find(|line| line.contains(of)).unwrap();
            line.rsplit(' ').next().unwrap().to_owned()
        };
        assert_eq!(value("le=\"0.000064\""), "1");
        assert_eq!(value("le=\"0.000128\""), "2");
        assert_eq!(value("le=\"1.048576\""), "3");
        assert_eq!(value("le=\"+Inf\""), "4");
        assert_eq!(value("h_count"), "4");
    }
}
