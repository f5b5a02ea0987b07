//! What types a client is told that the parameters of its statement have.

use refrain_sqlite::Connection;

use crate::infer::Inferred;
use crate::prepared::Parameter;
use crate::shape::DeclaredTables;
use crate::types::Type;

/// The parameters of a statement that was translated: what the client says, else what the text says, else text.
pub(super) fn translated_parameters(inferred: &[Option<Type>], oids: &[u32]) -> Vec<Parameter> {
    let count = inferred.len().max(oids.len());
    (0..count).map(|index| parameter(inferred.get(index).copied().flatten(), oids, index)).collect()
}

fn parameter(inferred: Option<Type>, oids: &[u32], index: usize) -> Parameter {
    let said = oids.get(index).copied().filter(|oid| *oid != 0 && *oid != Type::Unknown.oid());
    let sent = said.map(|oid| Type::of_oid(oid).unwrap_or(Type::Text));
    let oid = said.unwrap_or_else(|| inferred.unwrap_or(Type::Text).oid());
    // A text is read as what the text casts or compares it to.
    let is = match (sent, inferred) {
        (Some(sent), Some(inferred)) if sent.is_text() => inferred,
        (Some(sent), _) => sent,
        (None, inferred) => inferred.unwrap_or(Type::Text),
    };
    Parameter { oid, is }
}

/// The parameters: what the client says, else what the text says, else text.
pub(super) fn inferred_parameters(
    connection: &Connection,
    client: &str,
    count: usize,
    oids: &[u32],
) -> Vec<Parameter> {
    let inferred = match count {
        0 => Inferred::default(),
        _ => Inferred::read(client.as_bytes(), &DeclaredTables(connection)),
    };
    let count = count.max(oids.len());
    let of = |index: usize| inferred.parameters.get(index).copied().flatten();
    (0..count).map(|index| parameter(of(index), oids, index)).collect()
}
