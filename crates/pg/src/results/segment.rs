//! Segment: a client's input as one segment that runs one statement or several.

use refrain_pg_wire::Header;
use refrain_pg_wire::frame::HEADER_BYTES;
use refrain_pg_wire::front::{self as read, Bind, Parse};
use refrain_pg_wire::tag::front;
use refrain_sql::moments::{Suspects, names_moment};

/// Most statements of a segment whose reply is kept.
const SEVERAL_MAX: usize = 100;

/// A segment that runs statements, and does nothing else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'a> {
    pub(crate) form: Form<'a>,
    /// Its bytes.
    pub(crate) bytes: usize,
}

/// The messages of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form<'a> {
    /// A query string.
    Query(&'a [u8]),
    /// Perhaps a Parse of the unnamed statement, then a Bind of the unnamed portal, perhaps a
    /// Describe of it, an Execute without a limit of rows, and a Sync.
    Extended {
        /// The body of the Parse behind the name, if there is one.
        parse: Option<&'a [u8]>,
        /// The name of the statement.
        name: &'a [u8],
        /// The body of the Bind behind the names: formats and values.
        values: &'a [u8],
        /// Whether the client asks for the columns.
        describes: bool,
    },
    /// Several of these under one Sync: a pipeline.
    Several(Several<'a>),
}

impl Form<'_> {
    /// Returns how many statements it runs.
    pub(crate) fn statements(&self) -> usize {
        match self {
            Self::Query(_) | Self::Extended { .. } => 1,
            Self::Several(several) => several.count,
        }
    }
}

/// Several statements under one Sync.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Several<'a> {
    /// The messages up to the Sync.
    messages: &'a [u8],
    /// How many statements they run.
    pub(crate) count: usize,
    /// Whether the first message is a Parse.
    pub(crate) parses_first: bool,
}

impl<'a> Several<'a> {
    /// Iterates over the statements, each as a [`Form::Extended`].
    pub(crate) fn parts(self) -> impl Iterator<Item = Form<'a>> {
        let mut rest = Messages { input: self.messages, at: 0 };
        std::iter::from_fn(move || {
            let first = rest.next()?;
            rest.part(first)
        })
    }
}

impl<'a> Segment<'a> {
    /// Reads the first segment of a client's input; `None` if it is not whole, or does something
    /// else than to run statements.
    #[inline]
    pub(crate) fn read(input: &'a [u8]) -> Option<Self> {
        let mut rest = Messages { input, at: 0 };
        let first = rest.next()?;
        let form = match first {
            (front::QUERY, body) => Form::Query(read::query_text(body).ok()?),
            first => {
                let part = rest.part(first)?;
                match rest.next()? {
                    (front::SYNC, []) => part,
                    next => rest.several(part, next)?,
                }
            }
        };
        Some(Self { form, bytes: rest.at })
    }
}

/// The messages of a client's input that have arrived in full.
struct Messages<'a> {
    input: &'a [u8],
    at: usize,
}

impl<'a> Messages<'a> {
    /// Takes the next message: its tag and its body.
    #[inline]
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let rest = self.input.get(self.at..)?;
        let header = Header::parse(rest).ok()??;
        let body = rest.get(HEADER_BYTES..header.message_bytes())?;
        self.at += header.message_bytes();
        Some((header.tag, body))
    }

    /// Reads the messages that run one statement, of which this is the first.
    #[inline]
    fn part(&mut self, (tag, body): (u8, &'a [u8])) -> Option<Form<'a>> {
        match tag {
            front::BIND => self.bound(None, body),
            front::PARSE => {
                let parse = Parse::read(body).ok().filter(|parse| parse.name.is_empty())?;
                let (_, bind) = self.next().filter(|(tag, _)| *tag == front::BIND)?;
                self.bound(Some(parse.tail), bind)
            }
            _ => None,
        }
    }

    /// Reads the messages behind a Bind up to the Execute.
    #[inline]
    fn bound(&mut self, parse: Option<&'a [u8]>, body: &'a [u8]) -> Option<Form<'a>> {
        let bind = Bind::read(body, true).ok()??;
        let named = bind.portal.is_empty() && (parse.is_none() || bind.statement.is_empty());
        let values = &body[bind.names_bytes()..];
        let (mut tag, mut body) = self.next()?;
        let describes = tag == front::DESCRIBE;
        if describes {
            if body != b"P\0" {
                return None;
            }
            (tag, body) = self.next()?;
        }
        // A limit of rows would leave the rest of the portal at a server.
        let runs = tag == front::EXECUTE && *body == [0; 5];
        (named && runs).then_some(Form::Extended { parse, name: bind.statement, values, describes })
    }

    /// Reads further statements up to the Sync. `next` is the first message behind the first one.
    #[cold]
    fn several(&mut self, first: Form<'a>, mut next: (u8, &'a [u8])) -> Option<Form<'a>> {
        let Form::Extended { parse, .. } = first else { return None };
        let (parses_first, mut has_parsed) = (parse.is_some(), parse.is_some());
        for count in 1..=SEVERAL_MAX {
            if let (front::SYNC, []) = next {
                let messages = &self.input[..self.at - HEADER_BYTES];
                return Some(Form::Several(Several { messages, count, parses_first }));
            }
            let Form::Extended { parse, name, .. } = self.part(next)? else { return None };
            // The unnamed statement is that of an earlier Parse, and not the client's own.
            if has_parsed && parse.is_none() && name.is_empty() {
                return None;
            }
            has_parsed |= parse.is_some();
            next = self.next()?;
        }
        None
    }
}

/// True if a value of a Bind for one of the suspects may be read as a moment that depends on the
/// present, or cannot be read since the body is malformed. `values` is the body behind the names.
#[inline]
pub(crate) fn binds_moment(values: &[u8], suspects: Suspects) -> bool {
    let Some((count, rest)) = bound_values(values) else { return true };
    suspects.has_any(count) && binds_no_moment(count, rest, suspects).is_none()
}

/// Returns the number of values of a Bind, and the bytes of the values.
#[inline]
fn bound_values(values: &[u8]) -> Option<(usize, &[u8])> {
    let (formats, rest) = values.split_first_chunk::<2>()?;
    let rest = rest.get(2 * usize::from(u16::from_be_bytes(*formats))..)?;
    let (count, rest) = rest.split_first_chunk::<2>()?;
    Some((usize::from(u16::from_be_bytes(*count)), rest))
}

fn binds_no_moment(count: usize, mut rest: &[u8], suspects: Suspects) -> Option<()> {
    for place in 0..count {
        let (length, value) = rest.split_first_chunk::<4>()?;
        rest = value;
        // A null has the length -1.
        if let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) {
            if suspects.has(place) && names_moment(value.get(..length)?) {
                return None;
            }
            rest = &value[length..];
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_pg_wire::write;

    fn bind(values: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        write::message(&mut out, front::BIND, |out| {
            out.extend_from_slice(b"\0s\0");
            out.extend_from_slice(values);
        });
        out
    }

    #[test]
    fn a_segment_that_runs_one_statement() {
        let mut input = bind(&[0; 6]);
        write::describe_portal(&mut input, b"");
        write::execute(&mut input, b"");
        write::sync(&mut input);
        let bytes = input.len();
        for cut in 0..bytes {
            assert!(Segment::read(&input[..cut]).is_none());
        }
        write::query(&mut input, b"select 1");
        let segment = Segment::read(&input).unwrap();
        assert_eq!(segment.bytes, bytes);
        assert!(matches!(segment.form, Form::Extended { name: b"s", describes: true, .. }));
        let query = Segment::read(&input[bytes..]).unwrap();
        assert!(matches!(query.form, Form::Query(b"select 1")));
    }

    #[test]
    fn a_segment_that_runs_several_statements() {
        let execute = |input: &mut Vec<u8>| write::execute(input, b"");
        let mut input = bind(&[0; 6]);
        execute(&mut input);
        write::parse(&mut input, b"", b"select 1\0\0\0");
        write::message(&mut input, front::BIND, |out| out.extend_from_slice(&[0; 8]));
        write::describe_portal(&mut input, b"");
        execute(&mut input);
        let open = input.clone();
        write::sync(&mut input);
        for cut in 0..input.len() {
            assert!(Segment::read(&input[..cut]).is_none());
        }
        let segment = Segment::read(&input).unwrap();
        assert_eq!(segment.bytes, input.len());
        let Form::Several(several) = segment.form else { panic!("{segment:?}") };
        assert_eq!((several.count, several.parses_first), (2, false));
        let parts: Vec<_> = several.parts().collect();
        assert!(matches!(parts[0], Form::Extended { parse: None, name: b"s", .. }));
        assert!(matches!(parts[1], Form::Extended { parse: Some(_), describes: true, .. }));
        assert_eq!(parts.len(), 2);
        // A Bind of the unnamed statement that the segment itself has parsed.
        let mut own = open;
        write::message(&mut own, front::BIND, |out| out.extend_from_slice(&[0; 8]));
        execute(&mut own);
        write::sync(&mut own);
        assert!(Segment::read(&own).is_none());
    }

    #[test]
    fn values_that_name_a_moment() {
        let value = |text: &[u8]| {
            let length = u32::try_from(text.len()).unwrap().to_be_bytes();
            [&[0, 0, 0, 2, 0xff, 0xff, 0xff, 0xff][..], &length, text, &[0, 0]].concat()
        };
        let (all, none) = (Suspects::of([], false), Suspects::of([23, 23], false));
        assert!(binds_moment(&value(b" Today"), all));
        assert!(!binds_moment(&value(b" Today"), none));
        assert!(!binds_moment(&value(b"yes"), all));
        assert!(binds_moment(&value(b"yes")[..10], all));
    }
}
