//! Notes of the ends of sessions.

use std::time::Duration;

use refrain_pool::event::{Command, Level, Note};

use crate::harness::World;

/// Returns the notes of a cause.
fn notes<'a>(world: &'a World, cause: &str) -> Vec<&'a Note> {
    world.notes.iter().filter(|note| note.cause == cause).collect()
}

#[test]
fn each_session_that_began_ends_with_a_line_of_its_own_whatever_the_cause() {
    for wanted in [false, true] {
        let mut world = World::new("client_idle_timeout = \"5s\"");
        if wanted {
            world.notes_sessions();
        }
        let clients: Vec<_> = (0..3).map(|_| world.client()).collect();
        world.pass(Duration::from_secs(6));
        assert!(clients.iter().all(|client| !world.is_there(*client)));
        let logins = notes(&world, "client_login");
        assert!(logins.len() == 3 && logins.iter().all(|note| note.is_each == wanted));
        let ends = notes(&world, "client_idle_timeout");
        assert!(ends.len() == 3 && ends.iter().all(|note| note.is_each == wanted), "{ends:?}");
        let told = if wanted { "age 5 s" } else { "" };
        assert!(ends.iter().all(|note| note.level == Level::Warn && note.detail == told));
    }
}

/// A flood of logins that fail is counted, whatever the operator wants to see.
#[test]
fn a_login_that_fails_has_its_age_and_is_counted_with_others() {
    let mut world = World::new("client_login_timeout = \"5s\"\n[pool]\n");
    world.notes_sessions();
    world.silent_client(0);
    let late = world.silent_client(0);
    world.sends(late, "shop");
    world.client_of("nowhere at all");
    world.pass(Duration::from_secs(6));
    for (cause, count) in [("login_timeout", 2), ("client_protocol", 1)] {
        let ends = notes(&world, cause);
        assert_eq!(ends.len(), count, "{:?}", world.notes);
        assert!(ends.iter().all(|note| !note.is_each && note.detail.starts_with("age ")));
    }
}

#[test]
fn clients_whose_server_cannot_be_had_have_lines_of_their_own() {
    let mut world = World::new("server_connect_timeout = \"1s\"\npool_size = 1");
    world.notes_sessions();
    let (anna, bob) = (world.client(), world.client());
    world.asks(anna, "begin");
    world.asks(bob, "waits");
    world.command(&Command::Kill(None));
    for client in [anna, bob] {
        assert!(!world.is_there(client));
    }
    let ends = notes(&world, "killed");
    assert!(ends.len() == 2 && ends.iter().all(|note| note.is_each), "{:?}", world.notes);
}
