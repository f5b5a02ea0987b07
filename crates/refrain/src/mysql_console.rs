//! Questions and replies of the console for clients of MySQL.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use refrain_mysql::console::reply::{self as my, Form, Needed};
use refrain_mysql::console::{Answer, Request};
use refrain_mysql::parts::My;
use refrain_pg::console::split;
use refrain_pool::ids::Core;

use crate::console::{Call, Heading, Kind, Part, Question, Refusal, Reply, Table};
use crate::mail::{Mail, Post};

/// The way from a core to the threads that work for MySQL's protocol.
#[derive(Clone)]
pub(crate) struct MyHelpers {
    pub(crate) post: Arc<Post<My>>,
    pub(crate) questions: Sender<Call>,
}

/// Asks the console for a client. The answer comes by mail.
pub(crate) fn ask(helpers: &MyHelpers, core: Core, request: Request) {
    let Request { client, user, admin, query, form } = request;
    let post = Arc::clone(&helpers.post);
    let answer = Box::new(move |reply: Reply| {
        let reply = my::in_form(&parts(reply), &form);
        post.send(core, Mail::Answered(Answer { client, reply }));
    });
    if let Some(refusal) = refused(&query, &form) {
        return answer(vec![Part::Refused(refusal)]);
    }
    let describes = form.wanted == Needed::Columns;
    let question = Question { client, user, admin, query, describes, answer };
    // The desk ends before the cores only if the program ends.
    let _ = helpers.questions.send(Call::Client(question));
}

/// Returns why a text is refused, if it has several commands and the client has not said that texts
/// may.
fn refused(query: &str, form: &Form) -> Option<Refusal> {
    let is_one = form.has_several && form.wanted == Needed::Text;
    (!is_one && split::commands(query).len() > 1).then(|| Refusal::syntax(query))
}

/// Returns the parts of a reply as MySQL's messages have them.
fn parts(reply: Reply) -> Vec<my::ReplyPart> {
    let mut parts: Vec<my::ReplyPart> = Vec::new();
    let mut notices = Vec::new();
    // Whether the command that is under way has rows.
    let mut has_rows = false;
    for part in reply {
        has_rows |= matches!(&part, Part::Rows(_))
            || matches!(&part, Part::Notice { detail, .. } if !detail.is_empty());
        match part {
            Part::Rows(table) => parts.push(my::ReplyPart::Rows(rows(table))),
            // There are no notices: a text is a row for each line, and a remark goes with the OK.
            Part::Notice { text, detail } if detail.is_empty() => notices.push(text.into_owned()),
            Part::Notice { text, detail } => {
                let lines = detail.lines().filter(|line| !line.is_empty());
                let lines = lines.map(|line| vec![Some(line.trim_start().to_owned())]);
                let column = my::Column { name: text.into_owned(), kind: my::ValueKind::Text };
                parts.push(my::ReplyPart::Rows(my::Rows {
                    columns: vec![column],
                    rows: lines.collect(),
                }));
            }
            // Rows have said it already.
            Part::Done(_) if std::mem::take(&mut has_rows) => {}
            Part::Done(tag) => {
                let told = [tag.into_owned()].into_iter().chain(std::mem::take(&mut notices));
                parts.push(my::ReplyPart::Done(told.collect::<Vec<_>>().join("; ")));
            }
            Part::Nothing => parts.push(my::ReplyPart::empty()),
            Part::Refused(Refusal { sqlstate, message }) => {
                parts.push(my::ReplyPart::refused(sqlstate, message));
            }
        }
    }
    parts
}

fn rows(table: Table) -> my::Rows {
    let column = |Heading { name, kind }: Heading| my::Column {
        name: name.into_owned(),
        kind: match kind {
            Kind::Text => my::ValueKind::Text,
            Kind::Int4 => my::ValueKind::Long,
            Kind::Int8 => my::ValueKind::LongLong,
            Kind::Numeric => my::ValueKind::Decimal,
            Kind::Float8 => my::ValueKind::Double,
        },
    };
    my::Rows { columns: table.columns.into_iter().map(column).collect(), rows: table.rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_has_a_part_for_each_command() {
        let table = Part::Rows(Table::of("a", "b"));
        let help = Part::Notice { text: "Usage".into(), detail: "\n\tSHOW A\n\tSHOW B".to_owned() };
        let remark = Part::Notice { text: "SET ignored".into(), detail: String::new() };
        let [show, set] = ["SHOW", "SET"].map(|tag| Part::Done(tag.into()));
        let reply = vec![table, show.clone(), help, show, remark, set, Part::Nothing];
        let parts = parts(reply);
        let [my::ReplyPart::Rows(one), my::ReplyPart::Rows(two), my::ReplyPart::Done(info), empty] =
            &parts[..]
        else {
            panic!("{parts:?}")
        };
        assert_eq!((&*one.columns[0].name, &one.rows[0][0]), ("a", &Some("b".to_owned())));
        let lines = two.rows.iter().map(|row| row[0].as_deref());
        assert!(lines.eq([Some("SHOW A"), Some("SHOW B")]));
        assert_eq!(info, "SET; SET ignored");
        assert_eq!(*empty, my::ReplyPart::empty());
    }

    #[test]
    fn several_commands_need_a_client_that_has_said_so() {
        let form = |wanted, has_several| Form {
            wanted,
            has_several,
            capabilities: refrain_mysql_wire::Capabilities::NONE,
        };
        let several = "SHOW POOLS; RELOAD";
        assert!(refused(several, &form(Needed::Text, true)).is_none());
        assert!(refused(several, &form(Needed::Text, false)).is_some());
        assert!(refused(several, &form(Needed::Binary, true)).is_some());
        assert!(refused("SHOW POOLS;", &form(Needed::Columns, false)).is_none());
    }
}
