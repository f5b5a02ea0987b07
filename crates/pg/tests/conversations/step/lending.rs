//! A core whose client waits gets an idle server of another core.

use crate::talk::*;

fn two_cores() -> Conversation {
    Conversation::on_cores(2, options("pool_size = 1"))
}

#[test]
fn an_idle_server_moves_to_the_core_whose_client_waits() {
    let talk = two_cores();
    let (alice, bob) = (talk.client_on(0), talk.client_on(1));
    let server = talk.server(1);
    alice.asks(&server, "select 1", one_row());
    assert_eq!(server.core(), 0);
    bob.asks(&server, "select 2", one_row());
    assert_eq!(server.core(), 1);
    alice.asks(&server, "select 3", one_row());
    assert_eq!(server.core(), 0);
}

#[test]
fn a_server_that_is_lent_moves_when_its_client_is_done() {
    let talk = two_cores();
    let (alice, bob) = (talk.client_on(0), talk.client_on(1));
    let server = talk.server(1);
    alice.opens_block(&server);
    bob.sends([query("select 2")]);
    server.gets_nothing();
    alice.commits(&server);
    server.gets([query("select 2")]).answers(one_row());
    bob.gets(one_row());
    assert_eq!(server.core(), 1);
}

#[test]
fn what_is_known_of_the_server_moves_with_it() {
    let talk = two_cores();
    let (alice, bob) = (talk.client_on(0), talk.client_on(1));
    let server = talk.server(1);
    alice.prepares_by_name(&server, "s", "update t set a = 1", "~1");
    bob.sends([parse("mine", "update t set a = 1"), bind("", "mine"), execute(""), sync()]);
    server.gets([bind("", "~1"), execute(""), sync()]);
    server.answers([bind_complete(), complete("UPDATE 1"), ready()]);
    bob.gets([parse_complete(), bind_complete(), complete("UPDATE 1"), ready()]);
}

#[test]
fn a_client_that_left_while_the_server_was_on_its_way_leaves_it_to_the_next() {
    let talk = two_cores();
    let (alice, bob) = (talk.client_on(0), talk.client_on(1));
    let server = talk.server(1);
    talk.keeps_mail();
    bob.sends([query("select 2")]);
    bob.breaks();
    talk.delivers();
    server.gets_nothing();
    alice.asks(&server, "select 1", one_row());
}

#[test]
fn a_server_that_still_has_output_to_take_in_moves_once_it_has() {
    let talk = two_cores();
    let (alice, bob) = (talk.client_on(0), talk.client_on(1));
    let server = talk.server(1);
    server.stalls();
    alice.sends([parse("s", "update t set a = 1"), sync()]);
    server.takes_in();
    let got = server.forgets();
    assert_eq!(got.len(), 3);
    server.answers([parse_complete(), parameters(&[]), no_data(), ready()]);
    alice.gets([parse_complete(), ready()]);
    bob.asks(&server, "select 2", one_row());
}
