//! A regression script, split into statements as `psql` does, without `psql`'s own commands.

use std::fs;
use std::path::Path;

/// A statement, with the rows of a COPY.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) text: String,
    pub(super) rows: Option<Vec<u8>>,
}

/// Returns the statements of a script. `folder` has the files that its COPY commands read.
pub(super) fn statements(script: &str, folder: &Path) -> Vec<Statement> {
    let mut splitter = Splitter {
        rest: script,
        folder,
        file: String::new(),
        statement: String::new(),
        depth: 0,
        all: Vec::new(),
    };
    while let Some(letter) = splitter.rest.chars().next() {
        splitter.take(letter);
    }
    splitter.end();
    splitter.all
}

struct Splitter<'a> {
    rest: &'a str,
    folder: &'a Path,
    /// The value of psql's variable `filename`.
    file: String,
    statement: String,
    depth: usize,
    all: Vec<Statement>,
}

impl Splitter<'_> {
    fn take(&mut self, letter: char) {
        let rest = self.rest;
        if rest.starts_with("--") {
            let end = rest.find('\n').unwrap_or(rest.len());
            self.rest = &rest[end..];
        } else if rest.starts_with("/*") {
            let end = comment_end(rest);
            self.copy(end);
        } else if letter == '\'' || letter == '"' {
            let escapes = letter == '\'' && self.statement.ends_with(['E', 'e']);
            self.copy(quoted_end(rest, letter, escapes));
        } else if letter == '$' {
            self.copy(dollar_end(rest).unwrap_or(1));
        } else if letter == '\\' {
            self.backslash();
        } else if letter == ';' && self.depth == 0 {
            self.rest = &rest[1..];
            self.end();
        } else {
            match letter {
                '(' => self.depth += 1,
                ')' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            self.copy(letter.len_utf8());
        }
    }

    fn copy(&mut self, length: usize) {
        let (taken, rest) = self.rest.split_at(length);
        self.statement.push_str(taken);
        self.rest = rest;
    }

    /// Skips a command of `psql`'s together with the statement that it ends, since the command
    /// handles that statement's output.
    fn backslash(&mut self) {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        let file = self.rest[..end].strip_prefix("\\set filename :abs_srcdir '/");
        if let Some(file) = file.and_then(|file| file.trim_end().strip_suffix('\'')) {
            self.file = file.to_owned();
        }
        self.rest = &self.rest[end..];
        self.statement.clear();
        self.depth = 0;
    }

    /// Appends the finished statement, with the rows that follow COPY FROM STDIN or are in its
    /// file.
    fn end(&mut self) {
        let text = std::mem::take(&mut self.statement).trim().to_owned();
        self.depth = 0;
        let lower = text.to_ascii_lowercase();
        if lower.starts_with("copy") && lower.contains("from stdin") {
            let (start, end) = rows_behind(self.rest);
            let rows = Some(self.rest.as_bytes()[start..end].to_vec());
            self.rest = self.rest[end..].strip_prefix("\\.").unwrap_or(&self.rest[end..]);
            self.all.push(Statement { text, rows });
            return;
        }
        if lower.starts_with("copy") && lower.contains("from :'filename'") {
            let rows = fs::read(self.folder.join(&self.file)).ok();
            let text = text.replace(":'filename'", "stdin");
            self.all.push(Statement { text, rows });
            return;
        }
        // A text with a variable of psql's is left out.
        let variable = [":'", ":\"", ":{", "\\"].iter().any(|mark| text.contains(mark));
        if !text.is_empty() && (!variable || text.contains('\'')) {
            self.all.push(Statement { text, rows: None });
        }
    }
}

/// Returns the begin and end of the rows of a COPY FROM STDIN, after its semicolon.
fn rows_behind(text: &str) -> (usize, usize) {
    let start = text.find('\n').map_or(text.len(), |end| end + 1);
    let rows = &text[start..];
    let empty = rows.starts_with("\\.");
    let end = if empty { 0 } else { rows.find("\n\\.").map_or(rows.len(), |end| end + 1) };
    (start, start + end)
}

fn comment_end(text: &str) -> usize {
    let mut depth = 0;
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

fn quoted_end(text: &str, quote: char, escapes: bool) -> usize {
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        if escapes && letter == '\\' {
            letters.next();
        } else if letter == quote {
            return at + 1;
        }
    }
    text.len()
}

fn dollar_end(text: &str) -> Option<usize> {
    let tag_end = text[1..].find(|c: char| !c.is_alphanumeric() && c != '_')? + 1;
    let tag = text.get(..=tag_end).filter(|tag| tag.ends_with('$'))?;
    if text[1..].starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let body = text.get(tag.len()..)?;
    Some(body.find(tag).map_or(text.len(), |end| end + 2 * tag.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_split_as_psql_does() {
        let script = "select ';' ; -- no;\nselect $a$;$a$, (1;2);\n\\d t\ncopy t from stdin;\n1;2\n\\.\nselect E'\\';' \\gset\nx";
        let plain = |text: &str| Statement { text: text.to_owned(), rows: None };
        let copy =
            Statement { text: "copy t from stdin".to_owned(), rows: Some(b"1;2\n".to_vec()) };
        let expected = [plain("select ';'"), plain("select $a$;$a$, (1;2)"), copy, plain("x")];
        assert_eq!(statements(script, Path::new("")), expected);
    }
}
