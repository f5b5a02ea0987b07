//! Replies are forwarded in runs, which end where one is skipped, rewritten or faked.

use crate::talk::*;

#[test]
fn replies_to_refrains_own_messages_are_cut_out_of_one_packet() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares(&server, "s", "update t set a = 1");
    alice.asks(&server, "select 1", one_row());
    alice.sends([query("select 2"), bind("", "s"), execute(""), sync(), query("select 3")]);
    server.gets([
        query("select 2"),
        parse("", "update t set a = 1"),
        bind("", ""),
        execute(""),
        sync(),
        query("select 3"),
    ]);
    let own = [parse_complete()];
    let theirs = [bind_complete(), complete("UPDATE 1"), ready()];
    let (second, third) = (one_row(), one_row());
    server.answers([&second[..], &own, &theirs, &third].concat());
    alice.gets([&second[..], &theirs, &third].concat());
}

#[test]
fn fake_replies_stand_where_the_server_would_have_sent_them() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares(&server, "a", "update t set a = 1");
    alice.sends([close_statement("a"), bind("", "x"), sync(), query("select 1")]);
    server.gets([bind("", "x"), sync(), query("select 1")]);
    let error = error("26000", "prepared statement \"x\" does not exist");
    server.answers([&[error.clone(), ready()], &one_row()[..]].concat());
    alice.gets([&[close_complete(), error, ready()], &one_row()[..]].concat());
}

#[test]
fn a_message_that_is_not_for_the_client_may_arrive_in_pieces() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([parse("s", "select 1"), sync()]);
    server.gets([parse("", "select 1"), describe_statement(""), sync()]);
    server.sends_byte_by_byte([parse_complete(), parameters(&[]), columns(&["a"]), ready()]);
    alice.gets([parse_complete(), ready()]);
}

#[test]
fn a_skipped_reply_in_the_middle_of_a_packet_leaves_its_neighbours_as_they_came() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([parse("s", "select 1"), bind("", "s"), execute(""), sync()]);
    server.gets([parse("", "select 1"), describe_statement(""), bind("", ""), execute(""), sync()]);
    server.answers([
        parse_complete(),
        parameters(&[]),
        columns(&["a"]),
        bind_complete(),
        row(&["1"]),
        complete("SELECT 1"),
        ready(),
    ]);
    let rest = [row(&["1"]), complete("SELECT 1"), ready()];
    alice.gets([parse_complete(), bind_complete()].into_iter().chain(rest));
}

#[test]
fn a_fake_reply_stands_between_replies_of_one_packet() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares(&server, "a", "update t set a = 1");
    alice.sends([bind("", "a"), close_statement("a"), execute(""), sync()]);
    server.gets([bind("", ""), execute(""), sync()]);
    server.answers([bind_complete(), complete("UPDATE 1"), ready()]);
    alice.gets([bind_complete(), close_complete(), complete("UPDATE 1"), ready()]);
}
