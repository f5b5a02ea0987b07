//! Each message of a client goes to its handler, waits, or is ignored.

use crate::talk::*;

/// Has a client begin a COPY from it.
fn begins_copy(client: &Party, server: &Party) {
    client.sends([query("copy t from stdin")]);
    server.gets([query("copy t from stdin")]).answers([copy_in_response()]);
    client.gets([copy_in_response()]);
}

#[test]
fn a_message_that_is_too_long_ends_the_session() {
    let long = |length: usize| query(&format!("select '{}'", "x".repeat(length)));
    let talk = Conversation::new(options("pool_size = 1\nmax_packet_size = \"256KiB\""));
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    // It comes in parts, as all long messages do.
    let short = long(200 * 1024);
    for part in short.bytes.chunks(64 * 1024) {
        alice.sends_bytes(part);
    }
    server.gets([short]).answers(one_row());
    alice.gets(one_row());
    // What was sent before is answered first.
    bob.sends([query("select 1")]).sends_bytes(&long(256 * 1024).bytes[..64 * 1024]);
    server.gets([query("select 1")]).answers(one_row());
    let told = fatal("54000", "the message is longer than max_packet_size");
    bob.gets([one_row(), vec![told]].concat());
    assert!(bob.is_closed());
    server.gets_nothing();
}

#[test]
fn messages_behind_an_error_are_ignored_up_to_the_sync() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([parse("", "selec"), flush()]);
    server.gets([parse("", "selec"), flush()]).answers([error("42601", "syntax error")]);
    alice.gets([error("42601", "syntax error")]);
    alice.sends([bind("", ""), execute(""), query("select 1"), parse("x", "select 1")]);
    server.gets_nothing();
    alice.sends([sync(), query("select 1")]);
    server.gets([sync(), query("select 1")]);
    server.answers([ready()]).answers(one_row());
    alice.gets([vec![ready()], one_row()].concat());
}

#[test]
fn a_pipeline_of_two_segments_fails_in_the_first_and_goes_on_in_the_second() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    let segment = || [parse("", "update t set a = 1"), bind("", ""), execute(""), sync()];
    alice.sends(segment().into_iter().chain([parse("", "delete from t")]).chain([
        bind("", ""),
        execute(""),
        sync(),
    ]));
    server.gets(segment().into_iter().chain([
        parse("", "delete from t"),
        bind("", ""),
        execute(""),
        sync(),
    ]));
    server.answers([parse_complete(), error("22P02", "invalid"), ready()]);
    server.answers([parse_complete(), bind_complete(), complete("DELETE 3"), ready()]);
    alice.gets([
        parse_complete(),
        error("22P02", "invalid"),
        ready(),
        parse_complete(),
        bind_complete(),
        complete("DELETE 3"),
        ready(),
    ]);
}

#[test]
fn bytes_that_arrive_one_by_one_are_the_same_conversation() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    let said = || {
        [
            parse("s", "update t set a = $1"),
            describe_statement("s"),
            bind_value("p", "s", "7"),
            describe_portal("p"),
            execute("p"),
            close_portal("p"),
            sync(),
        ]
    };
    alice.sends_byte_by_byte(said());
    server.gets([
        parse("", "update t set a = $1"),
        describe_statement(""), // nobody knows yet that the client will ask itself
        describe_statement(""),
        bind_value("p", "", "7"),
        describe_portal("p"),
        execute("p"),
        close_portal("p"),
        sync(),
    ]);
    let reply = || {
        [
            parse_complete(),
            parameters(&[25]),
            no_data(),
            bind_complete(),
            no_data(),
            complete("UPDATE 1"),
            close_complete(),
            ready(),
        ]
    };
    server.sends_byte_by_byte([parse_complete(), parameters(&[25]), no_data()]);
    server.sends_byte_by_byte(reply().into_iter().skip(1));
    alice.gets(reply());
}

#[test]
fn copy_data_streams_to_the_server_and_its_end_is_answered_once() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    begins_copy(&alice, &server);
    alice.sends([copy_data("1\n"), copy_data("2\n"), copy_done()]);
    server.gets([copy_data("1\n"), copy_data("2\n"), copy_done()]);
    server.answers([complete("COPY 2"), ready()]);
    alice.gets([complete("COPY 2"), ready()]);
    assert_eq!(talk.snapshot().clients[0].server, None, "the server is free again");
}

#[test]
fn a_copy_that_its_client_fails_ends_with_the_servers_error() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    begins_copy(&alice, &server);
    alice.sends([copy_data("1\n"), copy_fail("no more")]);
    server.gets([copy_data("1\n"), copy_fail("no more")]);
    server.answers([error("57014", "COPY from stdin failed: no more"), ready()]);
    alice.gets([error("57014", "COPY from stdin failed: no more"), ready()]);
}

#[test]
fn another_message_amid_copy_data_ends_the_session_and_closes_the_server() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    begins_copy(&alice, &server);
    alice.sends([copy_data("1\n"), query("select 1")]);
    server.gets([copy_data("1\n"), terminate()]);
    alice.gets([
        error("08P01", "unexpected message type 0x51 during COPY from stdin"),
        fatal("08P01", "terminating connection because protocol synchronization was lost"),
    ]);
    assert!(alice.is_closed() && server.is_closed());
}

#[test]
fn copy_to_the_client_streams_and_the_next_query_may_be_on_its_way() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query("copy t to stdout"), query("select 1")]);
    server.gets([query("copy t to stdout"), query("select 1")]);
    let out = [copy_out_response(), copy_data("1\n"), copy_done(), complete("COPY 1"), ready()];
    server.answers(out.clone());
    alice.gets(out);
    server.answers(one_row());
    alice.gets(one_row());
}

#[test]
fn a_message_of_an_unknown_type_ends_the_session_behind_the_replies_before_it() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query("select 1"), raw(b"z\0\0\0\x04")]);
    server.gets([query("select 1")]);
    alice.gets_nothing();
    server.answers(one_row());
    alice.gets([one_row(), vec![fatal("08P01", "invalid message")]].concat());
    assert!(alice.is_closed() && !server.is_closed());
}

#[test]
fn a_function_call_is_a_segment_of_its_own() {
    let talk = Conversation::new(options("pool_size = 1\ntrack_functions = \"off\""));
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([function_call(1598), query("select 1")]);
    server.gets([function_call(1598), query("select 1")]);
    server.answers([function_result(), ready()]).answers(one_row());
    alice.gets([vec![function_result(), ready()], one_row()].concat());
}
