//! COPY FROM STDIN: its data, its end, and messages that do not belong to it.

use refrain_pg_wire::front::query_text;
use refrain_pg_wire::tag::{back, front};
use refrain_pg_wire::write::{self, Report};

use crate::fault::Fault;
use crate::session::{CopyIn, Session};

impl Session {
    pub(crate) fn begin_copy(&mut self, extended: bool) {
        write::message(&mut self.out, back::COPY_IN_RESPONSE, |out| {
            out.extend_from_slice(&[0, 0, 1, 0, 0]);
        });
        self.flush();
        self.copying = Some(CopyIn { rows: 0, extended });
    }

    pub(crate) fn copy(&mut self, tag: u8, body: &[u8]) {
        let Some(copy) = &mut self.copying else { return };
        let result = match tag {
            front::COPY_DATA => {
                copy.rows += 1;
                return;
            }
            front::SYNC | front::FLUSH => return,
            front::COPY_DONE => Ok(()),
            front::COPY_FAIL => {
                let why = query_text(body).unwrap_or(b"");
                let why = String::from_utf8_lossy(why);
                Err(Fault::new("57014", format!("COPY from stdin failed: {why}")))
            }
            other => {
                let message =
                    format!("unexpected message type 0x{other:02X} during COPY from stdin");
                let report =
                    Report { severity: "ERROR", sqlstate: "08P01", message: &message, hint: "" };
                write::error(&mut self.out, &report);
                Err(Fault::protocol(
                    "terminating connection because protocol synchronization was lost",
                ))
            }
        };
        let copy = *copy;
        self.copying = None;
        self.copy_ends(copy, result);
    }

    pub(crate) fn copy_ends(&mut self, copy: CopyIn, result: Result<(), Fault>) {
        match result {
            Ok(()) => {
                let tag = format!("COPY {}", copy.rows);
                write::command_complete(&mut self.out, tag.as_bytes());
                if !copy.extended {
                    self.finish(Ok(()));
                }
            }
            Err(fault) if copy.extended && !fault.fatal => {
                self.fail(&fault);
                self.skipping = true;
            }
            Err(fault) => self.finish(Err(fault)),
        }
    }
}
