//! Masks: rules for what may differ between two packets that count as the same, with reasons.
//!
//! Two packets are first compared byte for byte. If they differ, the rules are applied to both, one
//! after another. The report counts how often each rule was needed.

use crate::command::Due;
use crate::packet::{Packet, long_number, string};
use crate::reply::{CHANGED, METADATA_CHANGED, is_definition, status, status_place};
use crate::side::{DIRECT, PROXIED};

/// The place of a packet: the command that its reply answers.
#[derive(Clone, Copy, Debug)]
pub struct Answers {
    /// The command's name.
    pub command: &'static str,
    /// The form of its reply.
    pub due: Due,
    /// Whether the command's text may change the schema.
    pub uses: bool,
    /// The things that the client has said before.
    pub said: Said,
    /// Whether the command sets what is reported.
    pub wishes: bool,
    /// Whether it is the first packet of the reply, or of a further result.
    pub is_head: bool,
}

/// The things that a client has said and that matter for what it is told of changes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Said {
    /// Whether it has asked to be told of its transactions, or the server tells them unasked.
    pub tracks: bool,
    /// Whether it may have changed something that no reply has told at once.
    pub changes_late: bool,
}

/// One rule.
pub struct Mask {
    /// Its name in the report.
    pub name: &'static str,
    /// Why the difference that the rule hides is no fault.
    pub reason: &'static str,
    /// Rewrites a packet.
    apply: fn(&mut Packet, Answers),
}

/// All rules, in the order in which they are applied.
pub const MASKS: [Mask; 16] = [
    Mask {
        name: "names",
        reason: "schemas, locks and the user have other names on the other side",
        apply: |packet, _| {
            // Results may be in UTF-16, UCS-2 or UTF-32.
            for zeros in [0, 1, 3] {
                let [from, to] = [PROXIED, DIRECT].map(|name| spread(name, zeros));
                replace(&mut packet.payload, &from, &to);
            }
        },
    },
    Mask {
        name: "statement-number",
        reason: "a client's statements have numbers of its own; on a server failed attempts and \
                 those of SQL's PREPARE count as well",
        apply: |packet, answers| {
            if answers.due == Due::Definitions && answers.is_head && !packet.is_error() {
                packet.payload[1..5].fill(0);
            }
            if matches!(packet.error(), Some(1243 | 1421)) {
                packet.payload.retain(|byte| !byte.is_ascii_digit());
            }
        },
    },
    Mask {
        name: "metadata-changed",
        reason: "a server that prepares a statement behind a change of its tables has nothing to \
                 say of the change",
        apply: |packet, answers| {
            let is_status = answers.is_head || packet.payload.first() == Some(&0xFE);
            if answers.command != "Execute" || !is_status {
                return;
            }
            let Some(at) = status_place(&packet.payload) else { return };
            if let Some(high) = packet.payload.get_mut(at + 1) {
                *high &= !METADATA_CHANGED.to_be_bytes()[0];
            }
        },
    },
    Mask {
        name: "warnings-of-ping",
        reason: "MySQL repeats the number of warnings of the statement before in its answer to \
                 COM_PING, COM_SET_OPTION and COM_INIT_DB, and the proxy may have answered that",
        apply: |packet, answers| {
            if !matches!(answers.command, "Ping" | "SetOption" | "InitDb") {
                return;
            }
            let Some(at) = status_place(&packet.payload) else { return };
            // They stand in front of the status in an EOF packet.
            let at = if packet.payload.len() == 5 { 1 } else { at + 2 };
            if let Some(warnings) = packet.payload.get_mut(at..at + 2) {
                warnings.fill(0);
            }
        },
    },
    Mask {
        name: "statistics",
        reason: "the answer to COM_STATISTICS has times and counts of the whole server",
        apply: |packet, answers| {
            if answers.command == "Statistics" {
                packet.payload.clear();
            }
        },
    },
    Mask {
        name: "untold-changes",
        reason: "an EOF packet says that something has changed and not what, so the proxy cannot \
                 tell whether its client wants to know it",
        apply: |packet, _| {
            if let [0xFE, _, _, _, high] = packet.payload.as_mut_slice() {
                *high &= !CHANGED.to_be_bytes()[0];
            }
        },
    },
    Mask {
        name: "schema-again",
        reason: "a server reports the schema with an execution under another one, though it has not \
                 changed, or with what comes behind that",
        apply: |packet, answers| {
            if answers.command != "InitDb" && !answers.uses {
                keep_changes(&mut packet.payload, |change| change[0] != 1);
            }
        },
    },
    Mask {
        name: "state-of-before",
        reason: "a statement that sets what is reported may report the change of the proxy's own \
                 statement in front of it",
        apply: |packet, answers| {
            if answers.wishes {
                keep_changes(&mut packet.payload, |change| change[0] != 2);
            }
        },
    },
    Mask {
        name: "row-of-before",
        reason: "MariaDB counts rows of a statement without a table on from those of the statement \
                 before, which may be one of the proxy's own",
        apply: |packet, _| {
            let words = b" at row ";
            let at = packet.payload.windows(words.len()).rposition(|window| window == words);
            if let Some(at) = at.filter(|_| packet.is_error()) {
                packet.payload.truncate(at);
            }
        },
    },
    Mask {
        name: "notes-of-transactions",
        reason: "questions of the proxy's own are among what a server notes of a transaction, which \
                 it notes before its client wants to know as well; MySQL 9.7 also tells clients \
                 that do not want to know it",
        apply: |packet, answers| {
            if answers.said.tracks {
                keep_changes(&mut packet.payload, |change| !matches!(change[0], 4 | 5));
            }
        },
    },
    Mask {
        name: "changes-behind-errors",
        reason: "servers report what a failed statement, or one whose rows end without a report, \
                 has changed with a later one: MySQL with the next, MariaDB with the next that \
                 reports anything; the proxy asks before that, and has a server report more",
        apply: |packet, answers| {
            if answers.said.changes_late {
                keep_changes(&mut packet.payload, |change| !matches!(change[0], 0 | 2));
            }
        },
    },
    Mask {
        name: "no-settings",
        reason: "variables of one statement are no settings, and are not reported behind a list of *",
        apply: |packet, _| {
            keep_changes(&mut packet.payload, |change| {
                let is = |name: &&[u8]| change.windows(name.len()).any(|window| window == *name);
                change[0] != 0 || !NO_SETTINGS.iter().any(is)
            });
        },
    },
    Mask {
        name: "order-of-changes",
        reason: "MariaDB reports changes of variables in the order of a table of the variables that \
                 it has to report, which are more on a proxied server",
        apply: |packet, answers| {
            let is_status = answers.is_head || packet.payload.first() == Some(&0xFE);
            if is_status && let Some(sorted) = with_sorted_changes(&packet.payload) {
                packet.payload = sorted;
            }
        },
    },
    Mask {
        name: "number-of-collation",
        reason: "definitions have the number of the collation that the login or SET NAMES has \
                 named, and its flag; a server that gets the settings later has those of the \
                 character set's own one",
        apply: |packet, _| {
            if is_definition(&packet.payload) {
                COLLATIONS.iter().for_each(|of| put_own_collation(&mut packet.payload, *of));
            }
        },
    },
    Mask {
        name: "unknown-in-catalog",
        reason: "MySQL 9.7 has two errors for a table that information_schema lacks, and each \
                 session has always the one or always the other: of a hundred sessions without a \
                 proxy, which did nothing else, 67 had 1109 and 33 had 1146",
        apply: |packet, _| {
            let is_of_catalog = packet.payload.windows(18).any(|it| it == b"information_schema");
            if matches!(packet.error(), Some(1109 | 1146)) && is_of_catalog {
                packet.payload.truncate(1);
            }
        },
    },
    Mask {
        name: "nonce",
        reason: "each login has random bytes of its own",
        apply: |packet, answers| {
            let is_question = packet.payload.first() == Some(&0xFE);
            if answers.due == Due::Login && is_question {
                let end = packet.payload.iter().position(|byte| *byte == 0);
                packet.payload.truncate(end.unwrap_or(0));
            }
        },
    },
];

/// The flag of binary collations, and its place behind the number of the collation.
const BINARY_FLAG: (u8, usize) = (0x80, 8);

/// Puts a character set's own collation in place of another one in a definition.
fn put_own_collation(definition: &mut [u8], (number, own): (u8, u8)) {
    let (flag, place) = BINARY_FLAG;
    let found = definition.windows(3).rposition(|window| window == [0x0C, number, 0]);
    let Some(at) = found else { return };
    definition[at + 1] = own;
    if let Some(flags) = definition.get_mut(at + place) {
        *flags &= !flag;
    }
}

/// Collations, each with one of the same character set: utf8mb4_bin, utf8mb4_unicode_ci,
/// utf8mb4_general_ci and utf8mb4_0900_ai_ci; latin1_german1_ci and latin1_swedish_ci.
const COLLATIONS: [(u8, u8); 6] = [(46, 255), (224, 255), (45, 255), (255, 255), (5, 8), (8, 8)];

/// Parts of the names of variables that a session has for one statement.
const NO_SETTINGS: [&[u8]; 5] =
    [b"timestamp", b"insert_id", b"rand_seed", b"session_track", b"statement_id"];

/// The changes that an OK packet reports.
struct Block<'a> {
    /// All in front of them but their length.
    front: &'a [u8],
    /// The changes, each with its kind in front.
    changes: Vec<&'a [u8]>,
}

/// Returns the changes that an OK packet reports; `None` if it says that there are none.
fn block(payload: &[u8]) -> Option<Block<'_>> {
    let at = status_place(payload)?;
    status(payload).filter(|status| status & CHANGED != 0)?;
    let (length, size) = long_number(payload.get(at + 4..)?)?;
    let end = at + 4 + size + length;
    let (_, size) = long_number(payload.get(end..)?)?;
    let mut rest = payload.get(end + size..)?;
    let mut changes = Vec::new();
    while !rest.is_empty() {
        let (length, size) = long_number(rest.get(1..)?)?;
        let (change, behind) = rest.split_at_checked(1 + size + length)?;
        changes.push(change);
        rest = behind;
    }
    Some(Block { front: &payload[..end], changes })
}

/// Returns an OK packet with its changes of variables in order; `None` if it has no changes.
fn with_sorted_changes(payload: &[u8]) -> Option<Vec<u8>> {
    let Block { front, mut changes } = block(payload)?;
    // Changes of variables come first, and are of the lowest kind.
    changes.sort_by_key(|change| if change[0] == 0 { *change } else { &[1][..] });
    Some([front, &string(&changes.concat())].concat())
}

/// Leaves only changes of some kinds in an OK packet. Without any, it does not say that there are.
fn keep_changes(payload: &mut Vec<u8>, keeps: impl Fn(&[u8]) -> bool) {
    let Some(Block { front, mut changes }) = block(payload) else { return };
    changes.retain(|change| keeps(change));
    if !changes.is_empty() {
        *payload = [front, &string(&changes.concat())].concat();
        return;
    }
    // An empty text in front of the changes goes with them.
    let mut plain = front.strip_suffix(b"\0").unwrap_or(front).to_vec();
    if let Some(high) = status_place(&plain).and_then(|at| plain.get_mut(at + 1)) {
        *high &= !CHANGED.to_be_bytes()[0];
    }
    *payload = plain;
}

/// Replaces a pattern by one that is as long.
fn replace(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    let mut at = 0;
    while let Some(found) = bytes[at..].windows(from.len()).position(|window| window == from) {
        at += found;
        bytes[at..at + from.len()].copy_from_slice(to);
    }
}

/// Bytes of an error in front of its words: its number, and the SQLSTATE with its mark.
const ERROR_HEAD_BYTES: usize = 9;

/// Returns a name's letters with so many zero bytes between them.
fn spread(name: &str, zeros: usize) -> Vec<u8> {
    let letters: Vec<&[u8]> = name.as_bytes().chunks(1).collect();
    letters.join(&vec![0; zeros][..])
}

/// Returns which rules it takes for the packets to be the same, or `None` if they differ under all
/// rules.
#[must_use]
pub fn same(direct: &Packet, proxied: &Packet, answers: Answers) -> Option<[bool; MASKS.len()]> {
    let mut used = [false; MASKS.len()];
    let (mut one, mut two) = (direct.clone(), proxied.clone());
    // Servers have no words for an error where results are in UTF-16, UTF-32 or UCS-2.
    if one.is_error() && one.payload.len() == ERROR_HEAD_BYTES {
        two.payload.truncate(ERROR_HEAD_BYTES);
    }
    for (used, mask) in used.iter_mut().zip(&MASKS) {
        if one == two {
            break;
        }
        let was = (one.clone(), two.clone());
        (mask.apply)(&mut one, answers);
        (mask.apply)(&mut two, answers);
        *used = was.0 != one || was.1 != two;
    }
    (one == two).then_some(used)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(payload: &[u8]) -> Packet {
        Packet { sequence: 1, payload: payload.to_vec() }
    }

    fn names(one: &[u8], two: &[u8], command: &'static str, due: Due) -> Option<Vec<&'static str>> {
        let answers = Answers {
            command,
            due,
            uses: false,
            said: Said::default(),
            wishes: false,
            is_head: true,
        };
        let used = same(&packet(one), &packet(two), answers)?;
        Some(MASKS.iter().zip(used).filter(|(_, used)| *used).map(|(mask, _)| mask.name).collect())
    }

    #[test]
    fn masks_hide_what_they_are_for_and_no_more() {
        let results = |one, two| names(one, two, "Execute", Due::Results);
        assert_eq!(results(b"\x05diffp", b"\x05diffp"), Some(vec![]));
        assert_eq!(results(b"\x05diffd", b"\x05diffp"), Some(vec!["names"]));
        assert_eq!(results(b"\x05diffd", b"\x05diffq"), None);
        let (d, p) = (b"\x0a\0d\0i\0f\0f\0d", b"\x0a\0d\0i\0f\0f\0p");
        assert_eq!(results(d, p), Some(vec!["names"]));
        let (plain, changed) = (b"\xfe\0\0\x02\0\0\0", b"\xfe\0\0\x02\x04\0\0");
        assert_eq!(results(plain, changed), Some(vec!["metadata-changed"]));
        assert_eq!(names(plain, changed, "Query", Due::Results), None);
        let prepared = |one, two| names(one, two, "Prepare", Due::Definitions);
        let (first, second) = (b"\0\x01\0\0\0\x01\0\0\0\0\0\0", b"\0\x02\0\0\0\x01\0\0\0\0\0\0");
        assert_eq!(prepared(first, second), Some(vec!["statement-number"]));
        assert_eq!(prepared(first, b"\0\x02\0\0\0\x02\0\0\0\0\0\0"), None);
        let (one, two) = (b"\xff\x55\x04#42S02Unknown table", b"\xff\x7a\x04#42S02Table");
        let of = |error: &[u8], schema: &[u8]| [error, schema].concat();
        let catalog = [&one[..], two].map(|error| of(error, b" information_schema"));
        assert_eq!(results(&catalog[0], &catalog[1]), Some(vec!["unknown-in-catalog"]));
        assert_eq!(results(&of(one, b" shop"), &of(two, b" shop")), None);
    }

    #[test]
    fn every_mask_has_a_reason() {
        assert!(MASKS.iter().all(|mask| mask.reason.len() > 20));
    }
}
