//! Masks: rules for what may differ between two replies that count as the same, with reasons.
//!
//! Two frames are first compared byte for byte. If they differ, the rules of [`MASKS`] are applied
//! to both, one after another. The report counts how often each rule was needed.

use crate::ledger::{SQL_EXECUTE, SQL_EXECUTES};
use crate::reply::Frame;

/// The proxied clients' database.
pub const PROXIED: &str = "diffp";
/// The direct clients' database.
pub const DIRECT: &str = "diffd";

/// The first OID of objects that initdb did not create.
const FIRST_NORMAL_OID: u32 = 16384;

/// One rule.
pub struct Mask {
    /// Its name in the report.
    pub name: &'static str,
    /// Why the difference that the rule hides is no fault.
    pub reason: &'static str,
    /// Rewrites a frame; the second argument is the type of the message the frame answers.
    apply: fn(&mut Frame, u8),
}

/// All rules, in the order in which they are applied.
pub const MASKS: [Mask; 12] = [
    Mask {
        name: "table-oid",
        reason: "tables have different OIDs in the two databases (RowDescription)",
        apply: |frame, _| each_column(frame, |oids| oids[..4].fill(0)),
    },
    Mask {
        name: "type-oid",
        reason: "types that the test creates have different OIDs in the two databases",
        apply: own_types,
    },
    Mask {
        name: "notification-pid",
        reason: "the process id of a notification is the server's",
        apply: |frame, _| {
            if frame.tag == b'A' && frame.body.len() >= 4 {
                frame.body[..4].fill(0);
            }
        },
    },
    Mask {
        name: "oid-in-message",
        reason: "internal errors name OIDs, which differ between the two databases",
        apply: oid_in_message,
    },
    Mask {
        name: "database-name",
        reason: "the two databases have different names",
        apply: |frame, _| {
            if frame.has_fields() {
                rewrite(frame, |_, value| Some(value.replace(PROXIED, DIRECT)));
            }
        },
    },
    Mask {
        name: "temp-schema",
        reason: "the schema of a session's temporary objects has the number of the session's slot",
        apply: |frame, _| {
            if frame.has_fields() {
                rewrite(frame, |_, value| Some(without_slots(&value)));
            }
            each_value(frame, without_slots);
        },
    },
    Mask {
        name: "bound-position",
        reason: "an error that answers Bind, Describe or SQL EXECUTE may come from a Parse that the \
                 proxy put in front of it, and then has no position (E33)",
        apply: |frame, answers| {
            if frame.tag == b'E' && matches!(answers, b'B' | b'D' | SQL_EXECUTE | SQL_EXECUTES) {
                rewrite(frame, |code, value| (code != b'P').then_some(value));
            }
        },
    },
    Mask {
        name: "aborted-place",
        reason: "in an aborted transaction 25P02 answers Bind or Describe, whether they raise it or \
                 a Parse that the proxy put in front: only file, line and routine differ",
        apply: |frame, answers| {
            if frame.tag == b'E' && frame.field(b'C') == b"25P02" && matches!(answers, b'B' | b'D')
            {
                hide_place(frame);
            }
        },
    },
    Mask {
        name: "pipeline-place",
        reason: "another line of PostgreSQL's code says that there is no transaction if a statement, \
                 which may be the proxy's, came before in the pipeline",
        apply: |frame, _| {
            if frame.has_fields() && frame.field(b'C') == b"25P01" {
                hide_place(frame);
            }
        },
    },
    Mask {
        name: "options-place",
        reason: "the proxy refuses the options of a startup packet as PostgreSQL does, but without \
                 PostgreSQL's place in the code",
        apply: |frame, _| {
            if frame.tag == b'E' && frame.field(b'S') == b"FATAL" && frame.field(b'C') == b"42601" {
                hide_place(frame);
            }
        },
    },
    Mask {
        name: "stale-line",
        reason: "the proxy refuses a statement whose columns have changed as PostgreSQL does, but \
                 without PostgreSQL's line of code (E67)",
        apply: |frame, _| {
            if frame.has_fields() && frame.field(b'R') == b"RevalidateCachedQuery" {
                rewrite(frame, |code, value| (code != b'L').then_some(value));
            }
        },
    },
    Mask {
        name: "function-signature",
        reason: "PL/pgSQL names a function with its schema in a context if the schema was not in the \
                 search_path when the session compiled the function (plpgsql_compile, \
                 format_procedure)",
        apply: |frame, _| {
            if frame.has_fields() {
                rewrite(frame, |code, value| {
                    Some(if code == b'W' { unqualified(&value) } else { value })
                });
            }
        },
    },
];

/// Returns a context without the schemas of the PL/pgSQL functions that it names.
fn unqualified(context: &str) -> String {
    let lines = context.split('\n').map(|line| {
        let Some((before, after)) = line.split_once("PL/pgSQL function ") else {
            return line.to_owned();
        };
        let Some((name, rest)) = after.split_once('(') else { return line.to_owned() };
        let name = name.rsplit('.').next().unwrap_or(name);
        format!("{before}PL/pgSQL function {name}({rest}")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns a text without the numbers of the schemas of temporary objects in it.
fn without_slots(text: &str) -> String {
    let mut parts = text.split("pg_temp_");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + "pg_temp_" + part.trim_start_matches(|c: char| c.is_ascii_digit())
    })
}

/// Drops file, line and routine.
fn hide_place(frame: &mut Frame) {
    rewrite(frame, |code, value| (!matches!(code, b'F' | b'L' | b'R')).then_some(value));
}

/// Returns which rules it takes for the frames to be the same, or `None` if they differ under all
/// rules. `answers` is the type of the message that the frames answer.
#[must_use]
pub fn same(direct: &Frame, proxied: &Frame, answers: u8) -> Option<[bool; MASKS.len()]> {
    if direct == proxied {
        return Some([false; MASKS.len()]);
    }
    let masked = |frame: &Frame| {
        let mut frame = frame.clone();
        MASKS.iter().for_each(|mask| (mask.apply)(&mut frame, answers));
        frame
    };
    if aborted_hides(direct, proxied, answers) {
        return Some(std::array::from_fn(|index| MASKS[index].name == "aborted-place"));
    }
    let same = direct.tag == proxied.tag && masked(direct) == masked(proxied);
    same.then(|| used_only(direct, proxied, answers))
}

/// True if the proxied error is 25P02 from a Parse, in the place of an error of Bind, Describe or
/// Parse. In an aborted transaction the proxy cannot prepare a statement that the server lacks, so
/// 25P02 comes first. The transaction is aborted after either error.
fn aborted_hides(direct: &Frame, proxied: &Frame, answers: u8) -> bool {
    let errors = direct.tag == b'E' && proxied.tag == b'E';
    let prepared = proxied.field(b'C') == b"25P02" && proxied.field(b'R') == b"exec_parse_message";
    errors && prepared && matches!(answers, b'B' | b'D' | b'P')
}

/// Returns the rules without which the frames would still differ.
fn used_only(direct: &Frame, proxied: &Frame, answers: u8) -> [bool; MASKS.len()] {
    let mut needed = [true; MASKS.len()];
    for candidate in 0..MASKS.len() {
        needed[candidate] = false;
        let (mut one, mut two) = (direct.clone(), proxied.clone());
        for (mask, _) in MASKS.iter().zip(needed).filter(|(_, needed)| *needed) {
            (mask.apply)(&mut one, answers);
            (mask.apply)(&mut two, answers);
        }
        needed[candidate] = one != two;
    }
    needed
}

/// Calls `change` with the 18 fixed bytes of each column of a RowDescription.
fn each_column(frame: &mut Frame, change: impl Fn(&mut [u8])) {
    if frame.tag != b'T' {
        return;
    }
    let mut at = 2;
    while let Some(name) = frame.body.get(at..).and_then(|rest| rest.iter().position(|b| *b == 0)) {
        let start = at + name + 1;
        let Some(fixed) = frame.body.get_mut(start..start + 18) else {
            return;
        };
        change(fixed);
        at = start + 18;
    }
}

/// Calls `change` with each value of a DataRow that is a text.
fn each_value(frame: &mut Frame, change: impl Fn(&str) -> String) {
    if frame.tag != b'D' {
        return;
    }
    let (count, mut rest) = frame.body.split_at(frame.body.len().min(2));
    let mut body = count.to_vec();
    while let Some((length, behind)) = rest.split_first_chunk::<4>() {
        let bytes = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
        let (value, behind) = behind.split_at(behind.len().min(bytes));
        match std::str::from_utf8(value) {
            Ok(text) if !value.is_empty() => {
                let text = change(text);
                body.extend_from_slice(&u32::try_from(text.len()).unwrap_or(0).to_be_bytes());
                body.extend_from_slice(text.as_bytes());
            }
            _ => body.extend([length, value].concat()),
        }
        rest = behind;
    }
    frame.body = body;
}

fn own_types(frame: &mut Frame, _: u8) {
    let clear = |oid: &mut [u8]| {
        let value = oid.iter().fold(0u32, |sum, byte| sum << 8 | u32::from(*byte));
        if value >= FIRST_NORMAL_OID {
            oid.fill(0);
        }
    };
    each_column(frame, |fixed| clear(&mut fixed[6..10]));
    if frame.tag == b't' && frame.body.len() > 2 {
        frame.body[2..].chunks_exact_mut(4).for_each(clear);
    }
}

fn oid_in_message(frame: &mut Frame, _: u8) {
    let message = frame.field(b'M');
    let names_oid = [&b"cache lookup failed"[..], b"OID"]
        .iter()
        .any(|text| message.windows(text.len()).any(|window| window == *text));
    if frame.tag == b'E' && names_oid {
        rewrite(frame, |code, value| {
            Some(if code == b'M' { value.replace(|c: char| c.is_ascii_digit(), "") } else { value })
        });
    }
}

/// Replaces or drops the fields of an error or notice.
fn rewrite(frame: &mut Frame, change: impl Fn(u8, String) -> Option<String>) {
    let fields: Vec<(u8, Vec<u8>)> = frame
        .fields()
        .iter()
        .filter_map(|(code, value)| match std::str::from_utf8(value) {
            Ok(text) => change(*code, text.to_owned()).map(|text| (*code, text.into_bytes())),
            Err(_) => Some((*code, value.to_vec())),
        })
        .collect();
    frame.set_fields(&fields);
}

#[cfg(test)]
mod tests {
    use super::{MASKS, same};
    use crate::reply::Frame;

    fn row(table: u8, kind: u32) -> Frame {
        let mut body = b"\0\x01id\0\0\0\0".to_vec();
        body.push(table);
        body.extend_from_slice(b"\0\x01");
        body.extend_from_slice(&kind.to_be_bytes());
        body.extend_from_slice(b"\0\x04\xff\xff\xff\xff\0\0");
        Frame::new(b'T', &body)
    }

    fn names(used: [bool; MASKS.len()]) -> Vec<&'static str> {
        MASKS.iter().zip(used).filter(|(_, used)| *used).map(|(mask, _)| mask.name).collect()
    }

    #[test]
    fn oids_of_tables_and_own_types_may_differ() {
        assert_eq!(same(&row(1, 23), &row(1, 23), b'D').map(names), Some(vec![]));
        assert_eq!(same(&row(1, 23), &row(2, 23), b'D').map(names), Some(vec!["table-oid"]));
        assert_eq!(same(&row(1, 20000), &row(1, 20001), b'D').map(names), Some(vec!["type-oid"]));
        assert_eq!(same(&row(1, 23), &row(1, 25), b'D'), None);
    }

    #[test]
    fn a_position_may_be_missing_after_bind_only() {
        let with = Frame::new(b'E', b"C42P01\0Mno\0P15\0\0");
        let without = Frame::new(b'E', b"C42P01\0Mno\0\0");
        assert_eq!(same(&with, &without, b'B').map(names), Some(vec!["bound-position"]));
        assert_eq!(same(&with, &without, b'P'), None);
        assert_eq!(same(&with, &without, b'Q'), None);
    }

    #[test]
    fn routine_counts_but_in_an_aborted_transaction() {
        let error = |code: &str, routine: &str| {
            Frame::new(b'E', format!("C{code}\0Mx\0R{routine}\0\0").as_bytes())
        };
        assert_eq!(same(&error("26000", "a"), &error("26000", "b"), b'B'), None);
        let used = same(&error("25P02", "a"), &error("25P02", "b"), b'B');
        assert_eq!(used.map(names), Some(vec!["aborted-place"]));
    }

    #[test]
    fn the_schema_of_a_function_in_a_context_may_be_missing_and_no_more() {
        let error = |context: &str| Frame::new(b'E', format!("C25006\0W{context}\0\0").as_bytes());
        let direct = error("SQL statement \"x.y()\"\nPL/pgSQL function c1.ddl(integer) line 6");
        let proxied = error("SQL statement \"x.y()\"\nPL/pgSQL function ddl(integer) line 6");
        assert_eq!(same(&direct, &proxied, b'Q').map(names), Some(vec!["function-signature"]));
        let other = error("SQL statement \"y()\"\nPL/pgSQL function ddl(integer) line 6");
        assert_eq!(same(&direct, &other, b'Q'), None);
        let other = error("SQL statement \"x.y()\"\nPL/pgSQL function ddl(integer) line 7");
        assert_eq!(same(&direct, &other, b'Q'), None);
    }

    #[test]
    fn numbers_of_temporary_schemas_may_differ() {
        let row = |text: &str| {
            let length = u32::try_from(text.len()).expect("a length").to_be_bytes();
            Frame::new(b'D', &[&[0, 2, 255, 255, 255, 255], &length[..], text.as_bytes()].concat())
        };
        let used = same(&row("{pg_temp_3,a}"), &row("{pg_temp_12,a}"), b'Q');
        assert_eq!(used.map(names), Some(vec!["temp-schema"]));
        assert_eq!(same(&row("{pg_temp_3,a}"), &row("{pg_temp_3,b}"), b'Q'), None);
        assert_eq!(same(&row("pg_tem_3"), &row("pg_tem_12"), b'Q'), None);
    }

    #[test]
    fn every_mask_has_a_reason() {
        assert!(MASKS.iter().all(|mask| mask.reason.len() > 20));
    }
}
