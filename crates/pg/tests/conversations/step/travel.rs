//! Clients that move between cores keep their statements, settings and keys.

use crate::talk::*;

fn two_cores() -> Conversation {
    Conversation::on_cores(2, options("pool_size = 1"))
}

#[test]
fn a_client_that_moves_keeps_its_named_statements() {
    let talk = two_cores();
    let alice = talk.client_on(0);
    let server = talk.server(1);
    alice.prepares_by_name(&server, "s", "update t set a = 1", "~1");
    talk.gives_clients(0, 1);
    assert_eq!(alice.core(), 1);
    alice.sends([bind("", "s"), execute(""), sync()]);
    server.gets([bind("", "~1"), execute(""), sync()]);
    server.answers([bind_complete(), complete("UPDATE 1"), ready()]);
    alice.gets([bind_complete(), complete("UPDATE 1"), ready()]);
    assert_eq!(server.core(), 1);
}

#[test]
fn a_client_that_moves_counts_as_a_holder_of_its_statements() {
    let talk = two_cores();
    let alice = talk.client_on(0);
    let server = talk.server(1);
    alice.prepares_by_name(&server, "s", "update t set a = 1", "~1");
    talk.gives_clients(0, 1);
    let held = |talk: &Conversation| talk.statements()[0].clients;
    assert_eq!(held(&talk), 1);
    alice.breaks();
    assert_eq!(held(&talk), 0);
}

#[test]
fn a_client_that_moves_keeps_its_settings() {
    let talk = two_cores();
    let alice = talk.client_on(0);
    let server = talk.server(1);
    alice.sends([query("set timezone = 'Asia/Tokyo'")]);
    let set = [complete("SET"), parameter("TimeZone", "Asia/Tokyo"), ready()];
    server.gets([query("set timezone = 'Asia/Tokyo'")]).answers(set.clone());
    alice.gets(set);
    talk.gives_clients(0, 1);
    assert_eq!(alice.core(), 1);
    // Another client has had the server meanwhile.
    let bob = talk.client_on(1);
    bob.sends([query("select 1")]);
    server.gets([query_with("pg_catalog.set_config('timezone',NULL,false)"), query("select 1")]);
    server.answers(synced(&["UTF8", "on", "UTC"])).answers(one_row());
    bob.gets(one_row());
    alice.sends([query("select 2")]);
    let sets = query_with("pg_catalog.set_config('timezone','Asia/Tokyo',false)");
    server.gets([sets, query("select 2")]);
}

#[test]
fn a_client_with_a_transaction_or_pins_stays() {
    let talk = two_cores();
    let alice = talk.client_on(0);
    let server = talk.server(1);
    alice.opens_block(&server);
    talk.gives_clients(0, 1);
    assert_eq!(alice.core(), 0);
    alice.commits(&server);
    talk.gives_clients(0, 1);
    assert_eq!(alice.core(), 1);
}

#[test]
fn a_cancel_request_finds_a_client_that_has_moved() {
    let talk = two_cores();
    let alice = talk.client_on(0);
    let server = talk.server(1);
    talk.gives_clients(0, 1);
    // The connection that it had at its login is another client's by now.
    let bob = talk.client_on(0);
    assert_ne!(alice.key().0, bob.key().0, "alice still has her number");
    alice.sends([query("select pg_sleep(9)")]);
    server.gets([query("select pg_sleep(9)")]);
    let (pid, key) = alice.key();
    talk.newcomer().sends([cancel_request(pid, &key)]);
    talk.cancel(1).gets_bytes(&cancel_request(1, b"key!").bytes).ends_stream();
    let canceled = [error("57014", "canceling statement due to user request"), ready()];
    server.answers(canceled.clone());
    alice.gets(canceled);
}
