//! Views and triggers that may leave something without a report: whether a server is made as new
//! for the next client.

use std::time::Duration;

use crate::world::{USUAL, World, talk};

const ONE: &str = "pool_size = 1";

/// Has a client run a text, and another one `ok`. Returns the log.
fn in_turns(world: &mut World, text: &str) -> Vec<String> {
    let [first, second] = [world.client(USUAL, "shop"), world.client(USUAL, "shop")];
    world.log();
    world.query(first, text);
    assert_eq!(world.query(second, "ok"), "ok");
    let log = world.log();
    world.leave(first);
    world.leave(second);
    log
}

fn resets(world: &mut World, text: &str) -> bool {
    in_turns(world, text).contains(&"RESET".to_owned())
}

#[test]
fn a_catalog_without_them_changes_nothing() {
    talk(ONE, |world| {
        world.catalog = &[&["trigger", "SET NEW.a = NOW()", ""]];
        for text in ["update", "ok", "ok select", "insert:5"] {
            assert!(!resets(world, text), "{text}");
        }
        assert!(resets(world, "ok f(5)"));
    });
}

#[test]
fn a_trigger_matters_behind_what_may_run_it() {
    talk(ONE, |world| {
        world.catalog = &[&["trigger", "SELECT 5 INTO @a", ""]];
        for text in ["update", "insert:5", "delete", "replace:5"] {
            assert!(resets(world, text), "{text}");
        }
        assert!(!resets(world, "ok"));
    });
}

#[test]
fn a_view_matters_where_a_text_names_it() {
    talk(ONE, |world| {
        world.catalog = &[&["view", "recent", "1"]];
        assert!(resets(world, "ok Recent") && resets(world, "update `recent`"));
        assert!(!resets(world, "ok") && !resets(world, "update"));
    });
}

#[test]
fn options_that_do_not_ask() {
    talk("pool_size = 1\nuntold_changes = \"reset\"", |world| {
        assert!(resets(world, "update") && resets(world, "ok"));
    });
    talk("pool_size = 1\nuntold_changes = \"ignore\"", |world| {
        world.catalog = &[&["trigger", "SELECT 5 INTO @a", ""]];
        assert!(!resets(world, "update"));
    });
}

#[test]
fn the_catalog_is_asked_again_behind_a_change_and_when_the_answer_is_old() {
    talk(ONE, |world| {
        assert!(!resets(world, "update"));
        world.change_catalog(&[&["trigger", "SELECT 5 INTO @a", ""]]);
        world.pass(Duration::from_secs(1));
        assert!(resets(world, "create trigger"), "it may be another's");
        world.pass(Duration::from_secs(1));
        assert!(in_turns(world, "ok").contains(&"CATALOG".to_owned()));
        assert!(resets(world, "update") && !resets(world, "ok"));
        world.change_catalog(&[]);
        world.pass(Duration::from_secs(40));
        assert!(in_turns(world, "update").contains(&"CATALOG".to_owned()));
        assert!(!resets(world, "update"));
        world.change_catalog(&[&["trigger", "SELECT 5 INTO @a", ""]]);
        world.pass(Duration::from_secs(61));
        assert!(resets(world, "update"), "the answer is too old");
    });
}

#[test]
fn a_user_who_does_not_see_triggers_is_told_of_once() {
    talk(ONE, |world| {
        world.catalog = &[&["INSERT", "shop", ""]];
        assert!(resets(world, "insert:5") && resets(world, "insert:5"));
        let told = world.notes.iter().filter(|note| note.detail.contains("GRANT TRIGGER"));
        assert_eq!(told.count(), 1);
    });
}
