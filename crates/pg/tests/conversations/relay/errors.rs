//! Errors of a server: what they undo, what is learned from them, and which the client gets.

use refrain_pg_wire::back::field;

use crate::talk::*;

const WRITE: &str = "update t set a = $1";

/// Returns PostgreSQL's error for a statement whose plan returns other columns than before.
fn stale() -> Line {
    let message = "cached plan must not change result type";
    let more = [(field::FILE, "plancache.c"), (field::ROUTINE, "RevalidateCachedQuery")];
    error_with("0A000", message, &more)
}

#[test]
fn a_parse_that_fails_leaves_its_name_free() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([parse("s", "selec"), sync()]);
    server.gets([parse("", "selec"), describe_statement(""), sync()]);
    server.answers([error("42601", "syntax error"), ready()]);
    alice.gets([error("42601", "syntax error"), ready()]);
    alice.prepares(&server, "s", WRITE);
}

#[test]
fn a_close_that_an_error_skips_has_closed_nothing() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares_by_name(&server, "s", WRITE, "~1");
    alice.sends([execute("nope"), close_statement("s"), sync()]);
    server.gets([execute("nope"), sync()]).answers([error("34000", "no portal"), ready()]);
    alice.gets([error("34000", "no portal"), ready()]);
    alice.runs(&server, "s", [bind("", "~1")]);
    assert_eq!(talk.counters().protocol.changes_undone, 1);
}

#[test]
fn the_client_reads_the_name_that_it_gave_and_not_refrains() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares_by_name(&server, "s", WRITE, "~1");
    alice.sends([bind("", "s"), sync()]);
    let words = |name| {
        let needs = "bind message supplies 0 parameters, but prepared statement";
        error("08P01", &format!("{needs} \"{name}\" requires 1"))
    };
    server.gets([bind("", "~1"), sync()]).answers([words("~1"), ready()]);
    alice.gets([words("s"), ready()]);
}

#[test]
fn a_stale_plan_begins_a_new_generation_of_the_statement() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares_by_name(&server, "s", WRITE, "~1");
    alice.sends([bind("", "s"), sync()]);
    server.gets([bind("", "~1"), sync()]).answers([stale(), ready()]);
    alice.gets([stale(), ready()]);
    assert_eq!(talk.counters().protocol.statements_renewed, 1);
    alice.sends([bind("", "s"), sync()]);
    server.gets([close_statement("~1"), parse("~1.1", WRITE), describe_statement("~1.1"), flush()]);
    server.answers([close_complete(), parse_complete(), parameters(&[25]), no_data()]);
    server.gets([bind("", "~1.1"), sync()]).answers([bind_complete(), ready()]);
    alice.gets([bind_complete(), ready()]);
}

#[test]
fn a_server_that_lost_its_statements_unseen_is_closed_once_its_client_is_done() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares_by_name(&server, "s", WRITE, "~1");
    alice.sends([bind("", "s"), sync()]);
    let unknown = |name| error("26000", &format!("prepared statement \"{name}\" does not exist"));
    server.gets([bind("", "~1"), sync()]).answers([unknown("~1"), ready()]);
    alice.gets([unknown("s"), ready()]);
    assert!(server.is_closed());
    assert_eq!(talk.counters().protocol.lost_statements, 1);
}

#[test]
fn a_fatal_error_is_passed_on_and_ends_the_session() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query("select pg_sleep(9)")]);
    let why = fatal("57P01", "terminating connection due to administrator command");
    server.gets([query("select pg_sleep(9)")]).answers([why.clone()]);
    alice.gets([why]);
    assert!(alice.is_closed() && server.is_closed());
}

#[test]
fn the_position_in_a_text_that_the_client_did_not_just_send_is_left_out() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares(&server, "s", WRITE);
    alice.asks(&server, "select 1", one_row());
    alice.sends([bind("", "s"), sync()]);
    server.gets([parse("", WRITE), bind("", ""), sync()]);
    server.answers([error_with("42P01", "no table", &[(field::POSITION, "8")]), ready()]);
    alice.gets([error("42P01", "no table"), ready()]);
}

#[test]
fn after_a_copy_failed_the_server_counts_the_syncs_that_it_has_not_skipped() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([parse("", "copy t from stdin"), bind("", ""), execute(""), flush()]);
    server.gets([parse("", "copy t from stdin"), bind("", ""), execute(""), flush()]);
    server.answers([parse_complete(), bind_complete(), copy_in_response()]);
    alice.gets([parse_complete(), bind_complete(), copy_in_response()]);
    alice.sends([copy_data("x\n"), sync(), copy_done(), sync()]);
    server.gets([copy_data("x\n"), sync(), copy_done(), sync()]);
    server.answers([error("22P02", "invalid input syntax")]);
    server.gets([sync(), close_statement("~none"), sync()]);
    alice.gets([error("22P02", "invalid input syntax")]);
    // The error came before the first Sync was read: PostgreSQL answers both, and Refrain's own.
    server.answers([ready(), ready(), ready(), close_complete(), ready()]);
    alice.gets([ready(), ready()]);
}

/// Lets alice send a write without a Sync and a DEALLOCATE of `s` behind it, and the server answer
/// the query that stands for the latter with this error.
fn deallocate_behind_a_write_fails(alice: &Party, server: &Party, error: &Line) {
    alice.prepares_by_name(server, "s", WRITE, "~1");
    alice.sends([bind("", "s"), execute(""), query("deallocate s")]);
    server.gets([bind("", "~1"), execute(""), flush()]);
    server.answers([bind_complete(), complete("UPDATE 1")]);
    server.gets([query("SELECT ''")]).answers([error.clone(), ready()]);
    alice.gets([bind_complete(), complete("UPDATE 1"), error.clone(), ready()]);
    alice.sends([bind("", "s"), sync()]);
}

#[test]
fn a_deallocate_whose_commit_fails_has_dropped_the_statement() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    deallocate_behind_a_write_fails(&alice, &server, &error("23505", "duplicate key"));
    server.gets([bind("", "s"), sync()]);
    let unknown = error("26000", "prepared statement \"s\" does not exist");
    server.answers([unknown.clone(), ready()]);
    alice.gets([unknown, ready()]);
}

#[test]
fn a_deallocate_that_is_cancelled_has_dropped_nothing() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    deallocate_behind_a_write_fails(&alice, &server, &error("57014", "canceling statement"));
    server.gets([bind("", "~1"), sync()]);
    server.answers([bind_complete(), ready()]);
    alice.gets([bind_complete(), ready()]);
}
