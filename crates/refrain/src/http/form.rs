//! The form in which a caller takes the metrics: its headers `Accept` and `Accept-Encoding`.

use httparse::Header;

/// The version of OpenMetrics that the metrics have.
const OPEN_VERSION: &str = "1.0.0";

/// A form of the metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Form {
    /// OpenMetrics, rather than Prometheus' older text.
    pub(crate) open: bool,
    /// Whether the text is compressed.
    pub(crate) gzip: bool,
}

impl Form {
    /// Returns the form that the headers of a request ask for. OpenMetrics has to be named, and
    /// nothing is compressed unless gzip is.
    pub(super) fn of(headers: &[Header]) -> Self {
        let values = |name: &'static str| {
            let named = headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
            named.filter_map(|header| std::str::from_utf8(header.value).ok())
        };
        let best = |name, wanted: fn(&Choice) -> bool| {
            let choices = values(name).flat_map(|value| value.split(',').map(Choice::read));
            choices.filter(wanted).map(|choice| choice.quality).fold(0.0, f32::max)
        };
        let open = best("accept", |choice| {
            choice.is("application/openmetrics-text")
                && choice.version.is_none_or(|version| version == OPEN_VERSION)
        });
        let plain = best("accept", |choice| choice.is("text/plain"));
        let gzip = best("accept-encoding", |choice| choice.is("gzip"));
        Self { open: open > 0.0 && open >= plain, gzip: gzip > 0.0 }
    }

    /// Returns the headers of an answer in this form.
    pub(super) fn headers(self) -> String {
        let kind = match self.open {
            true => format!("application/openmetrics-text; version={OPEN_VERSION}"),
            false => "text/plain; version=0.0.4".to_owned(),
        };
        let encoding = if self.gzip { "Content-Encoding: gzip\r\n" } else { "" };
        format!(
            "Content-Type: {kind}; charset=utf-8\r\n{encoding}Vary: Accept, Accept-Encoding\r\n"
        )
    }
}

/// One of the choices in a header.
struct Choice<'a> {
    name: &'a str,
    version: Option<&'a str>,
    quality: f32,
}

impl<'a> Choice<'a> {
    fn read(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let mut choice = Choice { name, version: None, quality: 1.0 };
        for (key, value) in parts.filter_map(|part| part.split_once('=')) {
            match key.trim().to_ascii_lowercase().as_str() {
                "version" => choice.version = Some(value.trim().trim_matches('"')),
                "q" => choice.quality = value.trim().parse().unwrap_or(0.0),
                _ => {}
            }
        }
        choice
    }

    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(accept: &str, encoding: &str) -> (bool, bool) {
        let header = |name, value: &'static str| Header { name, value: value.as_bytes() };
        let (accept, encoding) = (accept.to_owned().leak(), encoding.to_owned().leak());
        let form = Form::of(&[header("aCCept", accept), header("Accept-Encoding", encoding)]);
        (form.open, form.gzip)
    }

    #[test]
    fn the_better_choice_counts() {
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
             application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,\
             text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        assert_eq!(form(prometheus, "gzip"), (true, true));
        assert_eq!(form("*/*", "deflate, gzip;q=1.0, *;q=0.5"), (false, true));
        assert_eq!(form("application/openmetrics-text", "identity"), (true, false));
        assert_eq!(form("application/openmetrics-text; version=0.0.1", ""), (false, false));
        assert_eq!(
            form("text/plain;q=0.9, application/openmetrics-text;q=0.5", "*"),
            (false, false)
        );
        assert_eq!(form("application/openmetrics-text;q=0", "gzip; q=0"), (false, false));
        assert_eq!(form("application/openmetrics-text;q=x", "gzip;q"), (false, true));
        assert_eq!(Form::of(&[]), Form::default());
    }
}
