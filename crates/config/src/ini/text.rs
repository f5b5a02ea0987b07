//! The lines of a `pgbouncer.ini`, and of the files that it includes.
//!
//! PgBouncer skips white space, and then takes what comes: a comment, `[section]`, `%include FILE`
//! or `name = value`. A comment begins where a line begins, so `;` and `#` within a line belong to
//! the value. A value reaches to the end of its line, without white space at its ends. A name is of
//! letters, digits and `_.-*`, or stands in double quotes.

use std::path::{Path, PathBuf};

use crate::machine::Machine;

/// Files within files at most, as PgBouncer has it.
const INCLUDES_MAX: usize = 10;

/// Something that the file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// `[name]`
    Section(String),
    /// `name = value`
    Pair(String, String),
}

/// Something that the file says, with its place and the comments in front of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) said: Said,
    /// Its place: an index of [`Text::places`].
    pub(super) place: usize,
    pub(super) comments: Vec<String>,
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The file, if another file includes it.
    pub(super) file: Option<PathBuf>,
    pub(super) line: usize,
}

/// All that a file and those that it includes say, in the order in which it counts.
#[derive(Debug, Default)]
pub(super) struct Text {
    pub(super) lines: Vec<Line>,
    pub(super) places: Vec<Place>,
    /// Comments behind the last line.
    pub(super) comments: Vec<String>,
    /// Lines that are none of these: their places and the reasons.
    pub(super) errors: Vec<(usize, String)>,
}

impl Text {
    /// Reads a text, and from the machine the files that it includes.
    pub(super) fn read(text: &str, machine: &dyn Machine) -> Self {
        let mut read = Self::default();
        read.file(&Source { text, file: None }, 0, machine);
        read
    }

    fn file(&mut self, source: &Source<'_>, depth: usize, machine: &dyn Machine) {
        let mut at = 0;
        loop {
            at += blank(&source.text[at..]);
            let rest = &source.text[at..];
            let Some(first) = rest.chars().next() else { return };
            let line = rest.split('\n').next().unwrap_or_default();
            let begun = at;
            at += line.len();
            if first == '#' || first == ';' {
                self.comments.push(line.trim_end().to_owned());
            } else if let Some(name) = included(line) {
                let place = self.place(source, begun);
                self.include(name, place, depth, machine);
            } else if first == '[' {
                match line[1..].split_once(']') {
                    Some((name, _)) => {
                        at = begun + name.len() + 2;
                        self.say(Said::Section(name.to_owned()), source, begun);
                    }
                    None => self.fail(source, begun, "expected \"]\" behind the section's name"),
                }
            } else {
                match pair(line) {
                    Ok((name, value)) => self.say(Said::Pair(name, value), source, begun),
                    Err(message) => self.fail(source, begun, message),
                }
            }
        }
    }

    fn include(&mut self, name: &str, place: usize, depth: usize, machine: &dyn Machine) {
        if depth == INCLUDES_MAX {
            return self.errors.push((place, "includes are nested too deeply".to_owned()));
        }
        let path = Path::new(name);
        match machine.read(path) {
            Ok(text) => {
                self.file(&Source { text: &text, file: Some(path) }, depth + 1, machine);
            }
            Err(error) => {
                let message = format!("could not open file \"{name}\": {error}");
                self.errors.push((place, message));
            }
        }
    }

    fn say(&mut self, said: Said, source: &Source<'_>, at: usize) {
        let place = self.place(source, at);
        let comments = std::mem::take(&mut self.comments);
        self.lines.push(Line { said, place, comments });
    }

    fn fail(&mut self, source: &Source<'_>, at: usize, message: &str) {
        let place = self.place(source, at);
        self.errors.push((place, message.to_owned()));
    }

    fn place(&mut self, source: &Source<'_>, at: usize) -> usize {
        let line = 1 + source.text[..at].matches('\n').count();
        self.places.push(Place { file: source.file.map(Path::to_owned), line });
        self.places.len() - 1
    }
}

/// The text of a file, and its name if another file includes it.
struct Source<'a> {
    text: &'a str,
    file: Option<&'a Path>,
}

/// Whether C's `isspace` takes a character.
fn is_space(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\u{b}'
}

/// Returns the number of bytes of white space at the beginning.
fn blank(text: &str) -> usize {
    text.len() - text.trim_start_matches(is_space).len()
}

/// Returns the name of the file that a line includes.
fn included(line: &str) -> Option<&str> {
    let name = line.strip_prefix("%include")?;
    name.starts_with([' ', '\t']).then(|| name.trim_matches(is_space))
}

/// Reads `name = value`.
fn pair(line: &str) -> Result<(String, String), &'static str> {
    let (name, rest) = match line.strip_prefix('"') {
        Some(quoted) => unquoted(quoted).ok_or("expected another double quote")?,
        None => {
            let is_of_name = |c: char| c.is_ascii_alphanumeric() || "_.-*".contains(c);
            let rest = line.trim_start_matches(is_of_name);
            (line[..line.len() - rest.len()].to_owned(), rest)
        }
    };
    let value = rest.trim_start_matches([' ', '\t']).strip_prefix('=');
    let value = value.ok_or("expected \"name = value\"")?;
    if name.is_empty() {
        return Err("expected a name before \"=\"");
    }
    Ok((name, value.trim_matches(is_space).to_owned()))
}

/// Reads a name behind its first quote. Returns it and what follows it.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut rest = text;
    loop {
        let (part, behind) = rest.split_once('"')?;
        name.push_str(part);
        match behind.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => return Some((name, behind)),
        }
    }
}
