//! Commands that no library sends, and those that few do.

use super::source::{Draft, Generator};
use crate::command::{Command, Execute};

/// The handle of a statement that was never prepared.
const NEVER: u32 = 0x00FF_FFFF;

/// Payloads that servers answer with one packet.
const RAW: &[&[u8]] = &[
    b"",
    b"\x00",
    b"\x05",
    b"\x0f",
    b"\x1d",
    b"\x1dx",
    b"\x80",
    b"\x17",
    b"\x17\x01\0",
    b"\x1b\x05\0",
    b"\x16",
    b"\x0e and more",
    b"\x1f and more",
];

impl Generator {
    /// Appends an odd command.
    pub(crate) fn odd(&mut self, draft: &mut Draft<'_>) {
        let command = match self.rng.below(11) {
            0 => Command::Raw(self.rng.pick(RAW).to_vec()),
            1 => Command::Statistics,
            2 | 3 => Command::Ping,
            4 => Command::FieldList(self.fill(draft.at, "{c}t")),
            5 => Command::FieldList("nowhere".to_owned()),
            6 => Command::Reset(NEVER),
            7 => Command::Close(NEVER),
            8 => Command::Fetch(NEVER, 3),
            9 => Command::LongData(NEVER, 0, b"data".to_vec()),
            _ => Command::Execute(Execute {
                handle: NEVER,
                cursor: 0,
                has_types: false,
                values: Vec::new(),
                cut: 0,
            }),
        };
        let is_silent = matches!(command, Command::LongData(..) | Command::Fetch(..));
        draft.commands.push(command);
        if is_silent {
            draft.commands.push(Command::Close(NEVER));
        }
    }
}
