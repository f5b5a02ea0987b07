//! The text of a log line: time, level, a sentence, and fields as `key=value`; or the same as a
//! JSON object.
//!
//! Every part of a line that comes from outside (a name, a query, words of a server) is written by
//! one function, [`escaped`]: no client can end a line, begin another, or send control sequences to
//! a terminal.

use std::fmt::{self, Debug, Write};

use refrain_config::LogFormat;
use tracing::field::{Field, Visit};
use tracing::{Event, Level};

use super::zone;

/// Maximum number of characters of a value. Names may have thousands, and lines wait in a queue.
const WORDS_MAX: usize = 2000;
/// The name of the field that has the sentence.
const MESSAGE: &str = "message";

/// Returns the line of an event, with the newline.
pub(super) fn of(event: &Event<'_>, format: LogFormat) -> String {
    let mut line = Line { text: String::new(), format };
    line.begin(event.metadata().level());
    event.record(&mut line);
    line.end()
}

/// Returns a line that has these words and nothing else.
pub(super) fn bare(words: &str) -> String {
    let mut line = String::new();
    words.chars().take(WORDS_MAX).for_each(|c| escaped(c, &mut line));
    line + "\n"
}

struct Line {
    text: String,
    format: LogFormat,
}

impl Line {
    fn begin(&mut self, level: &Level) {
        let now = zone::now();
        self.text += &match self.format {
            LogFormat::Text => format!("{now} {level:>5}"),
            LogFormat::Json => format!(r#"{{"timestamp":"{now}","level":"{level}""#),
        };
    }

    fn end(mut self) -> String {
        self.text += match self.format {
            LogFormat::Text => "\n",
            LogFormat::Json => "}\n",
        };
        self.text
    }

    fn key(&mut self, name: &str) {
        match self.format {
            LogFormat::Text if name == MESSAGE => self.text.push(' '),
            LogFormat::Text => {
                self.text.push(' ');
                self.text += name;
                self.text.push('=');
            }
            LogFormat::Json => {
                self.text += ",\"";
                self.text += name;
                self.text += "\":";
            }
        }
    }

    /// Writes a value that is not a number.
    fn words(&mut self, field: &Field, words: &str) {
        self.key(field.name());
        let bare = field.name() == MESSAGE || is_plain(words);
        let quoted = !bare || self.format == LogFormat::Json;
        if quoted {
            self.text.push('"');
        }
        for c in words.chars().take(WORDS_MAX) {
            if quoted && c == '"' {
                self.text.push('\\');
            }
            escaped(c, &mut self.text);
        }
        if words.chars().nth(WORDS_MAX).is_some() {
            self.text.push('…');
        }
        if quoted {
            self.text.push('"');
        }
    }

    fn number(&mut self, field: &Field, number: impl fmt::Display) {
        self.key(field.name());
        self.text += &number.to_string();
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.words(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.number(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.number(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.number(field, value);
    }

    /// Writes the sentence, whose `Debug` shows it without quotes, or another value by its `Debug`.
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.words(field, &format!("{value:?}"));
    }
}

/// True if a value needs no quotes.
fn is_plain(words: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "_-.:/@*+[]%,".contains(c);
    !words.is_empty() && words.chars().all(plain)
}

/// Writes a character in the form in which it may stand in a line. Escapes are those of JSON, in
/// text as well.
///
/// Escaped are control characters, separators of lines and paragraphs, and characters that change
/// the direction of text, because terminals and log readers act on them; and the backslash, so that
/// an escape differs from the same characters in the value.
fn escaped(c: char, into: &mut String) {
    match c {
        '\\' => *into += r"\\",
        '\n' => *into += r"\n",
        '\r' => *into += r"\r",
        '\t' => *into += r"\t",
        c if c.is_control() || is_invisible(c) => {
            // Writing to a `String` does not fail.
            let _ = write!(into, "\\u{:04x}", u32::from(c));
        }
        c => into.push(c),
    }
}

fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
    )
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

    use super::*;

    struct Kept(LogFormat, Arc<Mutex<String>>);

    impl<S: tracing::Subscriber> Layer<S> for Kept {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            *self.1.lock().unwrap() += &of(event, self.0);
        }
    }

    /// Returns the lines that `work` logs, with `NOW` in place of the time.
    fn logged(format: LogFormat, work: impl FnOnce()) -> String {
        let text = Arc::default();
        let registry = tracing_subscriber::registry().with(Kept(format, Arc::clone(&text)));
        tracing::subscriber::with_default(registry, work);
        let text = text.lock().unwrap();
        let begin = text.find("20").unwrap();
        assert_eq!(text.as_bytes()[begin + 26], b'Z', "{text}");
        text.replacen(&text[begin..begin + 27], "NOW", 1)
    }

    #[test]
    fn a_line_has_a_sentence_and_what_it_is_about() {
        let log = || {
            let (nobody, user): (Option<&str>, _) = (None, Some("me"));
            tracing::warn!(cause = "x", client = 7u64, user, nobody, name = "a b", "it {}", "ends");
        };
        assert_eq!(
            logged(LogFormat::Text, log),
            "NOW  WARN it ends cause=x client=7 user=me name=\"a b\"\n"
        );
        assert_eq!(
            logged(LogFormat::Json, log),
            "{\"timestamp\":\"NOW\",\"level\":\"WARN\",\"message\":\"it ends\",\"cause\":\"x\",\
             \"client\":7,\"user\":\"me\",\"name\":\"a b\"}\n"
        );
    }

    #[test]
    fn what_comes_from_outside_stays_in_its_place() {
        let bad = "a\n\r\t\u{1b}\u{7f}\u{9b}\u{2028}\u{202e}\"\\n=ü";
        let text = logged(LogFormat::Text, || tracing::info!(user = bad, "from {bad}"));
        let escaped = r"a\n\r\t\u001b\u007f\u009b\u2028\u202e";
        assert_eq!(
            text,
            format!("NOW  INFO from {escaped}\"\\\\n=ü user=\"{escaped}\\\"\\\\n=ü\"\n")
        );
        let json = logged(LogFormat::Json, || tracing::info!(user = bad, "from {bad}"));
        let value = format!("{escaped}\\\"\\\\n=ü\"");
        assert_eq!(
            json,
            format!(
                "{{\"timestamp\":\"NOW\",\"level\":\"INFO\",\"message\":\"from {value},\"user\":\"{value}}}\n"
            )
        );
    }

    #[test]
    fn a_value_has_a_length() {
        let long = "x".repeat(WORDS_MAX + 1);
        let text = logged(LogFormat::Text, || tracing::info!(user = long, "it ends"));
        assert_eq!(text, format!("NOW  INFO it ends user=\"{}…\"\n", &long[1..]).replace('"', ""));
    }

    #[test]
    fn nothing_that_is_acted_on_gets_through() {
        for c in (0..=0x1_0000).filter_map(char::from_u32) {
            let mut text = String::new();
            escaped(c, &mut text);
            assert!(!text.contains(char::is_control), "{c:?}");
            assert!(text == c.to_string() || text.starts_with('\\'), "{c:?}");
        }
    }
}
