//! The meaning of the tag of a CommandComplete.
//!
//! What: [`tag`] sorts the tags of PostgreSQL's `cmdtaglist.h` by what they mean to a pooler.
//!
//! Why: [`crate::scan()`] guesses what a text may do. Only the tag, which comes from the server,
//! says that it was done, even if the text hid it.
//!
//! What it does not do: distinguish SET LOCAL from SET, or ROLLBACK TO from ROLLBACK (the tags are
//! the same), or read row counts.

use crate::rules::SHAPELESS;

/// The effect of a command, by its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tag {
    /// SELECT, and a CREATE TABLE AS or SELECT INTO that copied rows.
    Select,
    /// INSERT.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
    /// Any other command: SHOW, FETCH, MERGE, EXPLAIN, SET CONSTRAINTS, CREATE ROLE, …
    Other,
    /// SET, in any form except SET CONSTRAINTS.
    Set,
    /// RESET.
    Reset,
    /// DISCARD ALL.
    DiscardAll,
    /// DISCARD TEMP.
    DiscardTemp,
    /// DEALLOCATE ALL.
    DeallocateAll,
    /// DEALLOCATE of one statement.
    Deallocate,
    /// PREPARE of a statement.
    Prepare,
    /// LISTEN.
    Listen,
    /// UNLISTEN, of one channel or all.
    Unlisten,
    /// DECLARE CURSOR, with HOLD or without.
    DeclareCursor,
    /// CLOSE ALL.
    CloseCursorAll,
    /// CREATE, ALTER, DROP or IMPORT of an object that may decide the columns of a result, or the
    /// end of a prepared transaction.
    Ddl,
    /// ALTER ROLE or ALTER DATABASE, which may set parameters with which sessions begin.
    Defaults,
    /// BEGIN or START TRANSACTION.
    Begin,
    /// COMMIT of a block that had not failed.
    Commit,
    /// ROLLBACK, also for a COMMIT in a failed block and for ROLLBACK TO.
    Rollback,
    /// PREPARE TRANSACTION.
    PrepareTransaction,
    /// SAVEPOINT.
    Savepoint,
    /// RELEASE of a savepoint.
    Release,
    /// LOAD.
    Load,
    /// COPY.
    Copy,
    /// DO.
    Do,
    /// CALL.
    Call,
}

/// Classifies a tag as it stands in CommandComplete, with its counts and without the NUL.
pub fn tag(tag: &[u8]) -> Tag {
    match tag {
        [b'S', b'E', b'L', b'E', b'C', b'T', ..] => Tag::Select,
        [b'I', b'N', b'S', b'E', b'R', b'T', ..] => Tag::Insert,
        [b'U', b'P', b'D', b'A', b'T', b'E', ..] => Tag::Update,
        [b'D', b'E', b'L', b'E', b'T', b'E', ..] => Tag::Delete,
        [b'C', b'O', b'P', b'Y', ..] => Tag::Copy,
        _ => command(tag),
    }
}

fn command(tag: &[u8]) -> Tag {
    match tag {
        b"BEGIN" | b"START TRANSACTION" => Tag::Begin,
        b"COMMIT" => Tag::Commit,
        b"ROLLBACK" => Tag::Rollback,
        b"SET" => Tag::Set,
        b"RESET" => Tag::Reset,
        b"SAVEPOINT" => Tag::Savepoint,
        b"RELEASE" => Tag::Release,
        b"ALTER ROLE" | b"ALTER DATABASE" => Tag::Defaults,
        b"DISCARD ALL" => Tag::DiscardAll,
        b"DISCARD TEMP" => Tag::DiscardTemp,
        b"DEALLOCATE ALL" => Tag::DeallocateAll,
        b"DEALLOCATE" => Tag::Deallocate,
        b"PREPARE" => Tag::Prepare,
        b"PREPARE TRANSACTION" => Tag::PrepareTransaction,
        b"LISTEN" => Tag::Listen,
        b"UNLISTEN" => Tag::Unlisten,
        b"DECLARE CURSOR" => Tag::DeclareCursor,
        b"CLOSE CURSOR ALL" => Tag::CloseCursorAll,
        b"LOAD" => Tag::Load,
        b"DO" => Tag::Do,
        b"CALL" => Tag::Call,
        // The changes of the prepared transaction are visible from now on, or its locks are gone.
        b"IMPORT FOREIGN SCHEMA" | b"COMMIT PREPARED" | b"ROLLBACK PREPARED" => Tag::Ddl,
        _ => definition(tag),
    }
}

/// True if a command with this tag may have changed what functions and triggers do, or which are
/// called.
pub fn changes_code(tag: &[u8]) -> bool {
    const WORDS: [&[u8]; 12] = [
        b"AGGREGATE",
        b"CAST",
        b"EVENT",
        b"EXTENSION",
        b"FUNCTION",
        b"OPERATOR",
        b"PREPARED",
        b"PROCEDURE",
        b"ROUTINE",
        b"RULE",
        b"TABLE",
        b"TRIGGER",
    ];
    let mut words = tag.split(|byte| *byte == b' ');
    let verb = words.next().unwrap_or_default();
    let object = words.next().unwrap_or_default();
    // A new table has no triggers yet.
    WORDS.contains(&object) && !(object == b"TABLE" && verb != b"ALTER")
}

/// Classifies CREATE, ALTER or DROP by the word after it.
fn definition(tag: &[u8]) -> Tag {
    let verbs = [&b"CREATE "[..], b"ALTER ", b"DROP "];
    let Some(object) = verbs.iter().find_map(|verb| tag.strip_prefix(*verb)) else {
        return Tag::Other;
    };
    let word = object.split(|byte| *byte == b' ').next().unwrap_or_default();
    let shapeless = SHAPELESS.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()));
    if shapeless { Tag::Other } else { Tag::Ddl }
}
