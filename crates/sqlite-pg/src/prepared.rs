//! Statements that a client prepared, and portals made of them.

use std::sync::{Arc, Mutex, PoisonError};

use refrain_sqlite::{Connection, Parked};
use refrain_wire::frame::split_string;
use refrain_wire::tag::back;
use refrain_wire::write;

use crate::command::Command;
use crate::decode::{self, Decoded};
use crate::encode::Format;
use crate::failure::Failure;
use crate::shape::{Described, Formats, Shape, count};
use crate::translation_cache::TranslatedStatement;
use crate::types::Type;

/// A parameter of a prepared statement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameter {
    /// What the client is told, and how its bytes are read.
    pub(crate) oid: u32,
    /// What it is bound as: the client may send a text for a parameter that the text casts.
    pub(crate) is: Type,
}

/// A prepared statement.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// What SQLite gets.
    pub(crate) sql: String,
    /// Its hash.
    pub(crate) hash: u64,
    /// What the client sent.
    pub(crate) client: Arc<str>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) action: StatementAction,
    /// What the text means, where it is PostgreSQL's.
    pub(crate) translated: Option<Arc<TranslatedStatement>>,
    /// The types that the client said its parameters have.
    pub(crate) oids: Vec<u32>,
    /// The shape that the client was told, or that the first run had.
    described: Mutex<Option<Arc<Shape>>>,
}

/// What running a prepared statement comes to.
#[derive(Debug)]
pub(crate) enum StatementAction {
    /// There is no statement in the text.
    Nothing,
    /// It is answered here.
    Command(Command),
    /// SQLite runs it.
    Sql,
}

impl Prepared {
    /// A statement that SQLite runs as `sql`.
    pub(crate) fn run(
        sql: String,
        client: &str,
        parameters: Vec<Parameter>,
        translated: Option<Arc<TranslatedStatement>>,
        oids: &[u32],
    ) -> Arc<Self> {
        let plain = Self::new(sql, client, parameters, StatementAction::Sql);
        Arc::new(Self { translated, oids: oids.to_vec(), ..plain })
    }

    /// A statement that is answered here.
    pub(crate) fn answered(client: &str, action: StatementAction) -> Arc<Self> {
        Arc::new(Self::new(String::new(), client, Vec::new(), action))
    }

    fn new(sql: String, client: &str, parameters: Vec<Parameter>, action: StatementAction) -> Self {
        let (hash, client) = (refrain_sqlite::Text::new(&sql).hash(), client.into());
        let (translated, oids) = (None, Vec::new());
        Self {
            sql,
            hash,
            client,
            parameters,
            action,
            translated,
            oids,
            described: Mutex::default(),
        }
    }

    /// The text, for the cache.
    pub(crate) fn text(&self) -> refrain_sqlite::Text<'_> {
        refrain_sqlite::Text::with_hash(&self.sql, self.hash)
    }

    /// The client is told this shape.
    pub(crate) fn describe(&self, shape: Arc<Shape>) {
        *self.described.lock().unwrap_or_else(PoisonError::into_inner) = Some(shape);
    }

    /// The shape of this statement, compiled or running.
    pub(crate) fn shape(
        &self,
        statement: &mut impl Described,
        connection: &Connection,
    ) -> Arc<Shape> {
        statement.shape(connection, self.client.as_bytes(), self.translated.as_deref())
    }

    /// Whether the shape is known to the client.
    pub(crate) fn is_described(&self) -> bool {
        self.described.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Checks that a shape is what the client knows. As in PostgreSQL the first one counts also where nobody asked for it:
    /// a pooler may have told the client what another session said.
    ///
    /// # Errors
    /// 0A000 in the words on which drivers prepare anew.
    pub(crate) fn check(&self, shape: &Arc<Shape>) -> Result<(), Failure> {
        let mut described = self.described.lock().unwrap_or_else(PoisonError::into_inner);
        let known = described.get_or_insert_with(|| shape.clone());
        if Arc::ptr_eq(known, shape) || known.columns == shape.columns {
            return Ok(());
        }
        Err(Failure::stale_plan())
    }

    /// Appends the ParameterDescription.
    pub(crate) fn write_parameters(&self, out: &mut Vec<u8>) {
        write::message(out, back::PARAMETER_DESCRIPTION, |out| {
            count(out, self.parameters.len());
            for parameter in &self.parameters {
                out.extend_from_slice(&parameter.oid.to_be_bytes());
            }
        });
    }
}

/// A portal: a prepared statement with values for its parameters.
pub(crate) struct Portal {
    pub(crate) prepared: Arc<Prepared>,
    pub(crate) formats: Formats,
    /// The body of the Bind, for a statement that has to be begun again.
    pub(crate) bind: Vec<u8>,
    pub(crate) state: PortalState,
    /// Whether the client is owed a description, which comes with the first step.
    pub(crate) owes_description: bool,
}

/// How far a portal is.
pub(crate) enum PortalState {
    /// Bound, and not run.
    Bound(Option<Parked>),
    /// Stopped at a row limit; so many rows came.
    Suspended(Parked, u64),
    /// Ran to its end.
    Done,
}

impl PortalState {
    /// A run put aside behind so many rows.
    pub(crate) fn paused(parked: Parked, sent: u64) -> Self {
        match sent {
            0 => Self::Bound(Some(parked)),
            sent => Self::Suspended(parked, sent),
        }
    }
}

/// What stands behind the names in a Bind.
pub(crate) struct BindValues<'a> {
    formats: Formats,
    values: Vec<Option<&'a [u8]>>,
    pub(crate) results: Formats,
}

impl<'a> BindValues<'a> {
    /// Reads a whole body.
    ///
    /// # Errors
    /// 08P01.
    pub(crate) fn read(body: &'a [u8]) -> Result<Self, Failure> {
        let bad = || Failure::protocol("invalid message format");
        let (_, rest) = split_string(body).ok_or_else(bad)?;
        let (_, rest) = split_string(rest).ok_or_else(bad)?;
        let mut rest = rest;
        let formats = formats(&mut rest).ok_or_else(bad)??;
        let count = word(&mut rest).ok_or_else(bad)?;
        let mut values = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            values.push(value(&mut rest).ok_or_else(bad)?);
        }
        let results = self::formats(&mut rest).ok_or_else(bad)??;
        if !rest.is_empty() {
            return Err(bad());
        }
        Ok(Self { formats, values, results })
    }

    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// Checks the numbers of values and formats.
    ///
    /// # Errors
    /// 08P01.
    pub(crate) fn check(&self, prepared: &Prepared, name: &[u8]) -> Result<(), Failure> {
        let (given, wanted) = (self.len(), prepared.parameters.len());
        if given != wanted {
            return Err(Failure::protocol(format!(
                "bind message supplies {given} parameters, but prepared statement \"{}\" requires {wanted}",
                String::from_utf8_lossy(name)
            )));
        }
        if let Formats::Each(each) = &self.formats
            && each.len() != given
        {
            return Err(Failure::protocol(format!(
                "bind message has {} parameter formats but {given} parameters",
                each.len()
            )));
        }
        Ok(())
    }

    /// A value as it is bound.
    ///
    /// # Errors
    /// It is none of its type.
    pub(crate) fn get(&self, index: usize, parameter: &Parameter) -> Result<Decoded<'a>, Failure> {
        let Some(bytes) = self.values.get(index).copied().flatten() else {
            return Ok(Decoded::Null);
        };
        let sent = Type::of_oid(parameter.oid);
        match (self.formats.of(index), sent) {
            (Format::Text, _) => decode::text(bytes, parameter.is),
            // A text is the same in both formats; it is read as what it is cast to.
            (Format::Binary, Some(sent)) if sent.is_text() => decode::text(bytes, parameter.is),
            (Format::Binary, Some(sent)) => decode::binary(bytes, sent),
            (Format::Binary, None) => {
                let message = format!("values of type {} are not supported", parameter.oid);
                Err(Failure::unsupported(message).hint("send the value as text"))
            }
        }
    }
}

fn word(rest: &mut &[u8]) -> Option<u16> {
    let (word, after) = rest.split_first_chunk::<2>()?;
    *rest = after;
    Some(u16::from_be_bytes(*word))
}

fn formats(rest: &mut &[u8]) -> Option<Result<Formats, Failure>> {
    match word(rest)? {
        0 => Some(Ok(Formats::default())),
        1 => Some(Format::of_code(word(rest)?).map(Formats::All)),
        count => {
            let codes: Option<Vec<u16>> = (0..count).map(|_| word(rest)).collect();
            let each: Result<_, _> = codes?.into_iter().map(Format::of_code).collect();
            Some(each.map(Formats::Each))
        }
    }
}

fn value<'a>(rest: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    *rest = after;
    match i32::from_be_bytes(*length) {
        -1 => Some(None),
        length => {
            let (value, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            *rest = after;
            Some(Some(value))
        }
    }
}
