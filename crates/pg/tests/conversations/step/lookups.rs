//! Jobs that ask a database about users: their server, its settings, and their place in line.

use std::time::Duration;

use crate::login::lookup::{asked, looking_up, says, user};
use crate::talk::*;

/// Connects a client under this name.
fn login(talk: &Conversation, name: &str, database: &str) -> Party {
    let client = talk.newcomer();
    client.sends([startup(0, &[("user", name), ("database", database)])]);
    client
}

/// Lets in the user `asker`, who asks in the database `auth`, and has a secret of its own.
fn asker(talk: &Conversation) -> Party {
    let client = login(talk, "asker", "auth");
    client.gets([authentication(3, b"")]).sends([says("own")]).is_let_in();
    client
}

fn with_asker(more: &str) -> Conversation {
    let users = "[users.asker]\npassword = \"own\"\npool_size = 1";
    Conversation::new(looking_up(&format!("{more}\n{users}")))
}

#[test]
fn a_lookup_waits_in_line_behind_the_client_that_has_the_server() {
    let talk = with_asker("");
    let (client, server) = (asker(&talk), talk.server(1));
    client.opens_block(&server);
    let alice = login(&talk, "alice", "d");
    alice.gets_nothing();
    server.gets_nothing();
    client.sends([query("commit")]);
    server.gets([query("commit")]).answers([complete("COMMIT"), ready()]);
    client.gets([complete("COMMIT"), ready()]);
    server.gets(asked("alice")).answers(user("alice", "secret"));
    alice.gets([authentication(3, b"")]);
}

#[test]
fn names_in_the_query_mean_what_they_mean_in_a_new_session() {
    let talk = with_asker("");
    let (client, server) = (asker(&talk), talk.server(1));
    client.moves_to_tokyo(&server);
    let alice = login(&talk, "alice", "d");
    server.gets([vec![query_with("'timezone',NULL")], asked("alice")].concat());
    server.answers(synced(&["UTF8", "on", "UTC"]));
    server.answers(user("alice", "secret"));
    alice.gets([authentication(3, b"")]);
    // Another setting than the default counts for the client whose it is.
    client.sends([query("select 1")]);
    server.gets([query_with("Asia/Tokyo"), query("select 1")]);
    server.answers(synced(&["Asia/Tokyo"])).answers(one_row());
    client.gets(one_row());
}

#[test]
fn one_server_looks_up_one_user_after_the_other() {
    let talk = with_asker("");
    let clients = ["a", "b", "c"].map(|name| login(&talk, name, "d"));
    let server = talk.server(1);
    for (name, client) in ["a", "b", "c"].iter().zip(&clients) {
        client.gets_nothing();
        server.gets(asked(name)).answers(user(name, "secret"));
        client.gets([authentication(3, b"")]);
    }
}

#[test]
fn several_servers_look_up_several_users() {
    let talk = Conversation::new(looking_up(""));
    let (alice, bob) = (login(&talk, "alice", "d"), login(&talk, "bob", "d"));
    talk.server(1).gets(asked("alice"));
    talk.server(2).gets(asked("bob")).answers(user("bob", "secret"));
    bob.gets([authentication(3, b"")]);
    talk.server(1).answers(user("alice", "secret"));
    alice.gets([authentication(3, b"")]);
}

#[test]
fn a_query_that_hangs_is_given_up() {
    let talk = Conversation::new(looking_up(""));
    let alice = login(&talk, "alice", "d");
    let server = talk.server(1);
    server.gets(asked("alice"));
    talk.waits(Duration::from_secs(6));
    alice.gets([fatal("57P03", "could not look up the user")]);
    assert!(server.is_closed());
    talk.cancel(1).forgets();
    server.forgets();
}
