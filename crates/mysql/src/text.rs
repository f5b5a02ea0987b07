//! The effects of a text that no reply tells.
//!
//! Servers report nearly all that a statement leaves behind in its session. The rest is read from
//! the text: a word of a table, outside of strings and comments. A word says that the text *may* do
//! something.

mod facts;
mod words;

pub(crate) use self::facts::{Calls, Facts, Marks, Memory, Number, Scope, Tables, Variables, Verb};
use self::words::{Meaning, meaning};
use crate::functions;
use crate::insert_id::{Effect, Reading};
use crate::pins::Pins;
use crate::settings;

/// The part of a text that has just been passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Behind {
    #[default]
    Other,
    /// The word INTO.
    Into,
    /// The word NO.
    No,
    /// A name.
    Name,
}

/// The statements of a text before the present one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Earlier {
    /// There are none.
    #[default]
    None,
    /// They may change how this one is read.
    Any,
    /// One may have inserted rows as well.
    Insert,
}

/// How a text is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reads {
    /// Whether a backslash in a string is a byte like any other.
    pub(crate) plain_backslash: bool,
    /// Whether a quotation mark is that of a name, in which a backslash is such a byte.
    pub(crate) ansi_quotes: bool,
    /// Whether a byte of a character may be a backslash or a quote, so that no end of a string can
    /// be told.
    pub(crate) is_multibyte: bool,
}

/// Returns what a text may do.
pub(crate) fn facts(text: &[u8], reads: Reads) -> Facts {
    let mut reader = Reader {
        text,
        at: 0,
        reads,
        facts: Facts::default(),
        is_variable: false,
        earlier: Earlier::default(),
        behind: Behind::default(),
        name: b"",
        before: b"",
        is_qualified: false,
        is_conditional: false,
    };
    reader.read();
    let Facts { has_several, insert_id, .. } = &mut reader.facts;
    // The last OK packet tells nothing of the statements before the last one.
    if *has_several && insert_id.effect == Effect::Told {
        insert_id.effect = Effect::Untold;
    }
    reader.facts
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    reads: Reads,
    facts: Facts,
    /// Whether the word that comes is of the name of a system variable.
    is_variable: bool,
    behind: Behind,
    /// The part of the text that has just been passed, other than white space.
    name: &'a [u8],
    /// The part in front of that; where that is a name with dots, the part in front of the whole.
    before: &'a [u8],
    /// Whether it is a name with dots, which is none of the server's own functions.
    is_qualified: bool,
    /// Whether a comment has begun that some servers run. From there on a server may read another
    /// text than this one.
    is_conditional: bool,
    earlier: Earlier,
}

impl Reader<'_> {
    fn read(&mut self) {
        // Whether nothing of the present statement has been read, and its verb.
        let (mut is_first, mut verb) = (true, None);
        let mut ended = false;
        while let Some(&byte) = self.text.get(self.at) {
            let begins = self.at;
            match byte {
                b'\'' | b'"' | b'`' if !self.reads.is_multibyte => self.string(byte),
                b'#' => {
                    self.line();
                    continue;
                }
                b'-' if self.is_comment() => {
                    self.line();
                    continue;
                }
                b'/' if self.text.get(begins + 1) == Some(&b'*') => {
                    self.comment();
                    continue;
                }
                b'*' if self.text.get(begins + 1) == Some(&b'/') => {
                    self.at += 2;
                    continue;
                }
                b';' => {
                    (is_first, ended) = (true, true);
                    self.earlier = match self.facts.insert_id.effect {
                        Effect::None => Earlier::Any,
                        _ => Earlier::Insert,
                    };
                    self.at += 1;
                    continue;
                }
                b' ' | b'\t'..=b'\r' | b'(' => {
                    self.space(byte);
                    continue;
                }
                b'@' => self.variable(verb),
                b':' if self.text.get(begins + 1) == Some(&b'=') => {
                    self.facts.pins.add(Pins::VARIABLES);
                    self.at += 2;
                }
                // A variable's name may have the word SESSION in front.
                b'.' => self.at += 1,
                _ if is_word(byte) => {
                    let word = self.word();
                    let found = meaning(word);
                    if is_first {
                        verb = found;
                        if matches!(found, Some(Meaning::Verb(Verb::Savepoint))) {
                            self.facts.manual_pins.add(Pins::SAVEPOINT);
                        }
                        self.facts.verb = match (ended, found) {
                            (false, Some(Meaning::Verb(verb))) => verb,
                            (false, Some(Meaning::Fire | Meaning::Insert)) => Verb::Write,
                            (true, Some(Meaning::Verb(Verb::Kill))) => Verb::Kill,
                            _ => self.facts.verb,
                        };
                    }
                    self.mean(found, is_first, verb);
                    self.is_variable &= self.text.get(self.at) == Some(&b'.');
                }
                _ => self.at += 1,
            }
            let dots = byte == b'.' || self.name == b".";
            if !dots {
                self.before = self.name;
            }
            (self.name, self.is_qualified) = (&self.text[begins..self.at], dots);
            self.behind = behind(self.name);
            self.facts.has_several |= ended;
            is_first = false;
        }
    }

    fn mean(&mut self, found: Option<Meaning>, is_verb: bool, verb: Option<Meaning>) {
        let Some(found) = found else { return };
        match found {
            Meaning::Pin(pins) => self.facts.pins.add(pins),
            Meaning::PinAsVerb(pins) if is_verb => self.facts.pins.add(pins),
            Meaning::PinInSet(pins) if matches!(verb, Some(Meaning::Verb(Verb::Set))) => {
                self.facts.pins.add(pins);
            }
            Meaning::Define => self.define(),
            Meaning::View if matches!(verb, Some(Meaning::Run | Meaning::Define)) => {
                self.facts.tables = Tables::ChangeViews;
            }
            Meaning::Rename => self.facts.tables = Tables::ChangeViews,
            Meaning::Run => self.run(),
            Meaning::Call => {
                self.run();
                self.facts.calls = Calls::Any;
            }
            Meaning::RunText => {
                self.run();
                self.facts.calls = Calls::Any;
                self.facts.variables = Variables::SetBack;
            }
            Meaning::Fire => self.fire(),
            Meaning::Insert => self.insert(),
            Meaning::Release => {
                let ends = matches!(verb, Some(Meaning::Verb(Verb::End)));
                self.facts.releases |= ends && self.behind != Behind::No;
            }
            Meaning::Load => {
                self.facts.loads = true;
                self.fire();
                // Its OK packet has 0 for the number, whatever number its rows got.
                self.facts.insert_id.effect = Effect::Untold;
            }
            Meaning::AskNumber if self.is_called() => self.facts.number = Number::Asked,
            Meaning::Wish => self.facts.wishes = true,
            Meaning::SetForOne if matches!(verb, Some(Meaning::Verb(Verb::Set))) => {
                self.facts.variables = Variables::SetBack;
            }
            Meaning::AskBack => self.facts.asks.counts |= self.is_called(),
            Meaning::AskFoundRows => self.facts.asks.found_rows |= self.is_called(),
            Meaning::AskInsertId => self.ask_insert_id(verb),
            Meaning::AskBackAsVariable => self.facts.asks.conditions |= self.is_variable,
            Meaning::AskBackBehind(wanted) => {
                let is_behind = matches!(verb, Some(Meaning::Verb(verb)) if verb == wanted);
                self.facts.asks.conditions |= is_behind;
                // GET DIAGNOSTICS asks for counts as well.
                self.facts.asks.counts |= is_behind && wanted == Verb::Get;
            }
            Meaning::AskNumber
            | Meaning::PinAsVerb(_)
            | Meaning::PinInSet(_)
            | Meaning::SetForOne
            | Meaning::Verb(_)
            | Meaning::View => {}
        }
    }

    /// Passes white space, or a parenthesis that opens.
    fn space(&mut self, byte: u8) {
        if byte == b'(' {
            if self.is_conditional || self.behind == Behind::Name && !self.is_harmless() {
                self.facts.calls = Calls::Any;
            }
            (self.name, self.is_qualified) = (b"(", false);
            self.behind = Behind::Other;
        }
        self.at += 1;
    }

    /// Whether the name in front of a parenthesis is none of a function of the user's.
    fn is_harmless(&self) -> bool {
        let is_close = self.text[..self.at].ends_with(self.name);
        let is_own = !self.is_qualified && functions::is_harmless(self.name, is_close);
        is_own || functions::names_no_function(self.before)
    }

    /// Notes that the text may do anything that its reply tells.
    fn run(&mut self) {
        self.define();
        self.facts.insert_id.effect = Effect::Untold;
    }

    /// Notes that the text may change tables.
    fn define(&mut self) {
        self.facts.tables = self.facts.tables.max(Tables::Change);
    }

    /// Notes that the text may run triggers. In a text that sets variables they count as a call:
    /// other changes are all taken for more than settings.
    fn fire(&mut self) {
        let sets = self.facts.variables == Variables::SetBack;
        let calls = if sets { Calls::Any } else { Calls::Fires };
        self.facts.calls = self.facts.calls.max(calls);
    }

    /// Notes that the text may insert rows.
    fn insert(&mut self) {
        self.fire();
        let effect = &mut self.facts.insert_id.effect;
        *effect = if *effect == Effect::Untold { Effect::Untold } else { Effect::Told };
    }

    /// Notes a word that is a name of the number that a row got.
    fn ask_insert_id(&mut self, verb: Option<Meaning>) {
        let is_set = matches!(verb, Some(Meaning::Verb(Verb::Set)));
        let reads = self.is_called() || self.is_variable && !is_set;
        let uses = &mut self.facts.insert_id;
        match (reads, uses.reading) {
            // LAST_INSERT_ID(…) sets it, and so does SET.
            (false, _) => uses.effect = Effect::Untold,
            (true, Reading::No) if self.earlier == Earlier::Insert => {
                uses.reading = Reading::OfText
            }
            (true, Reading::OfText) if self.earlier == Earlier::Insert => {}
            (true, _) => uses.reading = Reading::OfSession,
        }
    }

    /// Whether parentheses without anything between them come.
    fn is_called(&self) -> bool {
        let rest = self.text[self.at..].trim_ascii_start().strip_prefix(b"(");
        rest.is_some_and(|rest| rest.trim_ascii_start().starts_with(b")"))
    }

    /// Passes a string or a quoted name.
    fn string(&mut self, quote: u8) {
        let begins = self.at;
        let is_name = quote == b'`' || quote == b'"' && self.reads.ansi_quotes;
        self.at += 1;
        while let Some(&byte) = self.text.get(self.at) {
            self.at += 1;
            if byte == quote {
                break;
            }
            if byte == b'\\' && quote != b'`' {
                self.backslash(quote);
                if !is_name && !self.reads.plain_backslash {
                    self.at = self.text.len().min(self.at + 1);
                }
            }
        }
        self.hide(begins);
    }

    /// Notes a backslash that stands in front of the quote which ends the string for some servers.
    fn backslash(&mut self, quote: u8) {
        if self.text.get(self.at) != Some(&quote) {
            return;
        }
        if quote == b'"' {
            self.facts.marks = Marks::Escaped;
        }
        // The statements before may set `sql_mode`, and a part of one may be for this one alone.
        if self.earlier != Earlier::None || self.facts.variables == Variables::SetBack {
            self.facts.calls = Calls::Any;
        }
    }

    /// Notes what a string or a comment may hide that has just been passed: where a comment is not
    /// run, the text goes on behind its end, and where strings are not read, it may be of one.
    fn hide(&mut self, begins: usize) {
        let passed = &self.text[begins..self.at];
        let is_hidden = self.reads.is_multibyte
            || self.is_conditional && passed.windows(2).any(|pair| pair == b"*/");
        if is_hidden {
            self.facts.calls = Calls::Any;
        }
    }

    /// Whether two hyphens begin a comment: white space or a control character stands behind them.
    fn is_comment(&self) -> bool {
        match self.text[self.at..] {
            [b'-', b'-'] => true,
            [b'-', b'-', next, ..] => next <= b' ' || next == 0x7F,
            _ => false,
        }
    }

    /// Passes the rest of a line.
    fn line(&mut self) {
        let begins = self.at;
        let rest = &self.text[begins..];
        self.at += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        self.hide(begins);
    }

    /// Passes a comment. What a server may run of it is read as text.
    fn comment(&mut self) {
        let begins = self.at;
        self.at += 2;
        match self.text[self.at..] {
            [b'!', ..] => self.at += 1,
            [b'M', b'!', ..] => self.at += 2,
            _ => {
                let rest = &self.text[self.at..];
                let end = rest.windows(2).position(|pair| pair == b"*/");
                self.at += end.map_or(rest.len(), |end| end + 2);
                self.hide(begins);
                return;
            }
        }
        self.is_conditional = true;
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }

    /// Passes `@`, or the two of them that begin the name of a system variable.
    fn variable(&mut self, verb: Option<Meaning>) {
        self.at += 1;
        if self.text.get(self.at) == Some(&b'@') {
            self.at += 1;
            self.is_variable = true;
            let is_read = matches!(verb, Some(Meaning::Verb(Verb::Select)));
            if !is_read && self.is_assigned() {
                self.facts.scope = Scope::Missing;
                // A name in quotes may be any.
                let name = self.name_here();
                if name.is_empty() || settings::stays(name) {
                    self.facts.pins.add(Pins::VARIABLES);
                }
            }
            return;
        }
        // A procedure gives values back, and GET DIAGNOSTICS and LOAD DATA set variables as well.
        let sets = matches!(
            verb,
            Some(Meaning::Verb(Verb::Set | Verb::Get) | Meaning::Call | Meaning::Load)
        );
        if self.behind == Behind::Into || sets {
            self.facts.pins.add(Pins::VARIABLES);
        }
    }

    /// Whether a value comes behind the name of a variable that comes. A comment between them may
    /// hide it, and so may the quotes of the name.
    fn is_assigned(&self) -> bool {
        let name = self.name_here().len();
        let behind = self.text[self.at + name..].trim_ascii_start();
        name == 0 || matches!(behind, [b'=', ..] | [b':', b'=', ..] | [b'/' | b'-' | b'#', ..])
    }

    /// Returns the word that begins here, which is empty if none does.
    fn name_here(&self) -> &[u8] {
        let rest = &self.text[self.at..];
        let length = rest.iter().take_while(|byte| is_word(**byte)).count();
        &rest[..length]
    }

    /// Passes a word.
    fn word(&mut self) -> &[u8] {
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|&byte| !is_word(byte)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }
}

/// Whether a byte is of a word.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// Returns what a part of a text is for the one behind it.
fn behind(token: &[u8]) -> Behind {
    match token.first() {
        // A quotation mark is that of a name under ANSI_QUOTES.
        Some(b'`' | b'"') => Behind::Name,
        _ if token.eq_ignore_ascii_case(b"no") => Behind::No,
        _ if token.eq_ignore_ascii_case(b"into") => Behind::Into,
        Some(&byte) if is_word(byte) => Behind::Name,
        _ => Behind::Other,
    }
}

#[cfg(test)]
mod tests;
