//! COPY: reads its options, and rows as lines of text or CSV, or in binary.

mod binary;
mod lines;
mod table;

use refrain_pg_wire::tag::back;
use refrain_pg_wire::write;
use refrain_sql::lex::TokenKind;
use refrain_sqlite::{Run, Value};

use crate::encode::{self, Format, Unfit};
use crate::failure::{Failure, state};
use crate::shape::{Shape, count};
use crate::tokens::Tokens;
use crate::types::Type;

pub(crate) use table::CopiedTable;

/// The longest row that is accepted, in bytes.
const ROW_MAX: usize = 64 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyFormat {
    Text,
    Csv,
    Binary,
}

/// The format of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    kind: CopyFormat,
    delimiter: u8,
    null: Vec<u8>,
    quote: u8,
    escape: u8,
    header: Header,
}

/// The meaning of the first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Header {
    /// The first line is a row.
    No,
    /// The first line has names of columns, which are ignored.
    Yes,
    /// The first line has the names of the columns that are copied.
    Match,
}

/// A COPY.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Copy {
    /// Into these columns of a table; all of them if the list is empty.
    In { table: CopiedTable, columns: Vec<String>, style: Style },
    /// The rows of this query.
    Out { query: String, style: Style },
    /// From these columns of a table; all that are not generated if the list is empty.
    OutOf { table: CopiedTable, columns: Vec<String>, style: Style },
}

/// The target of rows: the INSERT that runs for each, with the types and names of its columns.
pub(crate) struct CopyTarget {
    pub(crate) insert: String,
    pub(crate) types: Vec<Type>,
    pub(crate) names: Vec<String>,
}

/// A COPY FROM STDIN in progress.
pub(crate) struct CopyIn {
    style: Style,
    /// The INSERT that runs for each row.
    pub(crate) insert: String,
    pub(crate) types: Vec<Type>,
    names: Vec<String>,
    /// The bytes after the last complete line.
    buffer: Vec<u8>,
    header: Header,
    /// True if the end mark has come.
    ended: bool,
    binary: binary::BinaryReader,
    pub(crate) rows: u64,
    /// True if a simple query began the COPY.
    pub(crate) simple: bool,
}

/// The fields of a line; `None` is NULL.
pub(crate) type Fields = Vec<Option<Vec<u8>>>;

impl Copy {
    /// Reads a COPY.
    ///
    /// # Errors
    /// 42601, or 0A000 for an option that is not supported.
    pub(crate) fn read(text: &str) -> Result<Self, Failure> {
        let mut tokens = Tokens::new(text.as_bytes());
        tokens.take();
        let syntax = || {
            Failure::new(state::SYNTAX, "syntax error in COPY")
                .hint("write COPY t (a, b) FROM STDIN WITH (FORMAT text), csv or binary")
        };
        let mut query = String::new();
        let (mut table, mut columns) = (CopiedTable::default(), Vec::new());
        if tokens.kind() == Some(TokenKind::Open) {
            query = parenthesised(&mut tokens, text).ok_or_else(syntax)?;
        } else {
            let first = tokens.take_name().ok_or_else(syntax)?;
            table = match tokens.take_kind(TokenKind::Dot) {
                true => CopiedTable::named(Some(&first), tokens.take_name().ok_or_else(syntax)?),
                false => CopiedTable::named(None, first),
            };
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
        if style.header == Header::Match {
            let failure = Failure::unsupported("cannot use \"match\" with HEADER in COPY TO");
            return Err(failure.hint("write HEADER"));
        }
        match query.is_empty() {
            true => Ok(Self::OutOf { table, columns, style }),
            false => Ok(Self::Out { query, style }),
        }
    }
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
        let kind = CopyFormat::Text;
        Self { kind, delimiter: b'\t', null, quote: b'"', escape: b'"', header: Header::No }
    }

    fn csv() -> Self {
        Self { kind: CopyFormat::Csv, delimiter: b',', null: Vec::new(), ..Self::text() }
    }

    fn binary() -> Self {
        Self { kind: CopyFormat::Binary, ..Self::text() }
    }

    /// Returns the format of its values.
    pub(crate) fn format(&self) -> Format {
        if self.kind == CopyFormat::Binary { Format::Binary } else { Format::Text }
    }

    /// Reads the options, in parentheses or in the old form without.
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
                "binary" => style = Self::binary(),
                "format" => match tokens.take_name().or_else(|| tokens.take_text()).as_deref() {
                    Some("csv") => style = Self::csv(),
                    Some("text") => {}
                    Some("binary") => style = Self::binary(),
                    _ => {
                        return Err(Failure::new(
                            state::BAD_PARAMETER_VALUE,
                            "unknown COPY format",
                        ));
                    }
                },
                "header" => given.push(("header", header(tokens, listed)?)),
                "delimiter" | "null" | "quote" | "escape" | "encoding" => {
                    let value = tokens.take_text();
                    let bad = || Failure::new(state::SYNTAX, "a COPY option needs a text");
                    given.push((known(&option), value.ok_or_else(bad)?));
                }
                other => {
                    let message = format!("COPY option \"{other}\" is not supported");
                    return Err(Failure::unsupported(message).hint(
                        "FORMAT, DELIMITER, NULL, HEADER, QUOTE, ESCAPE and ENCODING are supported; leave the others out",
                    ));
                }
            }
            if listed {
                tokens.take_kind(TokenKind::Comma);
            }
        }
        let lines_only = given.iter().find(|(option, _)| *option != "encoding");
        if let (Some((option, _)), CopyFormat::Binary) = (lines_only, style.kind) {
            let message = format!("cannot specify {} in BINARY mode", option.to_uppercase());
            return Err(Failure::new(state::SYNTAX, message));
        }
        given.into_iter().try_for_each(|(option, value)| style.set(option, &value))?;
        Ok(style)
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), Failure> {
        let byte = || match value.as_bytes() {
            [byte] if byte.is_ascii() && !b"\r\n".contains(byte) => Ok(*byte),
            _ => {
                let message = format!("COPY {option} must be a single one-byte character");
                Err(Failure::unsupported(message).hint("choose an ASCII character"))
            }
        };
        match option {
            "header" => {
                self.header = match value {
                    "match" => Header::Match,
                    "on" => Header::Yes,
                    _ => Header::No,
                }
            }
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
            _ => {
                return Err(Failure::unsupported("COPY in encodings but UTF8 is not supported")
                    .hint("convert the file to UTF8 first"));
            }
        }
        Ok(())
    }

    /// Appends a CopyInResponse or CopyOutResponse.
    fn respond(&self, tag: u8, columns: usize, out: &mut Vec<u8>) {
        let code = self.format().code().to_be_bytes();
        write::message(out, tag, |out| {
            out.push(code[1]);
            count(out, columns);
            (0..columns).for_each(|_| out.extend_from_slice(&code));
        });
    }

    /// Sends the CopyOutResponse and the header.
    pub(crate) fn begin(&self, out: &mut Vec<u8>, shape: &Shape) {
        self.respond(back::COPY_OUT_RESPONSE, shape.columns.len(), out);
        if self.header != Header::No {
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
        let mut row = Vec::new();
        match self.kind {
            CopyFormat::Binary => Self::binary_row(&mut row, run, shape, number)?,
            CopyFormat::Text | CopyFormat::Csv => self.line(&mut row, run, shape, number)?,
        }
        write::message(out, back::COPY_DATA, |out| out.extend_from_slice(&row));
        Ok(())
    }

    /// Sends the end, after `rows` rows.
    pub(crate) fn end(&self, out: &mut Vec<u8>, rows: u64) {
        if self.kind == CopyFormat::Binary {
            write::message(out, back::COPY_DATA, |out| {
                if rows == 0 {
                    binary::header(out);
                }
                out.extend_from_slice(&binary::END);
            });
        }
        write::bare(out, back::COPY_DONE);
    }

    /// Writes a row. The first one follows the header in one message: drivers look for it there.
    fn binary_row(
        row: &mut Vec<u8>,
        run: &Run<'_, 'static>,
        shape: &Shape,
        number: u64,
    ) -> Result<(), Failure> {
        if number == 1 {
            binary::header(row);
        }
        count(row, shape.columns.len());
        for (index, column) in shape.columns.iter().enumerate() {
            let value = run.column(index);
            encode::value(row, &value, column.is, Format::Binary)
                .map_err(|Unfit| Unfit::tell(&value, column.is, &column.name, number))?;
        }
        Ok(())
    }

    fn line(
        &self,
        line: &mut Vec<u8>,
        run: &Run<'_, 'static>,
        shape: &Shape,
        number: u64,
    ) -> Result<(), Failure> {
        let mut text = Vec::new();
        for (index, column) in shape.columns.iter().enumerate() {
            let value = run.column(index);
            text.clear();
            if matches!(value, Value::Null) {
                self.field(line, index, None);
                continue;
            }
            encode::text(&mut text, &value, column.is)
                .map_err(|Unfit| Unfit::tell(&value, column.is, &column.name, number))?;
            self.field(line, index, Some(&text));
        }
        line.push(b'\n');
        Ok(())
    }
}

/// Reads the value of HEADER: "on", "match", or an empty text for off.
fn header(tokens: &mut Tokens<'_>, listed: bool) -> Result<String, Failure> {
    if tokens.take_word(&["false", "off"]) {
        return Ok(String::new());
    }
    if tokens.take_word(&["match"]) {
        return Ok("match".to_owned());
    }
    let is_on = tokens.take_word(&["true", "on"]);
    let ends = !listed || matches!(tokens.kind(), Some(TokenKind::Comma | TokenKind::Close));
    match is_on || ends {
        true => Ok("on".to_owned()),
        false => Err(Failure::new(state::SYNTAX, "header requires a Boolean value or \"match\"")),
    }
}

fn known(option: &str) -> &'static str {
    let options = ["delimiter", "null", "quote", "escape"];
    options.into_iter().find(|known| *known == option).unwrap_or("encoding")
}

impl CopyIn {
    /// Begins a COPY FROM STDIN, and sends the CopyInResponse.
    pub(crate) fn begin(style: Style, into: CopyTarget, simple: bool, out: &mut Vec<u8>) -> Self {
        let CopyTarget { insert, types, names } = into;
        style.respond(back::COPY_IN_RESPONSE, types.len(), out);
        let header = style.header;
        let (buffer, binary) = (Vec::new(), binary::BinaryReader::default());
        let (ended, rows) = (false, 0);
        Self { style, insert, types, names, buffer, header, ended, binary, rows, simple }
    }

    /// Checks that the first line has the names of the columns.
    fn match_header(&self, line: &[u8]) -> Result<(), Failure> {
        let fields = self.style.fields(line)?;
        let bad = |message: String| Err(Failure::new(state::BAD_COPY, message));
        if fields.len() != self.names.len() {
            let (got, expected) = (fields.len(), self.names.len());
            return bad(format!(
                "wrong number of fields in header line: got {got}, expected {expected}"
            ));
        }
        for (index, (field, name)) in fields.iter().zip(&self.names).enumerate() {
            if field.as_deref() != Some(name.as_bytes()) {
                let got = field.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
                return bad(format!(
                    "column name mismatch in header line field {}: got \"{got}\", expected \"{name}\"",
                    index + 1
                ));
            }
        }
        Ok(())
    }

    /// Returns the format of the values in its rows.
    pub(crate) fn format(&self) -> Format {
        self.style.format()
    }

    /// Takes received data, and returns the complete rows. `last` is true at the end of the data.
    ///
    /// # Errors
    /// 22P04: a row has too many fields or too few, or is too long.
    pub(crate) fn take(&mut self, data: &[u8], last: bool) -> Result<Vec<Fields>, Failure> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.extend_from_slice(data);
        let mut rest = &buffer[..];
        let rows = match self.style.kind {
            CopyFormat::Binary => {
                let rows = self.binary.rows(&mut rest, self.types.len(), last)?;
                self.rows += rows.len() as u64;
                rows
            }
            CopyFormat::Text | CopyFormat::Csv => self.lines(&mut rest, last)?,
        };
        let used = buffer.len() - rest.len();
        buffer.drain(..used);
        if buffer.len() > ROW_MAX {
            return Err(Failure::new(state::BAD_COPY, "a COPY row is too long"));
        }
        self.buffer = buffer;
        Ok(rows)
    }

    /// Takes the complete lines off the front of some bytes.
    fn lines(&mut self, rest: &mut &[u8], last: bool) -> Result<Vec<Fields>, Failure> {
        let mut rows = Vec::new();
        loop {
            let end = match self.style.line_end(rest) {
                Some(end) => end,
                None if last && !rest.is_empty() => rest.len(),
                None => break,
            };
            let (line, behind) = rest.split_at_checked(end).unwrap_or((rest, b""));
            *rest = behind;
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            self.ended |= line == b"\\.";
            let header = std::mem::replace(&mut self.header, Header::No);
            if header == Header::Match && !self.ended {
                self.match_header(line)?;
            }
            if self.ended || header != Header::No {
                continue;
            }
            let fields = self.style.fields(line)?;
            self.rows += 1;
            if fields.len() != self.types.len() {
                let message = format!(
                    "COPY line {} has {} fields and not {}",
                    self.rows,
                    fields.len(),
                    self.types.len()
                );
                return Err(Failure::new(state::BAD_COPY, message)
                    .hint("each line has a field for each column"));
            }
            rows.push(fields);
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
        let (types, names) = (vec![Type::Text; 2], vec!["x".to_owned(), "y".to_owned()]);
        let into = CopyTarget { insert: String::new(), types, names };
        let mut copy = CopyIn::begin(style, into, true, &mut Vec::new());
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
        assert_eq!(taken("(FORMAT csv, HEADER match)", "x,y\n1,2\n"), [row("1", Some("2"))]);
        assert_eq!(taken("CSV DELIMITER ';' NULL 'nil'", "a;nil\n"), [row("a", None)]);
        assert_eq!(taken("", "\\101\\x42c\t\\x\n"), [row("ABc", Some("x"))]);
    }

    #[test]
    fn what_is_asked_for() {
        let Copy::OutOf { table, columns, .. } =
            Copy::read("copy public.t (a, \"B\") to stdout").unwrap()
        else {
            panic!();
        };
        assert_eq!(
            (table.sql().as_str(), columns),
            ("main.\"t\"", vec!["a".to_owned(), "B".to_owned()])
        );
        let Copy::Out { query, style } =
            Copy::read("COPY (select 1 as (x)) TO STDOUT (FORMAT csv)").unwrap()
        else {
            panic!();
        };
        assert_eq!((query.as_str(), style.kind), ("select 1 as (x)", CopyFormat::Csv));
        for (text, sqlstate) in [
            ("COPY t FROM '/etc/passwd'", "0A000"),
            ("COPY t FROM STDIN (FORMAT binary, NULL '')", "42601"),
            ("COPY t", "42601"),
            ("COPY t TO STDOUT (HEADER match)", "0A000"),
            ("COPY t FROM STDIN (HEADER perhaps)", "42601"),
            ("COPY (select 1) FROM STDIN", "42601"),
        ] {
            assert_eq!(Copy::read(text).unwrap_err().sqlstate, sqlstate, "{text}");
        }
    }
}
