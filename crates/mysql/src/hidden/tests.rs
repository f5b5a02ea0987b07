//! Tests of what the catalog tells.

use super::*;

#[test]
fn views_that_set_numbers_are_asked_for() {
    for call in ["get_lock", "last_insert_id(", "nextval(", "setval("] {
        assert!(QUESTION.contains(&format!("LOCATE('{call}', LOWER(VIEW_DEFINITION))")));
    }
}

/// Reads rows, and the one that says that the catalog knows the user.
fn read(rows: &[[&str; 3]]) -> Catalog {
    read_all(&[rows, &[["user", "", ""]]].concat())
}

fn read_all(rows: &[[&str; 3]]) -> Catalog {
    let row = |row: &[&str; 3]| row.iter().map(|text| text.as_bytes().into()).collect();
    Catalog::read(&rows.iter().map(row).collect::<Vec<_>>())
}

#[test]
fn a_text_that_may_read_a_view_says_so() {
    let may = |text: &str| May::of(&text::facts(text.as_bytes(), Reads::default()));
    for text in [
        "SELECT * FROM lockv",
        "COMMIT; SELECT * FROM lockv",
        "USE shop; SET a = (SELECT a FROM lockv)",
        "SHOW TABLES WHERE (SELECT a FROM lockv) = 1",
    ] {
        assert_eq!(may(text), May(May::READ), "{text}");
    }
    assert_eq!(may("COMMIT; DELETE FROM t"), May(May::READ | May::WRITE));
    assert_eq!(may("COMMIT; CALL p()"), May(May::CALL));
    for text in ["COMMIT", "ROLLBACK;", "USE shop", "SAVEPOINT a"] {
        assert!(may(text).is_none(), "{text}");
    }
}

#[test]
fn a_trigger_that_leaves_nothing_is_told_from_others() {
    for harmless in [
        "SET NEW.changed = NOW()",
        "INSERT INTO audit (a, b) VALUES (NEW.a, CURRENT_USER())",
        "BEGIN IF (NEW.a > 1) THEN UPDATE u SET a = a + 1 WHERE b = NEW.b; END IF; END",
        "BEGIN DECLARE n INT; SELECT MAX(a) INTO n FROM t; SET NEW.a = n; END",
    ] {
        assert!(!read(&[["trigger", harmless, ""]]).triggers, "{harmless}");
    }
    for other in [
        "SET @a = 5",
        "BEGIN SELECT 5 INTO @a; END",
        "SET NEW.a = f(5)",
        "SET NEW.a = shop.abs(5)",
        "CALL p()",
        "DO GET_LOCK('l', 0)",
        "BEGIN CREATE TEMPORARY TABLE tmp AS SELECT 1 AS a; END",
        "BEGIN SET ROLE NONE; END",
    ] {
        assert!(read(&[["trigger", other, ""]]).triggers, "{other}");
    }
    let reads = ["trigger", "SET NEW.a = (SELECT MAX(a) FROM lockv)", ""];
    assert!(read(&[reads, ["view", "lockv", "1"]]).triggers, "the view leaves something");
    assert!(!read(&[reads, ["view", "lockv", ""]]).triggers);
    assert!(!read(&[reads, ["view", "other", "1"]]).triggers);
    let long = format!("SET NEW.a = '{}'", "x".repeat(BODY_MAX));
    assert!(read(&[["trigger", &long, ""]]).triggers);
    let hidden = r"SET NEW.a = '\', NEW.b = f(5), NEW.c = ' '";
    assert!(read(&[["trigger", hidden, "NO_BACKSLASH_ESCAPES"]]).triggers);
}

#[test]
fn views_count_where_a_text_names_them() {
    let views = read(&[["view", "V1", "1"], ["view", "of_all", ""]]).views;
    for text in [
        "SELECT * FROM v1",
        "select `V1`.a",
        "INSERT INTO t SELECT 1 FROM s.Of_All",
        "SELECT a FROM /*!50000v1*/",
    ] {
        assert!(views.are_in(text.as_bytes()), "{text}");
    }
    let long = format!("SELECT {}v1", "x".repeat(NAME_BYTES_MAX));
    for text in ["SELECT v11 FROM t", "SELECT 1", "COMMIT", &long] {
        assert!(!views.are_in(text.as_bytes()), "{text}");
    }
    assert_eq!(read(&[["view", "a b", ""], ["view", "c", "1"]]).views, Views::Any);
    assert_eq!(read(&vec![["view", "v", "1"]; ROWS_MAX + 1]).views, Views::Any);
    assert_eq!(read(&[["view", "a b", ""], ["view", "c", ""]]).views, Views::None);
}

#[test]
fn a_user_who_writes_without_the_right_to_see_triggers_sees_a_part() {
    let cases: &[(&[[&str; 3]], bool)] = &[
        (&[], false),
        (&[["INSERT", "", ""], ["TRIGGER", "", ""]], false),
        (&[["INSERT", "", ""], ["TRIGGER", "shop", ""]], true),
        (&[["DELETE", "shop", ""], ["TRIGGER", "shop", ""]], false),
        (&[["DELETE", "shop", "t"], ["TRIGGER", "shop", ""]], false),
        (&[["UPDATE", "shop", "t"], ["TRIGGER", "shop", "t"]], false),
        (&[["UPDATE", "shop", "u"], ["TRIGGER", "shop", "t"]], true),
        (&[["UPDATE", "shop", ""]], true),
        (&[["role", "", ""]], true),
        (&[["role", "", ""], ["TRIGGER", "", ""]], false),
    ];
    for (rows, is_partial) in cases {
        let catalog = read(rows);
        assert_eq!((catalog.is_partial, catalog.triggers), (*is_partial, *is_partial), "{rows:?}");
    }
}

#[test]
fn a_user_whom_the_catalog_does_not_know_may_have_rights_all_the_same() {
    assert!(!read(&[]).is_partial, "the user has no right to write");
    let unknown = read_all(&[]);
    assert!(unknown.is_partial && unknown.triggers);
    assert!(!read_all(&[["TRIGGER", "", ""]]).is_partial, "nothing is hidden");
}

#[test]
fn an_answer_with_an_unknown_row_is_none() {
    assert_eq!(read(&[["t\0r\0i", "", ""]]), Catalog::unknown());
}

fn asked(at: u64) -> Asked {
    Question::default().begin(Question::IDLE, Now(at)).expect("nobody is asked")
}

#[test]
fn an_answer_holds_for_its_time_and_until_a_view_or_trigger_changes() {
    let (hidden, mut options) = (Hidden::default(), PoolOptions::default());
    let write = May(May::READ | May::WRITE);
    let matters = |options: &PoolOptions, changed, now| {
        hidden.matters(write, options, (Now(changed), Now(now)))
    };
    assert!(matters(&options, 0, 5) && hidden.is_wanted(), "nothing is known");
    let question = hidden.ask(Now(5)).expect("it is wanted");
    assert!(!hidden.is_wanted());
    hidden.learn(Catalog::default(), &question);
    drop(question);
    assert!(!matters(&options, 0, 6) && !hidden.is_wanted());
    assert!(!matters(&options, 0, 40_000_005) && hidden.is_wanted(), "it is soon too old");
    assert!(matters(&options, 0, 60_000_005), "it is too old");
    assert!(matters(&options, 5, 6), "there may be another trigger");
    let is_current = |changed, now| hidden.is_current(&options, (Now(changed), Now(now)));
    assert!(is_current(0, 40_000_005));
    assert!(!is_current(0, 60_000_005) && !is_current(5, 6));
    hidden.learn(read(&[["trigger", "CALL p()", ""]]), &asked(5));
    assert!(matters(&options, 0, 6) && !hidden.has_views());
    assert!(!hidden.matters(May(May::READ), &options, (Now(0), Now(6))));
    options.untold_changes = UntoldChanges::Ignore;
    assert!(!matters(&options, 0, 6));
    assert!(hidden.matters(May(May::CALL), &options, (Now(0), Now(6))));
    options.untold_changes = UntoldChanges::Reset;
    hidden.learn(Catalog::default(), &asked(5));
    assert!(matters(&options, 0, 6));
}

#[test]
fn one_server_at_a_time_is_asked() {
    let (hidden, options) = (Hidden::default(), PoolOptions::default());
    let matters = |now| hidden.matters(May(May::WRITE), &options, (Now(0), Now(now)));
    let first = hidden.ask_at_login(&options, (Now(0), Now(5)));
    assert!(first.is_some() && hidden.ask_at_login(&options, (Now(0), Now(6))).is_none());
    assert!(matters(7) && !hidden.is_wanted() && hidden.ask(Now(7)).is_none());
    // The server goes without an answer.
    drop(first);
    assert!(matters(8) && hidden.is_wanted());
    let second = hidden.ask(Now(8)).expect("it is wanted");
    assert!(matters(9) && !hidden.is_wanted(), "the answer is under way");
    hidden.learn(Catalog::default(), &second);
    drop(second);
    assert!(!matters(10) && !hidden.is_wanted());
    assert!(hidden.ask_at_login(&options, (Now(0), Now(11))).is_none(), "it is known");
}

#[test]
fn an_answer_that_comes_late_does_not_take_the_place_of_a_newer_one() {
    let (hidden, options) = (Hidden::default(), PoolOptions::default());
    hidden.learn(Catalog::default(), &asked(9));
    assert!(!hidden.learn(Catalog::unknown(), &asked(8)));
    assert!(!hidden.matters(May(May::WRITE), &options, (Now(0), Now(10))));
    assert!(hidden.learn(Catalog::unknown(), &asked(9)), "that is none older");
}
