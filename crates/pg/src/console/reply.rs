//! Commands for the program, and its replies.

/// The part of the reply to a command that the client needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyForm {
    /// Everything, as the reply to a Query: rows as text, behind their RowDescription.
    Whole,
    /// The columns of the rows. The command takes no effect.
    Columns,
    /// The same as for a Query but for the RowDescription. The client knows these columns, and
    /// has chosen a format for each.
    Rows(Vec<(ShownColumn, Format)>),
}

/// A format of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The output of the type's output function.
    Text,
    /// The output of the type's send function.
    Binary,
}

impl Format {
    /// Returns the code in messages.
    pub fn code(self) -> u16 {
        match self {
            Self::Text => 0,
            Self::Binary => 1,
        }
    }

    /// Returns the format with this code.
    pub(crate) fn of(code: u16) -> Option<Self> {
        [Self::Text, Self::Binary].into_iter().find(|format| format.code() == code)
    }
}

/// A column of the rows of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownColumn {
    /// Its name.
    pub name: String,
    /// The OID of its type.
    pub oid: u32,
    /// Bytes of a value; -1 for a varying number.
    pub size: i16,
}

/// The program's reply to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramReply {
    /// Messages to be sent as they are, up to but without ReadyForQuery.
    Messages(Vec<u8>),
    /// The columns of the rows that the command shows; none if it shows none.
    Columns(Vec<ShownColumn>),
    /// The ErrorResponse with which the command is refused.
    Refused(Vec<u8>),
}
