//! The types of a statement's parameters, as the client gets them.

use refrain_sqlite::{Connection, Error};

use crate::infer::Inferred;
use crate::prepared::Parameter;
use crate::shape::inferred;
use crate::types::Type;

/// Returns the parameters of a translated statement. A type is the one that the client gave, else
/// the one that the text implies, else text.
pub(super) fn translated_parameters(inferred: &[Option<Type>], oids: &[u32]) -> Vec<Parameter> {
    let count = inferred.len().max(oids.len());
    (0..count).map(|index| parameter(inferred.get(index).copied().flatten(), oids, index)).collect()
}

fn parameter(inferred: Option<Type>, oids: &[u32], index: usize) -> Parameter {
    let given = oids.get(index).copied().filter(|oid| *oid != 0 && *oid != Type::Unknown.oid());
    let sent = given.map(|oid| Type::of_oid(oid).unwrap_or(Type::Text));
    let oid = given.unwrap_or_else(|| inferred.unwrap_or(Type::Text).oid());
    // A value sent as text is read as the type that the statement casts or compares it to.
    let is = match (sent, inferred) {
        (Some(sent), Some(inferred)) if sent.is_text() => inferred,
        (Some(sent), _) => sent,
        (None, inferred) => inferred.unwrap_or(Type::Text),
    };
    Parameter { oid, is }
}

/// Returns the parameters of a statement in SQLite's dialect, by the same rule.
///
/// # Errors
/// The schema could not be read.
pub(super) fn inferred_parameters(
    connection: &Connection,
    client: &str,
    count: usize,
    oids: &[u32],
) -> Result<Vec<Parameter>, Error> {
    let inferred = match count {
        0 => Inferred::default(),
        _ => inferred(client.as_bytes(), connection)?,
    };
    let count = count.max(oids.len());
    let of = |index: usize| inferred.parameters.get(index).copied().flatten();
    Ok((0..count).map(|index| parameter(of(index), oids, index)).collect())
}
