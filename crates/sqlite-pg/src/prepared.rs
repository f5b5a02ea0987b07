//! Prepared statements and portals.

use std::sync::{Arc, Mutex, PoisonError};

use refrain_pg_wire::frame::split_string;
use refrain_pg_wire::tag::back;
use refrain_pg_wire::write;
use refrain_sqlite::{Connection, Error, Parked, Run};

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
    /// The type's OID that the client gets, and by which its bytes are read.
    pub(crate) oid: u32,
    /// The type it is bound as: the client may send text for a parameter that the statement casts.
    pub(crate) is: Type,
}

/// A prepared statement.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The text for SQLite.
    pub(crate) sql: String,
    /// The hash of `sql`.
    pub(crate) hash: u64,
    /// The client's text.
    pub(crate) client: Arc<str>,
    pub(crate) parameters: Vec<Parameter>,
    /// The values of the text's literals, where they are SQLite's parameters; there are no others
    /// then.
    pub(crate) literals: Vec<Decoded<'static>>,
    pub(crate) action: StatementAction,
    /// The translation, if the text is PostgreSQL's dialect.
    pub(crate) translated: Option<Arc<TranslatedStatement>>,
    /// The types that the client gave its parameters.
    pub(crate) oids: Vec<u32>,
    /// The shape that the client got, or that the first run had.
    described: Mutex<Option<Arc<Shape>>>,
}

/// The effect of running a prepared statement.
#[derive(Debug)]
pub(crate) enum StatementAction {
    /// Nothing: the text has no statement.
    Nothing,
    /// The session answers it without SQLite.
    Command(Command),
    /// SQLite runs it.
    Sql,
}

impl Prepared {
    /// Makes a statement that SQLite runs as `sql`.
    pub(crate) fn run(
        sql: String,
        client: &str,
        parameters: Vec<Parameter>,
        literals: Vec<Decoded<'static>>,
        translated: Option<Arc<TranslatedStatement>>,
        oids: &[u32],
    ) -> Arc<Self> {
        let plain = Self::new(sql, client, parameters, StatementAction::Sql);
        Arc::new(Self { literals, translated, oids: oids.to_vec(), ..plain })
    }

    /// Makes a statement that the session answers without SQLite.
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
            literals: Vec::new(),
            action,
            translated,
            oids,
            described: Mutex::default(),
        }
    }

    /// Returns the text with its hash, for the statement cache.
    pub(crate) fn text(&self) -> refrain_sqlite::Text<'_> {
        refrain_sqlite::Text::with_hash(&self.sql, self.hash)
    }

    /// Remembers the shape that the client gets.
    pub(crate) fn describe(&self, shape: Arc<Shape>) {
        *self.described.lock().unwrap_or_else(PoisonError::into_inner) = Some(shape);
    }

    /// Returns the shape of this statement, compiled or running.
    ///
    /// # Errors
    /// The schema could not be read.
    pub(crate) fn shape(
        &self,
        statement: &mut impl Described,
        connection: &Connection,
    ) -> Result<Arc<Shape>, Error> {
        statement.shape(connection, self.client.as_bytes(), self.translated.as_deref())
    }

    /// Gives it the shape that the client knows of an older translation.
    pub(crate) fn known_as(self: Arc<Self>, older: &Self) -> Arc<Self> {
        older.described().into_iter().for_each(|shape| self.describe(shape));
        self
    }

    /// Checks a shape, if the client knows one.
    ///
    /// # Errors
    /// Those of [`Prepared::check`].
    pub(crate) fn check_known(&self, shape: &Arc<Shape>) -> Result<(), Failure> {
        if self.is_described() { self.check(shape) } else { Ok(()) }
    }

    /// Returns the shape that the client knows.
    fn described(&self) -> Option<Arc<Shape>> {
        self.described.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// True if the client knows the shape.
    pub(crate) fn is_described(&self) -> bool {
        self.described().is_some()
    }

    /// Checks that a shape is the one that the client knows. As in PostgreSQL the first shape
    /// counts even if the client never asked for it: a pooler may have told the client the shape
    /// from another session.
    ///
    /// # Errors
    /// 0A000 with PostgreSQL's message, on which drivers prepare again.
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
    /// The body of the Bind, for a statement that has to begin again.
    pub(crate) bind: Vec<u8>,
    pub(crate) state: PortalState,
    /// True if the client is owed a description, which comes with the first step.
    pub(crate) owes_description: bool,
}

/// The state of a portal.
pub(crate) enum PortalState {
    /// Bound, and not run yet.
    Bound(Option<Parked>),
    /// Stopped at a row limit, after this many rows.
    Suspended(Parked, u64),
    /// Ran to its end.
    Done,
}

impl PortalState {
    /// Returns the state of a portal parked after `sent` rows.
    pub(crate) fn paused(parked: Parked, sent: u64) -> Self {
        match sent {
            0 => Self::Bound(Some(parked)),
            sent => Self::Suspended(parked, sent),
        }
    }
}

/// Binds the values of a text's literals, where they are SQLite's parameters.
///
/// # Errors
/// SQLite's.
pub(crate) fn bind_literals(
    run: &mut Run<'_, 'static>,
    literals: &[Decoded<'_>],
) -> Result<(), Error> {
    literals.iter().zip(1..).try_for_each(|(value, index)| run.bind_copied(index, value.value()))
}

/// The values and formats of a Bind.
pub(crate) struct BindValues<'a> {
    formats: Formats,
    values: Vec<Option<&'a [u8]>>,
    pub(crate) results: Formats,
}

impl<'a> BindValues<'a> {
    /// Reads the body of a Bind.
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

    /// Returns the number of values.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// Checks that the numbers of values and formats fit the statement.
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

    /// Returns a value as it is bound.
    ///
    /// # Errors
    /// The bytes are no value of the parameter's type.
    pub(crate) fn get(&self, index: usize, parameter: &Parameter) -> Result<Decoded<'a>, Failure> {
        let Some(bytes) = self.values.get(index).copied().flatten() else {
            return Ok(Decoded::Null);
        };
        let sent = Type::of_oid(parameter.oid);
        match (self.formats.of(index), sent) {
            (Format::Text, _) => decode::text(bytes, parameter.is),
            // Text is the same in both formats; it is read as the type that the statement casts it
            // to.
            (Format::Binary, Some(sent)) if sent.is_text() => decode::text(bytes, parameter.is),
            (Format::Binary, Some(sent)) => decode::binary(bytes, sent),
            (Format::Binary, None)
                if matches!(parameter.is, Type::Enum(_) | Type::EnumArray(_)) =>
            {
                decode::binary(bytes, parameter.is)
            }
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
