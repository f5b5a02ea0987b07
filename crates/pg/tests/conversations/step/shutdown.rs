//! Clients in a shutdown finish the transaction that they are in, and begin no other.

use refrain_pool::event::Command;

use crate::talk::*;

fn shutdown() -> Line {
    fatal("57P01", "terminating connection due to administrator command")
}

#[test]
fn a_request_behind_one_under_way_is_not_sent() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query("select 1")]);
    server.gets([query("select 1")]);
    talk.commands(Command::Drain);
    alice.sends([query("select 2"), query("select 3")]);
    server.gets_nothing();
    server.answers(one_row());
    alice.gets(one_row().into_iter().chain([shutdown()]));
    assert!(alice.is_closed() && server.is_closed() && talk.is_drained());
}

#[test]
fn requests_sent_before_are_all_answered() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query("select 1"), query("select 1")]);
    server.gets([query("select 1"), query("select 1")]);
    talk.commands(Command::Drain);
    server.answers(one_row());
    alice.gets(one_row());
    server.answers(one_row());
    alice.gets(one_row().into_iter().chain([shutdown()]));
}

#[test]
fn a_transaction_goes_on_to_its_end_and_no_further() {
    for mode in ["transaction", "session"] {
        let talk = Conversation::new(options(&format!("pool_mode = \"{mode}\"\npool_size = 1")));
        let (alice, server) = (talk.client(), talk.server(1));
        alice.opens_block(&server);
        talk.commands(Command::Drain);
        alice.sends([query("select 1"), query("commit"), query("select 2")]);
        server.gets([query("select 1")]).answers([complete("SELECT 1"), ready_in_block()]);
        server.gets([query("commit")]).answers([complete("COMMIT"), ready()]);
        let end = [complete("COMMIT"), ready(), shutdown()];
        alice.gets([complete("SELECT 1"), ready_in_block()].into_iter().chain(end));
        server.gets([terminate()]);
        assert!(alice.is_closed() && server.is_closed());
    }
}

#[test]
fn an_extended_segment_is_read_up_to_its_sync() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([parse("", "select 1"), bind("", "")]);
    server.gets([parse("", "select 1"), describe_statement(""), bind("", "")]);
    talk.commands(Command::Drain);
    alice.sends([execute(""), sync(), parse("", "select 2"), sync()]);
    server.gets([execute(""), sync()]);
    server.answers([parse_complete(), parameters(&[]), no_data(), bind_complete()]);
    server.answers([complete("SELECT 1"), ready()]);
    let reply = [parse_complete(), bind_complete(), complete("SELECT 1"), ready()];
    alice.gets(reply.into_iter().chain([shutdown()]));
}

#[test]
fn the_data_of_a_copy_are_read() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query("copy t from stdin")]);
    server.gets([query("copy t from stdin")]);
    talk.commands(Command::Drain);
    alice.sends([copy_data("1\n")]);
    server.gets_nothing().answers([copy_in_response()]);
    server.gets([copy_data("1\n")]);
    alice.sends([copy_done(), query("select 1")]);
    server.gets([copy_done(), flush()]).answers([complete("COPY 1"), ready()]);
    alice.gets([copy_in_response(), complete("COPY 1"), ready(), shutdown()]);
}

#[test]
fn a_client_that_waits_is_served_once() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.opens_block(&server);
    bob.sends([query("select 1"), query("select 2")]);
    talk.commands(Command::Drain);
    alice.sends([query("commit")]);
    server.gets([query("commit")]).answers([complete("COMMIT"), ready()]);
    alice.gets([complete("COMMIT"), ready(), shutdown()]);
    server.gets([query("select 1")]).answers(one_row());
    bob.gets(one_row().into_iter().chain([shutdown()]));
    assert!(server.is_closed() && talk.is_drained());
}
