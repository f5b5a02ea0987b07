//! Query strings: passed on, unless they name the client's prepared statements.

use crate::talk::*;

const WRITE: &str = "update t set a = 1";

#[test]
fn a_query_string_is_passed_on_byte_for_byte() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.asks(&server, "  /* hi */ select 1 ; ", one_row());
    alice.asks(&server, "", [empty_query(), ready()]);
}

#[test]
fn deallocate_of_a_clients_statement_is_answered_without_the_server() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares(&server, "s", WRITE);
    alice.sends([query("DEALLOCATE s")]);
    alice.gets([complete("DEALLOCATE"), ready()]);
    server.gets_nothing();
    alice.sends([bind("", "s"), sync()]);
    server.gets([bind("", "s"), sync()]).answers([error("26000", "no"), ready()]);
    alice.gets([error("26000", "no"), ready()]);
}

#[test]
fn deallocate_within_a_transaction_has_the_server_run_an_empty_select_in_its_place() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares(&server, "s", WRITE);
    alice.opens_block(&server);
    alice.sends([query("deallocate s")]);
    server.gets([query("SELECT ''")]);
    server.answers([columns(&["?column?"]), row(&[""]), complete("SELECT 1"), ready_in_block()]);
    alice.gets([complete("DEALLOCATE"), ready_in_block()]);
}

#[test]
fn deallocate_all_forgets_the_clients_statements_and_keeps_the_servers() {
    let talk = one_server();
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.prepares_by_name(&server, "s", WRITE, "~1");
    alice.sends([query("deallocate all")]);
    alice.gets([complete("DEALLOCATE ALL"), ready()]);
    server.gets_nothing();
    bob.sends([parse("s", WRITE), bind("", "s"), execute(""), sync()]);
    server.gets([bind("", "~1"), execute(""), sync()]);
    server.answers([bind_complete(), complete("UPDATE 1"), ready()]);
    bob.gets([parse_complete(), bind_complete(), complete("UPDATE 1"), ready()]);
}

#[test]
fn deallocate_of_a_statement_that_sql_prepared_goes_to_the_server() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.asks(&server, "prepare q as select 1", [complete("PREPARE"), ready()]);
    alice.asks(&server, "deallocate q", [complete("DEALLOCATE"), ready()]);
    alice.asks(&server, "deallocate all", [complete("DEALLOCATE ALL"), ready()]);
    assert_eq!(talk.pinned(), "");
}

#[test]
fn execute_gets_the_servers_name_of_the_statement_and_a_parse_in_front() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares(&server, "My s", WRITE);
    alice.sends([query("execute \"My s\" -- now")]);
    server.gets([parse("~1", WRITE), sync(), query("execute \"~1\" -- now")]);
    server.answers([parse_complete(), ready(), complete("UPDATE 1"), ready()]);
    alice.gets([complete("UPDATE 1"), ready()]);
}

#[test]
fn an_execute_whose_statement_is_refused_fails_once() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares(&server, "s", WRITE);
    alice.sends([query("execute s")]);
    server.gets([parse("~1", WRITE), sync(), query("execute \"~1\"")]);
    server.answers([error("42P01", "relation \"t\" does not exist"), ready()]);
    server.answers([error("26000", "prepared statement \"~1\" does not exist"), ready()]);
    alice.gets([error("42P01", "relation \"t\" does not exist"), ready()]);
}

#[test]
fn a_query_string_drops_the_unnamed_statement() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([parse("", WRITE), sync(), query("select 1"), bind("", ""), sync()]);
    server.gets([parse("", WRITE), sync(), query("select 1")]);
    server.answers([parse_complete(), ready()]).answers(one_row());
    server.gets([bind("", ""), sync()]);
    server.answers([error("26000", "unnamed prepared statement does not exist"), ready()]);
    alice.gets(
        [vec![parse_complete(), ready()], one_row()]
            .concat()
            .into_iter()
            .chain([error("26000", "unnamed prepared statement does not exist"), ready()]),
    );
}

#[test]
fn a_query_behind_extended_messages_without_a_sync_costs_the_server() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([parse("", WRITE), query("select 1"), sync()]);
    server.gets([parse("", WRITE), query("select 1"), sync()]);
    server.answers([parse_complete()]).answers(one_row()).answers([ready()]);
    alice.gets([vec![parse_complete()], one_row(), vec![ready()]].concat());
    assert!(server.is_closed(), "PostgreSQL 18 would answer the next command wrongly");
}
