//! COPY: what it asks for, and rows as lines of text or CSV.

use refrain_sql::lex::TokenKind;
use refrain_wire::tag::back;
use refrain_wire::write;

use crate::Value;
use crate::front::encode::{self, Unfit};
use crate::front::failure::{Failure, state};
use crate::front::shape::{Shape, count};
use crate::front::tokens::Tokens;
use crate::front::types::Type;
use crate::statement::Run;

/// The longest line that is taken.
const LINE_MAX: usize = 64 << 20;

/// How rows are written as lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    csv: bool,
    delimiter: u8,
    null: Vec<u8>,
    quote: u8,
    escape: u8,
    header: bool,
}

/// A COPY.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Copy {
    /// Into these columns of a table; all, if there are none.
    In { table: String, columns: Vec<String>, style: Style },
    /// What this query gives.
    Out { query: String, style: Style },
}

/// Rows on their way in.
pub(crate) struct CopyIn {
    style: Style,
    /// The INSERT that is run for each.
    pub(crate) insert: String,
    pub(crate) types: Vec<Type>,
    /// What came behind the last whole line.
    buffer: Vec<u8>,
    header: bool,
    /// Whether the mark of the end has come.
    ended: bool,
    pub(crate) rows: u64,
    /// Whether a simple query asked for it.
    pub(crate) simple: bool,
}

/// The fields of a line; `None` is NULL.
pub(crate) type Fields = Vec<Option<Vec<u8>>>;

impl Copy {
    /// Reads a COPY.
    ///
    /// # Errors
    /// 42601, or 0A000 for what is not done here.
    pub(crate) fn read(text: &str) -> Result<Self, Failure> {
        let mut tokens = Tokens::new(text.as_bytes());
        tokens.take();
        let syntax = || Failure::new(state::SYNTAX, "syntax error in COPY");
        let mut query = String::new();
        let (mut table, mut columns) = (String::new(), Vec::new());
        if tokens.kind() == Some(TokenKind::Open) {
            query = parenthesised(&mut tokens, text).ok_or_else(syntax)?;
        } else {
            table = tokens.take_name().ok_or_else(syntax)?;
            if tokens.take_kind(TokenKind::Dot) {
                table = tokens.take_name().ok_or_else(syntax)?;
            }
            if tokens.take_kind(TokenKind::Open) {
                columns = names(&mut tokens).ok_or_else(syntax)?;
            }
        }
        let out = tokens.take_word(&["to"]);
        let into = !out && tokens.take_word(&["from"]) && query.is_empty();
        if !out && !into {
            return Err(syntax());
        }
        if !tokens.take_word(&[if out { "stdout" } else { "stdin" }]) {
            let failure = Failure::unsupported("COPY with files and programs is not supported");
            return Err(failure.hint("write COPY … FROM STDIN or TO STDOUT"));
        }
        let style = Style::read(&mut tokens)?;
        if !tokens.is_end() {
            return Err(syntax());
        }
        if !out {
            return Ok(Self::In { table, columns, style });
        }
        if query.is_empty() {
            let columns: Vec<_> = columns.iter().map(|name| quoted(name)).collect();
            let list = if columns.is_empty() { "*".to_owned() } else { columns.join(", ") };
            query = format!("SELECT {list} FROM {}", quoted(&table));
        }
        Ok(Self::Out { query, style })
    }
}

/// A name within quotes.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn parenthesised(tokens: &mut Tokens<'_>, text: &str) -> Option<String> {
    let start = tokens.take()?.end as usize;
    let mut depth = 1;
    while let Some(token) = tokens.take() {
        match token.kind {
            TokenKind::Open => depth += 1,
            TokenKind::Close => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return text.get(start..token.start as usize).map(str::to_owned);
        }
    }
    None
}

fn names(tokens: &mut Tokens<'_>) -> Option<Vec<String>> {
    let mut names = Vec::new();
    loop {
        names.push(tokens.take_name()?);
        if tokens.take_kind(TokenKind::Close) {
            return Some(names);
        }
        tokens.take_kind(TokenKind::Comma).then_some(())?;
    }
}

impl Style {
    fn text() -> Self {
        let null = b"\\N".to_vec();
        Self { csv: false, delimiter: b'\t', null, quote: b'"', escape: b'"', header: false }
    }

    fn csv() -> Self {
        Self { csv: true, delimiter: b',', null: Vec::new(), ..Self::text() }
    }

    /// Reads the options, in parentheses or in the old way without.
    fn read(tokens: &mut Tokens<'_>) -> Result<Self, Failure> {
        tokens.take_word(&["with"]);
        let listed = tokens.take_kind(TokenKind::Open);
        let mut style = Self::text();
        let mut given = Vec::new();
        while !tokens.is_end() && !tokens.take_kind(TokenKind::Close) {
            let option = tokens.take_name().unwrap_or_default();
            let _ = tokens.take_word(&["as"]);
            match option.as_str() {
                "csv" => style = Self::csv(),
                "binary" => return Err(binary()),
                "format" => match tokens.take_name().or_else(|| tokens.take_text()).as_deref() {
                    Some("csv") => style = Self::csv(),
                    Some("text") => {}
                    Some("binary") => return Err(binary()),
                    _ => {
                        return Err(Failure::new(
                            state::BAD_PARAMETER_VALUE,
                            "unknown COPY format",
                        ));
                    }
                },
                "header" => {
                    let off = tokens.take_word(&["false", "off"]);
                    let _ = tokens.take_word(&["true", "on", "match"]);
                    given.push(("header", if off { String::new() } else { "on".to_owned() }));
                }
                "delimiter" | "null" | "quote" | "escape" | "encoding" => {
                    let value = tokens.take_text();
                    let bad = || Failure::new(state::SYNTAX, "a COPY option needs a text");
                    given.push((known(&option), value.ok_or_else(bad)?));
                }
                other => {
                    let message = format!("COPY option \"{other}\" is not supported");
                    return Err(Failure::unsupported(message));
                }
            }
            if listed {
                tokens.take_kind(TokenKind::Comma);
            }
        }
        given.into_iter().try_for_each(|(option, value)| style.set(option, &value))?;
        Ok(style)
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), Failure> {
        let byte = || match value.as_bytes() {
            [byte] if byte.is_ascii() && !b"\r\n".contains(byte) => Ok(*byte),
            _ => Err(Failure::unsupported(format!("COPY {option} must be a single character"))),
        };
        match option {
            "header" => self.header = !value.is_empty(),
            "delimiter" => self.delimiter = byte()?,
            "null" => self.null = value.as_bytes().to_vec(),
            "quote" => {
                if self.escape == self.quote {
                    self.escape = byte()?;
                }
                self.quote = byte()?;
            }
            "escape" => self.escape = byte()?,
            _ if value.eq_ignore_ascii_case("utf8") || value.eq_ignore_ascii_case("utf-8") => {}
            _ => return Err(Failure::unsupported("COPY in encodings but UTF8 is not supported")),
        }
        Ok(())
    }

    /// Appends a CopyInResponse or CopyOutResponse.
    fn respond(tag: u8, columns: usize, out: &mut Vec<u8>) {
        write::message(out, tag, |out| {
            out.push(0); // as text
            count(out, columns);
            (0..columns).for_each(|_| out.extend_from_slice(&[0, 0]));
        });
    }

    /// Begins to send rows.
    pub(crate) fn begin(&self, out: &mut Vec<u8>, shape: &Shape) {
        Self::respond(back::COPY_OUT_RESPONSE, shape.columns.len(), out);
        if self.header {
            let names = shape.columns.iter().map(|column| column.name.as_bytes());
            write::message(out, back::COPY_DATA, |out| {
                names.enumerate().for_each(|(index, name)| self.field(out, index, Some(name)));
                out.push(b'\n');
            });
        }
    }

    /// Sends a row.
    ///
    /// # Errors
    /// A value does not fit its column.
    pub(crate) fn row(
        &self,
        out: &mut Vec<u8>,
        run: &Run<'_, 'static>,
        shape: &Shape,
        number: u64,
    ) -> Result<(), Failure> {
        let mut line = Vec::new();
        let mut text = Vec::new();
        for (index, column) in shape.columns.iter().enumerate() {
            let value = run.column(index);
            text.clear();
            if matches!(value, Value::Null) {
                self.field(&mut line, index, None);
                continue;
            }
            encode::text(&mut text, &value, column.is)
                .map_err(|Unfit| Unfit::tell(&value, column.is, &column.name, number))?;
            self.field(&mut line, index, Some(&text));
        }
        line.push(b'\n');
        write::message(out, back::COPY_DATA, |out| out.extend_from_slice(&line));
        Ok(())
    }

    fn field(&self, out: &mut Vec<u8>, index: usize, value: Option<&[u8]>) {
        if index > 0 {
            out.push(self.delimiter);
        }
        let Some(value) = value else { return out.extend_from_slice(&self.null) };
        if !self.csv {
            return value.iter().for_each(|byte| self.escaped(out, *byte));
        }
        let special = [self.delimiter, self.quote, b'\n', b'\r'];
        let bare = value != self.null
            && value != b"\\."
            && !value.iter().any(|byte| special.contains(byte));
        if bare {
            return out.extend_from_slice(value);
        }
        out.push(self.quote);
        for byte in value {
            if *byte == self.quote || *byte == self.escape {
                out.push(self.escape);
            }
            out.push(*byte);
        }
        out.push(self.quote);
    }

    fn escaped(&self, out: &mut Vec<u8>, byte: u8) {
        match byte {
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\\' => out.extend_from_slice(b"\\\\"),
            byte if byte == self.delimiter => out.extend_from_slice(&[b'\\', byte]),
            byte => out.push(byte),
        }
    }

    /// Where the first line of some bytes ends, behind its newline; `None` if it has not all come.
    fn line_end(&self, bytes: &[u8]) -> Option<usize> {
        let mut quoted = false;
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            match byte {
                b'\n' if !quoted => return Some(at),
                b'\\' if !self.csv => at += 1,
                byte if self.csv && quoted && byte == self.escape && self.escape != self.quote => {
                    at += 1
                }
                byte if self.csv && byte == self.quote => quoted = !quoted,
                _ => {}
            }
        }
        None
    }

    fn fields(&self, line: &[u8]) -> Fields {
        if self.csv { self.csv_fields(line) } else { self.text_fields(line) }
    }

    fn text_fields(&self, line: &[u8]) -> Fields {
        let mut fields = Vec::new();
        let (mut field, mut raw) = (Vec::new(), Vec::new());
        let mut bytes = line.iter().copied();
        loop {
            let byte = bytes.next();
            match byte {
                Some(b'\\') => {
                    raw.push(b'\\');
                    let Some(escaped) = bytes.next() else { continue };
                    raw.push(escaped);
                    field.push(match escaped {
                        b'n' => b'\n',
                        b'r' => b'\r',
                        b't' => b'\t',
                        b'b' => 8,
                        b'f' => 12,
                        b'v' => 11,
                        other => other,
                    });
                }
                Some(byte) if byte != self.delimiter => {
                    raw.push(byte);
                    field.push(byte);
                }
                _ => {
                    let field = std::mem::take(&mut field);
                    let null = std::mem::take(&mut raw) == self.null;
                    fields.push((!null).then_some(field));
                    if byte.is_none() {
                        return fields;
                    }
                }
            }
        }
    }

    fn csv_fields(&self, line: &[u8]) -> Fields {
        let mut fields = Vec::new();
        let mut field = Vec::new();
        let (mut inside, mut was_quoted) = (false, false);
        let mut bytes = line.iter().copied().peekable();
        loop {
            let byte = bytes.next();
            match byte {
                Some(byte)
                    if inside
                        && byte == self.escape
                        && bytes
                            .peek()
                            .is_some_and(|next| *next == self.quote || *next == self.escape) =>
                {
                    field.extend(bytes.next());
                }
                Some(byte) if byte == self.quote => {
                    inside = !inside;
                    was_quoted = true;
                }
                Some(byte) if inside || byte != self.delimiter => field.push(byte),
                _ => {
                    let field = std::mem::take(&mut field);
                    let null = !std::mem::take(&mut was_quoted) && field == self.null;
                    fields.push((!null).then_some(field));
                    if byte.is_none() {
                        return fields;
                    }
                }
            }
        }
    }
}

fn known(option: &str) -> &'static str {
    let options = ["delimiter", "null", "quote", "escape"];
    options.into_iter().find(|known| *known == option).unwrap_or("encoding")
}

fn binary() -> Failure {
    Failure::unsupported("COPY in binary format is not supported")
        .hint("use the text or csv format")
}

impl CopyIn {
    /// Begins to take rows, and says so.
    pub(crate) fn begin(
        style: Style,
        insert: String,
        types: Vec<Type>,
        simple: bool,
        out: &mut Vec<u8>,
    ) -> Self {
        Style::respond(back::COPY_IN_RESPONSE, types.len(), out);
        let header = style.header;
        Self { style, insert, types, buffer: Vec::new(), header, ended: false, rows: 0, simple }
    }

    /// Takes what came, and gives the lines that are whole. `last` says that nothing more comes.
    ///
    /// # Errors
    /// 22P04: a line has too many fields or too few, or is too long.
    pub(crate) fn take(&mut self, data: &[u8], last: bool) -> Result<Vec<Fields>, Failure> {
        self.buffer.extend_from_slice(data);
        let mut rows = Vec::new();
        let mut at = 0;
        loop {
            let rest = self.buffer.get(at..).unwrap_or_default();
            let end = match self.style.line_end(rest) {
                Some(end) => end,
                None if last && !rest.is_empty() => rest.len(),
                None => break,
            };
            let line = rest.get(..end).unwrap_or_default();
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            at += end;
            self.ended |= line == b"\\.";
            if self.ended || std::mem::take(&mut self.header) {
                continue;
            }
            let fields = self.style.fields(line);
            self.rows += 1;
            if fields.len() != self.types.len() {
                let message = format!(
                    "COPY line {} has {} fields and not {}",
                    self.rows,
                    fields.len(),
                    self.types.len()
                );
                return Err(Failure::new(state::BAD_COPY, message));
            }
            rows.push(fields);
        }
        self.buffer.drain(..at);
        if self.buffer.len() > LINE_MAX {
            return Err(Failure::new(state::BAD_COPY, "a COPY line is too long"));
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(rows: &[Fields]) -> Vec<Vec<Option<String>>> {
        let text = |field: &Option<Vec<u8>>| field.clone().map(|f| String::from_utf8(f).unwrap());
        rows.iter().map(|row| row.iter().map(text).collect()).collect()
    }

    fn taken(options: &str, data: &str) -> Vec<Vec<Option<String>>> {
        let Copy::In { style, .. } = Copy::read(&format!("COPY t FROM STDIN {options}")).unwrap()
        else {
            panic!();
        };
        let mut copy =
            CopyIn::begin(style, String::new(), vec![Type::Text; 2], true, &mut Vec::new());
        let mut rows = Vec::new();
        for byte in data.as_bytes() {
            rows.extend(copy.take(&[*byte], false).unwrap());
        }
        rows.extend(copy.take(b"", true).unwrap());
        texts(&rows)
    }

    fn row(a: &str, b: Option<&str>) -> Vec<Option<String>> {
        vec![Some(a.to_owned()), b.map(str::to_owned)]
    }

    #[test]
    fn lines_come_in_pieces() {
        assert_eq!(taken("", "a\\tb\t\\N\nc\td\n\\.\n"), [row("a\tb", None), row("c", Some("d"))]);
        let csv = "x,y\n\"a\"\"\nb\",\nc,\"\"\nd,e";
        let rows = [row("a\"\nb", None), row("c", Some("")), row("d", Some("e"))];
        assert_eq!(taken("WITH (FORMAT csv, HEADER)", csv), rows);
        assert_eq!(taken("CSV DELIMITER ';' NULL 'nil'", "a;nil\n"), [row("a", None)]);
    }

    #[test]
    fn what_is_asked_for() {
        let Copy::Out { query, .. } = Copy::read("copy public.t (a, \"B\") to stdout").unwrap()
        else {
            panic!();
        };
        assert_eq!(query, "SELECT \"a\", \"B\" FROM \"t\"");
        let Copy::Out { query, style } =
            Copy::read("COPY (select 1 as (x)) TO STDOUT (FORMAT csv)").unwrap()
        else {
            panic!();
        };
        assert_eq!((query.as_str(), style.csv), ("select 1 as (x)", true));
        for (text, sqlstate) in [
            ("COPY t FROM '/etc/passwd'", "0A000"),
            ("COPY t FROM STDIN BINARY", "0A000"),
            ("COPY t", "42601"),
            ("COPY (select 1) FROM STDIN", "42601"),
        ] {
            assert_eq!(Copy::read(text).unwrap_err().sqlstate, sqlstate, "{text}");
        }
    }
}
