//! Commands that take effect in the session alone: those about transaction blocks, and about its
//! prepared statements.

/// A command about transaction blocks. Drivers send such commands around whatever they are told to
/// send. A block of the console is a status and nothing else: each command takes effect at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockCommand {
    pub(super) tag: &'static str,
    pub(super) block: BlockEffect,
}

/// The effect of a command on the session's transaction block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockEffect {
    Begins,
    Ends,
    /// There is a block behind the command if there was one before.
    Stays,
}

impl BlockCommand {
    /// Reads a text; `None` if it is no command about transaction blocks.
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        let mut words = words(text);
        let first = words.next()?;
        let is = |word: &str| first.eq_ignore_ascii_case(word.as_bytes());
        let mut has = |word: &[u8]| words.any(|other| other.eq_ignore_ascii_case(word));
        let (tag, block) = match () {
            () if is("BEGIN") => ("BEGIN", BlockEffect::Begins),
            () if is("START") && has(b"TRANSACTION") => ("START TRANSACTION", BlockEffect::Begins),
            () if is("COMMIT") || is("END") => ("COMMIT", BlockEffect::Ends),
            // ROLLBACK TO a savepoint does not end the block.
            () if is("ROLLBACK") && has(b"TO") => ("ROLLBACK", BlockEffect::Stays),
            () if is("ROLLBACK") || is("ABORT") => ("ROLLBACK", BlockEffect::Ends),
            () if is("SAVEPOINT") => ("SAVEPOINT", BlockEffect::Stays),
            () if is("RELEASE") => ("RELEASE", BlockEffect::Stays),
            () => return None,
        };
        Some(Self { tag, block })
    }
}

/// The statements that a command drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dropped<'a> {
    /// All, by DEALLOCATE ALL or DISCARD ALL.
    All,
    /// One, by DEALLOCATE.
    One(&'a [u8]),
}

impl<'a> Dropped<'a> {
    /// Reads a text; `None` if it drops no statement.
    pub(super) fn read(text: &'a [u8]) -> Option<Self> {
        let mut words = words(text);
        let (first, last) = (words.next()?, words.last()?);
        let is = |word: &[u8], keyword: &str| word.eq_ignore_ascii_case(keyword.as_bytes());
        match () {
            () if is(first, "DISCARD") && is(last, "ALL") => Some(Self::All),
            () if is(first, "DEALLOCATE") && is(last, "ALL") => Some(Self::All),
            () if is(first, "DEALLOCATE") => {
                let quoted = last.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\""));
                Some(Self::One(quoted.unwrap_or(last)))
            }
            () => None,
        }
    }
}

/// Returns the words of a command.
fn words(command: &[u8]) -> impl Iterator<Item = &[u8]> {
    command.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}
