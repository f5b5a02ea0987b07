//! The relations of the catalog: each with its columns, and the query that returns its rows.
//!
//! The OID of a table, view or index is its row in SQLite's schema, above the OIDs of PostgreSQL's
//! own objects. What SQLite's schema has no row for has an OID made from that of its table.

mod empty;

mod ground;

mod standard;

mod system;

/// A relation: name, columns with their types, query. A query may use the relations before it.
pub(super) type Relation = (&'static str, &'static str, &'static str);

/// A relation without rows: name, and columns with their types.
pub(super) type EmptyRelation = (&'static str, &'static str);

/// The relations that have rows. Those whose names begin with `refrain_` serve the others.
pub(super) const RELATIONS: [&[Relation]; 3] =
    [ground::RELATIONS, system::RELATIONS, standard::RELATIONS];

pub(super) use empty::RELATIONS as EMPTY;
