//! Tests of settings.

use super::*;
use crate::sweep;

fn base() -> Base {
    let mut base = Base::default();
    for (name, value) in [
        ("autocommit", "ON"),
        ("character_set_results", "utf8mb4"),
        ("lock_wait_timeout", "86400"),
        ("sql_mode", "STRICT_TRANS_TABLES"),
        ("timestamp", "1.5"),
    ] {
        base.add(name.as_bytes(), value.as_bytes());
    }
    base
}

#[test]
fn what_differs_is_set() {
    let base = base();
    let (mut from, mut to) = (Settings::default(), Settings::default());
    assert_eq!(to.statement(&from, &base), None);
    from.set(&base, b"autocommit", b"OFF");
    from.set(&base, b"sql_mode", b"");
    to.set(&base, b"sql_mode", b"");
    to.set(&base, b"character_set_results", b"");
    to.set(&base, b"lock_wait_timeout", b"7");
    let due = "SET @@session.autocommit='ON', @@session.character_set_results=NULL, \
               @@session.lock_wait_timeout=7";
    let text = to.statement(&from, &base).expect("they differ");
    assert_eq!(String::from_utf8_lossy(&text), due);
    from.set(&base, b"autocommit", b"ON");
    to.set(&base, b"lock_wait_timeout", b"86400");
    to.set(&base, b"character_set_results", b"utf8mb4");
    assert_eq!(to.statement(&from, &base), None);
}

#[test]
fn a_character_set_comes_with_its_collation() {
    let mut base = base();
    let [set, collation] = [&b"character_set_connection"[..], b"collation_connection"];
    base.add(set, b"utf8mb4");
    base.add(collation, b"utf8mb4_0900_ai_ci");
    let (mut from, mut to) = (Settings::default(), Settings::default());
    // Behind SET collation_connection, MySQL reports that alone.
    from.set(&base, set, b"latin1");
    from.set(&base, collation, b"utf8mb4_bin");
    to.set(&base, collation, b"utf8mb4_bin");
    let due = "SET @@session.character_set_connection='utf8mb4', \
               @@session.collation_connection='utf8mb4_bin'";
    let text = to.statement(&from, &base).expect("they differ");
    assert_eq!(String::from_utf8_lossy(&text), due);
    let text = from.statement(&to, &base).expect("they differ");
    assert_eq!(String::from_utf8_lossy(&text), due.replacen("utf8mb4", "latin1", 1));
    to.set(&base, collation, b"utf8mb4_0900_ai_ci");
    from.set(&base, collation, b"utf8mb4_0900_ai_ci");
    let text = to.statement(&from, &base).expect("they differ");
    let due = due.replace("_bin", "_0900_ai_ci");
    assert_eq!(String::from_utf8_lossy(&text), due);
    let text = from.statement(&to, &base).expect("they differ");
    assert_eq!(String::from_utf8_lossy(&text), due.replacen("utf8mb4", "latin1", 1));
}

#[test]
fn a_character_set_that_was_set_alone_brings_its_default() {
    let mut base = base();
    let [set, collation] = [&b"character_set_server"[..], b"collation_server"];
    base.add(set, b"utf8mb4");
    base.add(collation, b"utf8mb4_0900_ai_ci");
    let (mut from, mut to) = (Settings::default(), Settings::default());
    to.set(&base, set, b"latin1");
    let text = |to: &Settings, from: &Settings| {
        String::from_utf8(to.statement(from, &base).expect("they differ")).expect("a text")
    };
    assert_eq!(text(&to, &from), "SET @@session.character_set_server='latin1'");
    from.set(&base, collation, b"utf8mb4_bin");
    assert_eq!(text(&to, &from), "SET @@session.character_set_server='latin1'");
    from.set(&base, set, b"latin1");
    assert_eq!(text(&to, &from), "SET @@session.character_set_server='latin1'");
    // Each sets the other by itself.
    from.forget_other(set);
    assert_eq!(to.statement(&from, &base), None);
    from.set(&base, collation, b"utf8mb4_bin");
    from.forget_other(collation);
    let due = "SET @@session.character_set_server='utf8mb4', \
               @@session.collation_server='utf8mb4_bin'";
    assert_eq!(text(&from, &to), due);
    let both = "SET @@session.character_set_server='utf8mb4', \
                @@session.collation_server='utf8mb4_0900_ai_ci'";
    assert_eq!(text(&Settings::default(), &to), both);
}

#[test]
fn an_environment_is_what_decides_on_meanings() {
    let base = base();
    let mut settings = Settings::new(Some(b"shop"), true);
    settings.set(&base, b"autocommit", b"OFF");
    settings.set(&base, b"sql_mode", b"");
    let environment = settings.environment();
    assert!(settings.are_in(&environment));
    settings.set(&base, b"autocommit", b"ON");
    assert!(settings.are_in(&environment));
    let mut other = Settings::new(Some(b"other"), false);
    other.set(&base, b"lock_wait_timeout", b"7");
    assert!(!other.are_in(&environment));
    let put = other.put_in(&environment);
    assert!(put.are_in(&environment) && !put.has_several);
    assert_eq!(put.changed.len(), 2, "the time to wait stays");
    settings.set(&base, b"time_zone", b"UTC");
    assert!(!settings.are_in(&environment));
}

#[test]
fn a_change_is_taken_over_alone() {
    let base = base();
    let mut before = Settings::new(Some(b"shop"), true);
    before.set(&base, b"sql_mode", b"");
    before.set(&base, b"lock_wait_timeout", b"7");
    let mut after = before.clone();
    after.set(&base, b"sql_mode", b"STRICT_TRANS_TABLES");
    after.set(&base, b"autocommit", b"OFF");
    let mut own = Settings::new(Some(b"other"), false);
    own.set(&base, b"sql_mode", b"ANSI");
    own.follow(&before, &after);
    let mut due = Settings::new(Some(b"other"), false);
    due.set(&base, b"autocommit", b"OFF");
    assert_eq!(own, due);
}

#[test]
fn equal_settings_are_the_same() {
    let mut interned = Interned::default();
    let mut all: Vec<_> = (0..3 * sweep::LENGTH_MIN)
        .map(|at| Arc::new(Settings::new(Some(at.to_string().as_bytes()), false)))
        .collect();
    let mut again: Vec<_> = all.iter().map(|one| Arc::new(Settings::clone(one))).collect();
    all.iter_mut().chain(&mut again).for_each(|one| interned.intern(one));
    assert!(all.iter().zip(&again).all(|(one, other)| Arc::ptr_eq(one, other)));
    drop((all, again));
    interned.sweep = Sweep::default();
    interned.intern(&mut Arc::default());
    assert_eq!(interned.known.len(), 1, "nobody has the others any more");
}

#[test]
fn newer_mysql_fixes_types() {
    for (version, fixes) in [
        ("8.0.15", false),
        ("8.0.21-log", false),
        ("8.0.22", true),
        ("8.4.3", true),
        ("9.7.4-2", true),
        ("10.11.19-MariaDB-0+deb12u1", false),
        ("11.4.2-mariadb", false),
        ("", false),
    ] {
        let mut base = Base::default();
        base.add(b"version", version.as_bytes());
        assert_eq!(base.fixes_types(), fixes, "{version}");
    }
}

#[test]
fn strings_are_safe() {
    let mut text = Vec::new();
    put_value(&mut text, b"init", b"a'b");
    assert_eq!(text, b"x'612762'");
    text.clear();
    put_value(&mut text, b"default_tmp_storage_engine", b"");
    assert_eq!(text, b"NULL");
    text.clear();
    put_value(&mut text, b"system_versioning_asof", b"DEFAULT");
    assert_eq!(text, b"DEFAULT");
}

#[test]
fn the_character_set_of_the_schema_comes_with_the_schema() {
    let mut base = Base::default();
    for name in ["character_set_database", "character_set_server", "collation_database"] {
        base.add(name.as_bytes(), b"latin1");
    }
    assert!(!base.tracks(b"character_set_database") && !base.tracks(b"collation_database"));
    assert!(String::from_utf8_lossy(&base.tracking()).ends_with("='character_set_server'"));
}

#[test]
fn some_variables_are_no_settings() {
    let text = base().tracking();
    let text = String::from_utf8_lossy(&text);
    assert!(text.ends_with("='autocommit,character_set_results,lock_wait_timeout,sql_mode'"));
    assert!(base().tracks(b"sql_mode") && !base().tracks(b"timestamp"));
}
