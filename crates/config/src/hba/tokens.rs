//! Splits a text into lines, the lines into fields, and the fields into tokens, as PostgreSQL does.
//!
//! A field is a list of tokens with commas between them. A token may stand in double quotes, which
//! take the special meaning from its characters; two of them in quotes stand for one. A `#` begins
//! a comment. A backslash at the end of a line joins the next line to it. `@file` stands for the
//! tokens of a file. A line `include file`, `include_if_exists file` or `include_dir directory`
//! stands for the lines of other files.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::problem::{Place, at};
use crate::machine::Machine;

/// Files that may include each other, one within the other: PostgreSQL's `CONF_FILE_MAX_DEPTH`.
const DEPTH_MAX: usize = 10;

/// The origin of a text.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The file; `None` if the text stands in the configuration itself.
    pub(crate) file: Option<Arc<Path>>,
    /// The text.
    pub(crate) text: String,
}

/// A word of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) text: String,
    /// Whether it begins with a quote, and so is no keyword.
    pub(super) quoted: bool,
}

impl Token {
    /// Whether the token is this keyword.
    pub(super) fn is(&self, keyword: &str) -> bool {
        !self.quoted && self.text == keyword
    }
}

/// The tokens between two spaces.
pub(super) type Field = Vec<Token>;

/// A line that is neither empty nor a comment.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) place: Place,
    /// The line as it is written.
    pub(super) text: String,
    /// Its fields, each with at least one token.
    pub(super) fields: Vec<Field>,
}

/// Reads texts, and the files that they refer to.
pub(super) struct Reader<'a> {
    machine: &'a dyn Machine,
    pub(super) problems: Vec<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(machine: &'a dyn Machine) -> Self {
        Self { machine, problems: Vec::new() }
    }

    /// Returns the lines of a text, with those of the files that it includes.
    pub(super) fn lines(&mut self, source: &Source) -> Vec<Line> {
        let mut lines = Vec::new();
        self.read_lines(source, 0, &mut lines);
        lines
    }

    fn read_lines(&mut self, source: &Source, depth: usize, lines: &mut Vec<Line>) {
        for (number, text) in joined(&source.text) {
            let place = Place { file: source.file.clone(), line: number };
            let fields = match self.fields(&text, &place, depth) {
                Ok(fields) if fields.is_empty() => continue,
                Ok(fields) => fields,
                Err(problem) => {
                    self.problems.push(at(&place, &problem));
                    continue;
                }
            };
            if let Some((word, target)) = inclusion(&fields) {
                if let Err(problem) = self.include(word, target, &place, depth, lines) {
                    self.problems.push(at(&place, &problem));
                }
                continue;
            }
            lines.push(Line { place, text: text.trim().to_owned(), fields });
        }
    }

    /// Reads the files that an `include` names.
    fn include(
        &mut self,
        word: &str,
        target: &str,
        place: &Place,
        depth: usize,
        lines: &mut Vec<Line>,
    ) -> Result<(), String> {
        let path = beside(place, target)?;
        let paths = match word {
            "include_dir" => configurations(self.machine.files_in(&path)).map_err(|error| {
                format!("could not open directory \"{}\": {error}", path.display())
            })?,
            _ => vec![path],
        };
        for path in paths {
            match self.file(&path, depth) {
                Ok(source) => self.read_lines(&source, depth + 1, lines),
                Err((_, io::ErrorKind::NotFound)) if word == "include_if_exists" => {}
                Err((problem, _)) => return Err(problem),
            }
        }
        Ok(())
    }

    fn file(&self, path: &Path, depth: usize) -> Result<Source, (String, io::ErrorKind)> {
        let name = path.display();
        if depth >= DEPTH_MAX {
            let problem = format!("could not open file \"{name}\": maximum nesting depth exceeded");
            return Err((problem, io::ErrorKind::Other));
        }
        let text = self.machine.read(path);
        let text = text
            .map_err(|error| (format!("could not open file \"{name}\": {error}"), error.kind()))?;
        Ok(Source { file: Some(path.into()), text })
    }

    /// Returns the fields of a line.
    fn fields(&self, text: &str, place: &Place, depth: usize) -> Result<Vec<Field>, String> {
        let mut rest = text;
        let mut fields = Vec::new();
        loop {
            let mut field = Vec::new();
            loop {
                let (token, goes_on) = token(&mut rest);
                match token {
                    None => break,
                    Some(token) if is_list(&token) => {
                        field.extend(self.list(&token.text[1..], place, depth)?);
                    }
                    Some(token) => field.push(token),
                }
                if !goes_on {
                    break;
                }
            }
            let ends = rest.is_empty();
            if !field.is_empty() {
                fields.push(field);
            }
            if ends {
                return Ok(fields);
            }
        }
    }

    /// Returns the tokens in the file of a token `@file`.
    fn list(&self, name: &str, place: &Place, depth: usize) -> Result<Field, String> {
        let path = beside(place, name)?;
        let source = self.file(&path, depth).map_err(|(problem, _)| problem)?;
        let mut tokens = Vec::new();
        for (number, text) in joined(&source.text) {
            let place = Place { file: source.file.clone(), line: number };
            let fields = self.fields(&text, &place, depth + 1);
            let fields = fields.map_err(|problem| at(&place, &problem))?;
            tokens.extend(fields.into_iter().flatten());
        }
        Ok(tokens)
    }
}

fn is_list(token: &Token) -> bool {
    !token.quoted && token.text.len() > 1 && token.text.starts_with('@')
}

/// Returns the word and the target of a line that includes others.
fn inclusion(fields: &[Field]) -> Option<(&str, &str)> {
    let [word, target] = fields else { return None };
    let (word, target) = (word.first()?, target.first()?);
    let words = ["include", "include_if_exists", "include_dir"];
    words.contains(&word.text.as_str()).then_some((&word.text, &target.text))
}

/// Returns a path that may be relative to the file in which it is named.
fn beside(place: &Place, name: &str) -> Result<PathBuf, String> {
    let directory = place.file.as_deref().and_then(Path::parent);
    let path = directory.map_or_else(|| PathBuf::from(name), |directory| directory.join(name));
    if path.is_absolute() {
        return Ok(path);
    }
    Err(format!("expected an absolute path, found \"{name}\""))
}

/// Returns the files of a directory that `include_dir` reads, in their order: those whose names end
/// in `.conf` and do not begin with a dot.
fn configurations(files: io::Result<Vec<PathBuf>>) -> io::Result<Vec<PathBuf>> {
    let is_meant = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.ends_with(".conf") && !name.starts_with('.')
    };
    let mut files: Vec<_> = files?.into_iter().filter(is_meant).collect();
    files.sort();
    Ok(files)
}

/// Returns the lines of a text, each with the number of its first line. A backslash at the end of a
/// line joins the next one to it.
fn joined(text: &str) -> Vec<(usize, String)> {
    let mut lines = text.lines().enumerate();
    let mut found = Vec::new();
    while let Some((index, line)) = lines.next() {
        let mut whole = line.to_owned();
        let mut joint = 0;
        // A backslash before the joint belongs to a line that has been joined already.
        while whole.len() > joint && whole.ends_with('\\') {
            whole.pop();
            joint = whole.len();
            whole.push_str(lines.next().map_or("", |(_, next)| next));
        }
        found.push((index + 1, whole));
    }
    found
}

/// Takes the next token of a line, and whether a comma follows it. Leaves nothing behind a comment.
fn token(rest: &mut &str) -> (Option<Token>, bool) {
    let is_blank = |c: char| matches!(c, ' ' | '\t' | '\r');
    let begin = rest.trim_start_matches(|c| is_blank(c) || c == ',');
    let (mut text, mut quoted, mut saw_quote) = (String::new(), false, false);
    // Whether the last character was a quote within quotes: a second one stands for itself.
    let (mut in_quote, mut was_quote) = (false, false);
    for (at, c) in begin.char_indices() {
        if !in_quote && (is_blank(c) || c == ',') {
            *rest = &begin[at + 1..];
            let token = (saw_quote || !text.is_empty()).then_some(Token { text, quoted });
            return (token, c == ',');
        }
        if !in_quote && c == '#' {
            break;
        }
        if c != '"' || was_quote {
            text.push(c);
        }
        was_quote = in_quote && c == '"' && !was_quote;
        if c == '"' {
            in_quote = !in_quote;
            saw_quote = true;
            quoted |= text.is_empty();
        }
    }
    *rest = "";
    ((saw_quote || !text.is_empty()).then_some(Token { text, quoted }), false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::NoMachine;

    fn split(text: &str) -> String {
        let source = Source { file: None, text: text.to_owned() };
        let mut reader = Reader::new(&NoMachine);
        let shown = |token: &Token| {
            if token.quoted { format!("<{}>", token.text) } else { token.text.clone() }
        };
        let field = |field: &Field| field.iter().map(shown).collect::<Vec<_>>().join("+");
        let line = |line: Line| {
            let fields: Vec<_> = line.fields.iter().map(field).collect();
            format!("{}: {}", line.place.line, fields.join(" "))
        };
        let lines: Vec<_> = reader.lines(&source).into_iter().map(line).collect();
        assert_eq!(reader.problems, Vec::<String>::new());
        lines.join("\n")
    }

    /// The rules are those of `next_token` and `next_field_expand` in PostgreSQL's `hba.c`.
    #[test]
    fn lines_are_split_as_postgresql_does() {
        let table = [
            ("", ""),
            ("# nothing\n\n  \t\r\n", ""),
            ("local all all peer", "1: local all all peer"),
            ("a,b, c d", "1: a+b+c d"),
            ("a ,b", "1: a b"),
            ("a# comment", "1: a"),
            (",a,,b", "1: a+b"),
            ("\"all\" \"a b,c\" \"a\"\"b\"", "1: <all> <a b,c> <a\"b>"),
            ("a\"b c\"d", "1: ab cd"),
            ("\"#a\" \"\"", "1: <#a> <>"),
            ("\"open to the end", "1: <open to the end>"),
            ("a \\\nb\nc", "1: a b\n3: c"),
            ("a\\\nb\\\nc\nd", "1: abc\n4: d"),
            ("a \\\n\\\nb", "1: a b"),
            ("a\\", "1: a"),
            ("é,ü ö", "1: é+ü ö"),
            ("\"@a\"", "1: <@a>"),
            ("@", "1: @"),
        ];
        for (text, expected) in table {
            assert_eq!(split(text), expected, "{text:?}");
        }
    }
}
