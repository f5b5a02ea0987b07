//! Tests of what the catalog tells.

use super::*;

#[test]
fn views_that_set_numbers_are_asked_for() {
    for call in ["get_lock", "last_insert_id(", "nextval(", "setval("] {
        assert!(QUESTION.contains(&format!("LOCATE('{call}', LOWER(VIEW_DEFINITION))")));
    }
}

fn read(rows: &[[&str; 3]]) -> Catalog {
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
    for text in ["SELECT v11 FROM t", "SELECT 1", "COMMIT"] {
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
fn an_answer_with_an_unknown_row_is_none() {
    assert_eq!(read(&[["t\0r\0i", "", ""]]), Catalog::unknown());
}

#[test]
fn an_answer_holds_for_its_time_and_until_a_view_or_trigger_changes() {
    let (hidden, mut options) = (Hidden::default(), PoolOptions::default());
    let write = May(May::READ | May::WRITE);
    let matters = |options: &PoolOptions, changed, now| {
        hidden.matters(write, options, (Now(changed), Now(now)))
    };
    assert!(matters(&options, 0, 5) && hidden.is_wanted(), "nothing is known");
    assert!(hidden.takes_wish() && !hidden.is_wanted());
    hidden.learn(Catalog::default(), Now(5));
    assert!(!matters(&options, 0, 6) && !hidden.is_wanted());
    assert!(!matters(&options, 0, 40_000_005) && hidden.is_wanted(), "it is soon too old");
    assert!(matters(&options, 0, 60_000_005), "it is too old");
    assert!(matters(&options, 5, 6), "there may be another trigger");
    let is_current = |changed, now| hidden.is_current(&options, (Now(changed), Now(now)));
    assert!(is_current(0, 40_000_005));
    assert!(!is_current(0, 60_000_005) && !is_current(5, 6));
    hidden.learn(read(&[["trigger", "CALL p()", ""]]), Now(5));
    assert!(matters(&options, 0, 6) && !hidden.has_views());
    assert!(!hidden.matters(May(May::READ), &options, (Now(0), Now(6))));
    options.untold_changes = UntoldChanges::Ignore;
    assert!(!matters(&options, 0, 6));
    assert!(hidden.matters(May(May::CALL), &options, (Now(0), Now(6))));
    options.untold_changes = UntoldChanges::Reset;
    hidden.learn(Catalog::default(), Now(5));
    assert!(matters(&options, 0, 6));
}
