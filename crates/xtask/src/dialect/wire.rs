//! A client of the simple protocol that keeps a server's answers with their types.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// The longest that a server may be silent.
const PATIENCE: Duration = Duration::from_secs(360);

/// The limit of an answer's rows, in bytes. Of a longer answer sums are kept.
const ROWS_MAX: usize = 4 << 20;

/// A connection.
pub(super) struct Wire {
    stream: TcpStream,
}

/// A server's answer to one statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// Names and types of the columns.
    pub(super) columns: Vec<(String, u32)>,
    pub(super) rows: Vec<Row>,
    /// Sums of the rows, if these were too long to be kept.
    pub(super) sums: Option<Sums>,
    pub(super) tag: String,
    pub(super) error: Option<Refusal>,
}

type Row = Vec<Option<Vec<u8>>>;

/// Hashes over all rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    /// A hash that depends on the order of the rows.
    ordered: u64,
    /// A hash that does not.
    pub(super) unordered: u64,
}

impl Sums {
    fn add(&mut self, row: &impl Hash) {
        let mut hasher = DefaultHasher::new();
        row.hash(&mut hasher);
        self.ordered = self.ordered.wrapping_mul(31).wrapping_add(hasher.finish());
        self.unordered = self.unordered.wrapping_add(hasher.finish());
    }
}

/// An error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) sqlstate: String,
    pub(super) message: String,
    pub(super) hint: String,
}

impl Answer {
    fn add(&mut self, row: Row, length: usize, most: usize) {
        if self.sums.is_none() && length > most {
            let mut sums = Sums::default();
            self.rows.drain(..).for_each(|row| sums.add(&row));
            self.sums = Some(sums);
        }
        match &mut self.sums {
            Some(sums) => sums.add(&row),
            None => self.rows.push(row),
        }
    }

    /// Returns the answer in words, with its first rows.
    pub(super) fn shown(&self) -> String {
        if let Some(Refusal { sqlstate, message, hint }) = &self.error {
            return format!("{sqlstate} {message} ({hint})");
        }
        let value = |value: &Option<Vec<u8>>| {
            value
                .as_ref()
                .map_or("NULL".to_owned(), |value| String::from_utf8_lossy(value).into_owned())
        };
        let rows =
            self.rows.iter().take(8).map(|row| row.iter().map(value).collect::<Vec<_>>().join("|"));
        format!("{:?} {:?} {}", self.tag, self.columns, rows.collect::<Vec<_>>().join(" / "))
    }
}

impl Wire {
    pub(super) fn open(port: u16, database: &str) -> Result<Wire> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let body = format!("user\0postgres\0database\0{database}\0\0");
        let length = u32::try_from(body.len() + 8)?;
        let mut start = length.to_be_bytes().to_vec();
        start.extend_from_slice(&196_608_u32.to_be_bytes());
        start.extend_from_slice(body.as_bytes());
        stream.write_all(&start)?;
        let mut wire = Wire { stream };
        let answer = wire.answer(None)?;
        match answer.error {
            None => Ok(wire),
            Some(error) => bail!("{error:?}"),
        }
    }

    /// Runs a text and returns the answer, up to ReadyForQuery.
    pub(super) fn query(&mut self, text: &str) -> Result<Answer> {
        self.copy(text, None)
    }

    /// Runs a text with rows for a COPY and returns the answer, up to ReadyForQuery.
    pub(super) fn copy(&mut self, text: &str, rows: Option<&[u8]>) -> Result<Answer> {
        let mut message = vec![b'Q'];
        message.extend_from_slice(&u32::try_from(text.len() + 5)?.to_be_bytes());
        message.extend_from_slice(text.as_bytes());
        message.push(0);
        self.stream.write_all(&message)?;
        self.answer(rows)
    }

    /// Sends the rows of a COPY when the server asks for them, or CopyFail if there are none.
    fn send_rows(&mut self, rows: Option<&[u8]>) -> Result<()> {
        let Some(rows) = rows else { return Ok(self.stream.write_all(&[b'f', 0, 0, 0, 5, 0])?) };
        let mut message = vec![b'd'];
        message.extend_from_slice(&u32::try_from(rows.len() + 4)?.to_be_bytes());
        message.extend_from_slice(rows);
        message.extend_from_slice(&[b'c', 0, 0, 0, 4]);
        Ok(self.stream.write_all(&message)?)
    }

    fn answer(&mut self, rows: Option<&[u8]>) -> Result<Answer> {
        let mut answer = Answer::default();
        let mut rows_length = 0;
        loop {
            let mut head = [0; 5];
            self.stream.read_exact(&mut head)?;
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
            let mut body = vec![0; length.saturating_sub(4)];
            self.stream.read_exact(&mut body)?;
            rows_length += if matches!(head[0], b'd' | b'D') { length } else { 0 };
            match head[0] {
                b'Z' => return Ok(answer),
                b'T' => answer.columns = columns(&body).context("a RowDescription")?,
                b'd' => answer.add(vec![Some(body)], rows_length, ROWS_MAX),
                b'D' => answer.add(row(&body).context("a DataRow")?, rows_length, ROWS_MAX),
                b'C' => answer.tag = text(&body),
                b'E' => answer.error = Some(error(&body)),
                b'G' => self.send_rows(rows)?,
                _ => {}
            }
        }
    }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn columns(body: &[u8]) -> Option<Vec<(String, u32)>> {
    let count = u16::from_be_bytes(body.get(..2)?.try_into().ok()?);
    let mut rest = &body[2..];
    let mut all = Vec::new();
    for _ in 0..count {
        let name = text(rest);
        rest = rest.get(name.len() + 1..)?;
        all.push((name, u32::from_be_bytes(rest.get(6..10)?.try_into().ok()?)));
        rest = rest.get(18..)?;
    }
    Some(all)
}

fn row(body: &[u8]) -> Option<Vec<Option<Vec<u8>>>> {
    let count = u16::from_be_bytes(body.get(..2)?.try_into().ok()?);
    let mut rest = &body[2..];
    let mut all = Vec::new();
    for _ in 0..count {
        let length = i32::from_be_bytes(rest.get(..4)?.try_into().ok()?);
        rest = &rest[4..];
        match usize::try_from(length) {
            Err(_) => all.push(None),
            Ok(length) => {
                all.push(Some(rest.get(..length)?.to_vec()));
                rest = &rest[length..];
            }
        }
    }
    Some(all)
}

fn error(body: &[u8]) -> Refusal {
    let field = |letter: u8| {
        let mut fields = body.split(|byte| *byte == 0);
        let found = fields.find(|field| field.first() == Some(&letter));
        found.map(|field| text(&field[1..])).unwrap_or_default()
    };
    Refusal { sqlstate: field(b'C'), message: field(b'M'), hint: field(b'H') }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_rows_that_are_too_many_there_are_sums() {
        let row = |number: usize| vec![Some(number.to_be_bytes().to_vec())];
        let answer = |order: &[usize]| {
            let mut answer = Answer::default();
            order.iter().enumerate().for_each(|(at, one)| answer.add(row(*one), at + 1, 2));
            answer
        };
        assert_eq!(answer(&[1, 2]).rows, [row(1), row(2)]);
        let (one, other) = (answer(&[1, 2, 3]), answer(&[2, 1, 3]));
        assert!(one.rows.is_empty() && one == answer(&[1, 2, 3]) && one != other);
        let unordered = |answer: &Answer| answer.sums.unwrap().unordered;
        assert_eq!(unordered(&one), unordered(&other));
        assert_ne!(unordered(&one), unordered(&answer(&[1, 2, 4])));
    }
}
