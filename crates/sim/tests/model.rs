//! The model server's replies, message by message as tags, against the replies of PostgreSQL 15 and
//! 18.

use refrain_sim::frames::Frames;
use refrain_sim::say::Say;
use refrain_sim::session::Session;

/// Returns the tags of all replies to the messages of `say`: errors as their SQLSTATE,
/// ReadyForQuery with its status.
fn replies(say: &Say) -> String {
    let mut session = Session::default();
    session.begin(&[], 1, &[0; 4]).expect("a session begins");
    session.take_all();
    let mut asked = Frames::default();
    asked.push(&say.0);
    while let Some((tag, body)) = asked.take() {
        session.handle(tag, &body, false);
    }
    let mut said = Frames::default();
    said.push(&session.take_all());
    let mut tags = Vec::new();
    while let Some((tag, body)) = said.take() {
        tags.push(match tag {
            b'E' => String::from_utf8_lossy(refrain_pg_wire::back::Fields(&body).sqlstate())
                .into_owned(),
            b'Z' => format!("Z{}", char::from(body[0])),
            tag => char::from(tag).to_string(),
        });
    }
    tags.join(" ")
}

#[test]
fn an_error_skips_to_sync_and_query_behind_it_too() {
    let mut say = Say::default();
    say.parse("", "selec 1").query("select 'x'").sync();
    assert_eq!(replies(&say), "42601 ZI");
    let mut say = Say::default();
    say.query("select fail('x'); select 'y'").query("select 'z'");
    assert_eq!(replies(&say), "T 22012 ZI T D C ZI");
}

#[test]
fn a_query_without_a_sync_before_it_is_legal() {
    let mut say = Say::default();
    say.parse("", "select $1").bind("", "", &["x"]).execute("", 0).query("select 'y'");
    assert_eq!(replies(&say), "1 2 D C T D C ZI");
}

#[test]
fn the_unnamed_statement_goes_with_any_query_and_a_failed_parse() {
    let mut say = Say::default();
    say.parse("", "select $1").sync().query("").bind("", "", &["x"]).sync();
    assert_eq!(replies(&say), "1 ZI I ZI 26000 ZI");
    let mut say = Say::default();
    say.parse("", "select $1").sync().parse("", "selec").sync().bind("", "", &["x"]).sync();
    assert_eq!(replies(&say), "1 ZI 42601 ZI 26000 ZI");
}

#[test]
fn statements_are_not_transactional_and_names_are_taken_once() {
    let mut say = Say::default();
    say.query("begin").parse("s", "select $1").sync().query("rollback");
    say.parse("s", "select 'other'").sync().close("s").parse("s", "select 'other'").sync();
    assert_eq!(replies(&say), "C ZT 1 ZT C ZI 42P05 ZI 3 1 ZI");
}

#[test]
fn portals_end_with_their_transaction() {
    let mut say = Say::default();
    let text = "select generate_series(1,3)";
    say.parse("", text).bind("p", "", &[]).execute("p", 2).sync().execute("p", 2).sync();
    assert_eq!(replies(&say), "1 2 D D s ZI 34000 ZI");
    let mut say = Say::default();
    say.query("begin").parse("", text).bind("p", "", &[]).execute("p", 2).sync();
    say.execute("p", 2).sync();
    assert_eq!(replies(&say), "C ZT 1 2 D D s ZT D C ZT");
}

#[test]
fn copy_takes_a_sync_before_its_end_as_noise() {
    let mut say = Say::default();
    say.parse("", "copy t from stdin").bind("", "", &[]).execute("", 0);
    say.sync().copy_data("x\n").copy_end(None).sync();
    assert_eq!(replies(&say), "1 2 G C ZI");
    // A COPY that fails before it begins skips no Sync.
    let mut say = Say::default();
    say.parse("", "copy t from stdin").bind("", "none", &[]).execute("", 0);
    say.sync().copy_data("x\n").copy_end(None).sync();
    assert_eq!(replies(&say), "1 26000 ZI ZI");
}

#[test]
fn a_failed_block_takes_nothing_but_its_end() {
    let mut say = Say::default();
    say.query("begin").query("selec").parse("", "select 'x'").sync();
    say.parse("", "rollback").bind("", "", &[]).execute("", 0).sync();
    assert_eq!(replies(&say), "C ZT 42601 ZE 25P02 ZE 1 2 C ZI");
}

#[test]
fn settings_are_reported_when_they_change_and_when_a_rollback_changes_them_back() {
    let mut say = Say::default();
    say.query("begin").query("set timezone to 'Asia/Tokyo'").query("rollback");
    assert_eq!(replies(&say), "C ZT C S ZT C S ZI");
}

#[test]
fn a_function_call_is_ready_by_itself() {
    let mut say = Say::default();
    say.parse("", "select $1").bind("", "", &["x"]).execute("", 0).call(1, "y").sync();
    assert_eq!(replies(&say), "1 2 D C V ZI ZI");
    let mut say = Say::default();
    say.call(0, "y").sync();
    assert_eq!(replies(&say), "42883 ZI ZI");
}

#[test]
fn discard_all_is_refused_behind_other_commands_of_a_pipeline_and_ends_its_transaction() {
    let mut say = Say::default();
    for _ in 0..2 {
        say.parse("", "discard all").bind("", "", &[]).execute("", 0);
    }
    say.parse("", "select 'x'").bind("", "", &[]).execute("", 0);
    say.parse("", "discard all").bind("", "", &[]).execute("", 0).sync();
    assert_eq!(replies(&say), "1 2 C 1 2 C 1 2 D C 1 2 25001 ZI");
}
