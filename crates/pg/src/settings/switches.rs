//! `options` of a startup packet: switches of the server's command line.
//!
//! Words and switches are read as by PostgreSQL (`pg_split_opts`, `process_postgres_switches`) and
//! the `getopt` of glibc: switches may stand in one word, and words that are no switches count as
//! if they stood behind all others. PostgreSQL sets one value after the other, and stops at the
//! first that is wrong. So a refusal comes with the settings in front of it, and a server checks
//! these first.

use refrain_pg_wire::write::Report;

use crate::settings::session::Setting;

/// A switch of the command line.
#[derive(Clone, Copy, Debug)]
enum Switch {
    /// Nothing to a session.
    Ignored,
    /// Nothing to a session, and the word with it neither.
    IgnoredWithWord,
    /// A value of a parameter.
    Is(&'static str, &'static str),
    /// The parameter whose value the word is.
    Takes(&'static str),
    /// `-c name=value`, `--name=value`.
    Assigns,
    /// `-d`, the level of messages for debugging.
    Debug,
    /// `-f`, a kind of plan not to make.
    Forbids,
    /// `-t`, statistics to log.
    Statistics,
}

impl Switch {
    /// Returns the switch of a letter.
    fn of(letter: u8) -> Option<Self> {
        Some(match char::from(letter) {
            'b' | 'E' | 'j' | 'n' | 'T' => Self::Ignored,
            'C' | 'D' | 'r' | 'v' => Self::IgnoredWithWord,
            'c' | '-' => Self::Assigns,
            'd' => Self::Debug,
            'f' => Self::Forbids,
            't' => Self::Statistics,
            'e' => Self::Is("datestyle", "euro"),
            'F' => Self::Is("fsync", "false"),
            'i' => Self::Is("listen_addresses", "*"),
            'l' => Self::Is("ssl", "true"),
            'O' => Self::Is("allow_system_table_mods", "true"),
            'P' => Self::Is("ignore_system_indexes", "true"),
            's' => Self::Is("log_statement_stats", "true"),
            'B' => Self::Takes("shared_buffers"),
            'h' => Self::Takes("listen_addresses"),
            'k' => Self::Takes("unix_socket_directories"),
            'N' => Self::Takes("max_connections"),
            'p' => Self::Takes("port"),
            'S' => Self::Takes("work_mem"),
            'W' => Self::Takes("post_auth_delay"),
            _ => return None,
        })
    }

    fn takes_word(self) -> bool {
        !matches!(self, Self::Ignored | Self::Is(..))
    }
}

/// The reason why PostgreSQL ends a login because of its `options`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefusedSwitch {
    message: String,
    hint: &'static str,
}

impl RefusedSwitch {
    fn value_missing(beginning: &str, name: &[u8]) -> Self {
        let name = String::from_utf8_lossy(name);
        Self { message: format!("{beginning}{name} requires a value"), hint: "" }
    }

    fn invalid(word: &[u8]) -> Self {
        let word = String::from_utf8_lossy(word);
        let message = format!("invalid command-line argument for server process: {word}");
        Self { message, hint: "Try \"postgres --help\" for more information." }
    }

    /// Returns PostgreSQL's error.
    pub(crate) fn report(&self) -> Report<'_> {
        let Self { message, hint } = self;
        Report { severity: "FATAL", sqlstate: "42601", message, hint }
    }
}

/// Reads `options`. Returns the settings, up to a refusal if there is one.
pub(crate) fn read(text: &[u8]) -> (Vec<Setting>, Option<RefusedSwitch>) {
    let mut settings = Vec::new();
    let refused = read_words(split(text), &mut settings).err();
    (settings, refused)
}

/// Splits a text at spaces that no `\` stands before.
fn split(text: &[u8]) -> Vec<Vec<u8>> {
    // C's `isspace` takes a vertical tab for a space, Rust's function does not.
    let is_space = |byte: u8| byte.is_ascii_whitespace() || byte == 0x0b;
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.iter().position(|&byte| !is_space(byte)) {
        let (mut word, mut escaped, mut end) = (Vec::new(), false, rest.len());
        for (at, &byte) in rest.iter().enumerate().skip(start) {
            if is_space(byte) && !escaped {
                end = at;
                break;
            }
            escaped = byte == b'\\' && !escaped;
            if !escaped {
                word.push(byte);
            }
        }
        words.push(word);
        rest = &rest[end..];
    }
    words
}

fn read_words(words: Vec<Vec<u8>>, settings: &mut Vec<Setting>) -> Result<(), RefusedSwitch> {
    // The words that are no switches, and the word before the one that is read: PostgreSQL's error
    // names it for a switch in the middle of a word.
    let (mut loose, mut before) = (Vec::new(), b"postgres".to_vec());
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if word == b"--" {
            loose.extend(words);
            break;
        }
        if word.first() != Some(&b'-') || word == b"-" {
            loose.push(word);
            continue;
        }
        let mut at = 1;
        let mut last = None;
        while let Some(&letter) = word.get(at) {
            at += 1;
            let rest = &word[at..];
            let Some(switch) = Switch::of(letter) else {
                let middle = loose.last().unwrap_or(&before);
                return Err(RefusedSwitch::invalid(if rest.is_empty() { &word } else { middle }));
            };
            if !switch.takes_word() {
                switch.set(letter, b"", b"", settings)?;
            } else if rest.is_empty() {
                let value = words.next().ok_or_else(|| RefusedSwitch::invalid(&word))?;
                switch.set(letter, &value, &value, settings)?;
                last = Some(value);
            } else {
                switch.set(letter, rest, &word, settings)?;
                break;
            }
        }
        before = last.unwrap_or(word);
    }
    loose.first().map_or(Ok(()), |word| Err(RefusedSwitch::invalid(word)))
}

impl Switch {
    /// Adds the settings that a switch makes. `value` is the word behind it or the rest of its own
    /// word; `word` is all of that.
    fn set(
        self,
        letter: u8,
        value: &[u8],
        word: &[u8],
        settings: &mut Vec<Setting>,
    ) -> Result<(), RefusedSwitch> {
        let mut set = |name: &str, value: &[u8]| {
            settings.push((name.as_bytes().into(), value.into()));
        };
        match self {
            Self::Ignored | Self::IgnoredWithWord => {}
            Self::Is(name, value) => set(name, value.as_bytes()),
            Self::Takes(name) => set(name, value),
            Self::Assigns => settings.push(assignment(letter, value)?),
            Self::Debug => debug_settings(level(value), set),
            Self::Forbids => {
                set(forbidden(value).ok_or_else(|| RefusedSwitch::invalid(word))?, b"false");
            }
            Self::Statistics => {
                set(statistics(value).ok_or_else(|| RefusedSwitch::invalid(word))?, b"true");
            }
        }
        Ok(())
    }
}

/// Reads `name=value`. A dash in a name stands for an underscore.
fn assignment(letter: u8, text: &[u8]) -> Result<Setting, RefusedSwitch> {
    let beginning = if letter == b'-' { "--" } else { "-c " };
    let Some(at) = text.iter().position(|&byte| byte == b'=') else {
        return Err(RefusedSwitch::value_missing(beginning, text));
    };
    let name = text[..at].iter().map(|&byte| if byte == b'-' { b'_' } else { byte });
    Ok((name.collect(), text[at + 1..].into()))
}

/// Returns the parameter that `-f` switches off.
fn forbidden(kind: &[u8]) -> Option<&'static str> {
    Some(match char::from(*kind.first()?) {
        's' => "enable_seqscan",
        'i' => "enable_indexscan",
        'o' => "enable_indexonlyscan",
        'b' => "enable_bitmapscan",
        't' => "enable_tidscan",
        'n' => "enable_nestloop",
        'm' => "enable_mergejoin",
        'h' => "enable_hashjoin",
        _ => return None,
    })
}

/// Returns the parameter that `-t` switches on.
fn statistics(kind: &[u8]) -> Option<&'static str> {
    Some(match kind {
        [b'p', b'a', ..] => "log_parser_stats",
        [b'p', b'l', ..] => "log_planner_stats",
        [b'e', ..] => "log_executor_stats",
        _ => return None,
    })
}

/// Reads a number as C's `atoi` does.
fn level(text: &[u8]) -> i32 {
    let text = text.trim_ascii_start();
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] => (1, digits),
        digits => (1, digits),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let add = |sum: i32, digit: &u8| sum.saturating_mul(10).saturating_add(i32::from(digit - b'0'));
    sign * digits.fold(0, add)
}

/// Sets what `-d` does for a client (`set_debug_options`).
fn debug_settings(level: i32, mut set: impl FnMut(&str, &[u8])) {
    let words = if level > 0 { format!("debug{level}") } else { "notice".to_owned() };
    set("log_min_messages", words.as_bytes());
    if level >= 2 {
        set("log_statement", b"all");
    }
    let trees = ["debug_print_parse", "debug_print_plan", "debug_print_rewritten"];
    for (name, _) in trees.iter().zip(3..).filter(|(_, from)| level >= *from) {
        set(name, b"true");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(text: &str) -> String {
        let (settings, refused) = read(text.as_bytes());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let words = settings.iter().map(|(n, v)| format!("{}={}", text(n), text(v)));
        words
            .chain(refused.map(|refused| format!("! {}", refused.message)))
            .collect::<Vec<_>>()
            .join("|")
    }

    #[test]
    fn words_are_split_as_by_postgresql() {
        let wanted = "search_path=a, b|statement_timeout=5s|work_mem=1MB";
        let text = r"-c search_path=a,\ b --statement-timeout=5s  -cwork_mem=1MB ";
        assert_eq!(reading(text), wanted);
        assert_eq!(reading("\t-c\x0bapp.a=\\\\\\x\n"), r"app.a=\x");
        for nothing in ["", " ", "-E", "-r file -jn", "-C any -D.", "--"] {
            assert_eq!(reading(nothing), "", "{nothing}");
        }
    }

    #[test]
    fn the_first_wrong_word_is_named() {
        let invalid = "invalid command-line argument for server process: ";
        for (text, word) in [
            ("-", "-"),
            ("a -c a.b=1", "a"),
            ("-x", "-x"),
            ("-xe", "postgres"),
            ("-c a.b=1 -xe", "a.b=1"),
            ("c -e -xe", "c"),
            ("-S", "-S"),
            ("-f x", "x"),
            ("-fx", "-fx"),
            ("-- -e", "-e"),
            ("\\", ""),
        ] {
            let read = reading(text);
            assert!(read.ends_with(&format!("! {invalid}{word}")), "{text}: {read}");
        }
        assert_eq!(reading("-c foo"), "! -c foo requires a value");
        assert_eq!(reading("-e --geqo a"), "datestyle=euro|! --geqo requires a value");
    }
}
