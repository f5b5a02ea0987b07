//! SQL that names prepared statements where Refrain cannot replace the name: the server is lent a
//! statement of the client's own name.

use crate::talk::*;

const WRITE: &str = "update t set a = 1";

#[test]
fn a_parse_of_execute_finds_the_statement_by_the_clients_name() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares(&server, "s", WRITE);
    alice.sends([parse("", "execute s"), bind("", ""), execute(""), sync()]);
    server.gets([
        close_statement("s"),
        parse("s", WRITE),
        parse("", "execute s"),
        bind("", ""),
        execute(""),
        sync(),
    ]);
    server.answers([close_complete(), parse_complete(), parse_complete()]);
    server.answers([bind_complete(), complete("UPDATE 1"), ready()]);
    alice.gets([parse_complete(), bind_complete(), complete("UPDATE 1"), ready()]);
    assert_eq!(talk.pinned(), "prepared", "the name is on this server alone");
}

#[test]
fn a_name_that_was_lent_in_vain_is_lent_again() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares(&server, "s", WRITE);
    alice.opens_block(&server);
    alice.sends([bind("", "q"), sync()]);
    let refused = error("25P02", "current transaction is aborted");
    server.gets([bind("", "q"), sync()]).answers([error("26000", "no"), ready_failed()]);
    alice.gets([error("26000", "no"), ready_failed()]);
    let executes = parse("", "create table made as execute s");
    let (close, lend) = (close_statement("s"), parse("s", WRITE));
    alice.sends([executes.clone(), bind("", ""), sync()]);
    alice.sends([bind("", "q"), executes.clone(), sync()]);
    server.gets([
        executes.clone(),
        close.clone(),
        lend.clone(),
        bind("", ""),
        sync(),
        bind("", "q"),
        close.clone(),
        lend.clone(),
        executes.clone(),
        sync(),
    ]);
    server.answers([refused.clone(), ready_failed(), refused.clone(), ready_failed()]);
    alice.gets([refused.clone(), ready_failed(), refused, ready_failed()]);
    alice.sends([parse("", "rollback"), bind("", ""), execute("")]);
    server.gets([parse("", "rollback"), bind("", ""), execute("")]);
    alice.sends([parse("", "deallocate s"), bind("", ""), execute(""), sync()]);
    server.gets([
        parse("", "deallocate s"),
        bind("", ""),
        close,
        parse("s", ""),
        execute(""),
        sync(),
    ]);
}

#[test]
fn a_name_that_a_segment_lends_in_vain_is_there_if_a_later_one_lends_it() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares(&server, "s", WRITE);
    let (executes, close, lend) = (parse("", "execute s"), close_statement("s"), parse("s", WRITE));
    alice.sends([parse("", "no"), executes.clone(), sync(), executes.clone(), sync()]);
    server.gets([
        parse("", "no"),
        close.clone(),
        lend.clone(),
        executes.clone(),
        sync(),
        close.clone(),
        lend,
        executes,
        sync(),
    ]);
    server.answers([error("42601", "no"), ready()]);
    server.answers([close_complete(), parse_complete(), parse_complete(), ready()]);
    alice.gets([error("42601", "no"), ready(), parse_complete(), ready()]);
    // So a Close has to reach the server.
    alice.sends([close_statement("s"), sync()]);
    server.gets([close, sync()]);
}

#[test]
fn a_statement_that_comes_back_has_its_name_on_the_server_as_before() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares(&server, "s", WRITE);
    let executes = parse("", "execute s");
    alice.sends([executes.clone(), sync()]);
    server.gets([close_statement("s"), parse("s", WRITE), executes.clone(), sync()]);
    server.answers([close_complete(), parse_complete(), parse_complete(), ready()]);
    alice.gets([parse_complete(), ready()]);
    // The server skips all of this, so it still has the statement by its name.
    let skipped = [close_statement("s"), parse("s", "delete from t"), executes.clone()];
    alice.sends([bind("", "q")].into_iter().chain(skipped).chain([sync()]));
    server.forgets();
    server.answers([error("26000", "no"), ready()]);
    alice.gets([error("26000", "no"), ready()]);
    alice.sends([executes.clone(), sync()]);
    server.gets([executes, sync()]);
}

#[test]
fn several_commands_with_an_execute_wait_until_the_server_has_the_statement() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares(&server, "s", WRITE);
    alice.sends([query("execute s; execute s")]);
    server.gets([close_statement("s"), parse("s", WRITE), sync()]);
    server.answers([close_complete(), parse_complete(), ready()]);
    server.gets([query("execute s; execute s")]);
    server.answers([complete("UPDATE 1"), complete("UPDATE 1"), ready()]);
    alice.gets([complete("UPDATE 1"), complete("UPDATE 1"), ready()]);
}

#[test]
fn several_commands_run_not_at_all_if_the_statement_cannot_be_parsed_again() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares(&server, "s", WRITE);
    alice.sends([query("select 1; execute s")]);
    server.gets([close_statement("s"), parse("s", WRITE), sync()]);
    server.answers([close_complete(), error("42P01", "relation \"t\" does not exist"), ready()]);
    alice.gets([error("42P01", "relation \"t\" does not exist"), ready()]);
    server.gets_nothing();
}

#[test]
fn sql_prepare_finds_the_name_of_a_parse_taken() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares(&server, "s", WRITE);
    alice.sends([query("prepare s as select 1")]);
    server.gets([close_statement("s"), parse("s", ""), sync(), query("prepare s as select 1")]);
    let taken = error("42P05", "prepared statement \"s\" already exists");
    server.answers([close_complete(), parse_complete(), ready(), taken.clone(), ready()]);
    alice.gets([taken, ready()]);
}

#[test]
fn a_parse_behind_sql_prepare_goes_to_the_server_under_the_clients_name_first() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.asks(&server, "prepare q as select 1", [complete("PREPARE"), ready()]);
    assert_eq!(talk.pinned(), "prepared");
    alice.sends([parse("q", WRITE), sync()]);
    server.gets([parse("q", WRITE), parse("~1", WRITE), describe_statement("~1"), sync()]);
    let taken = error("42P05", "prepared statement \"q\" already exists");
    server.answers([taken.clone(), ready()]);
    alice.gets([taken, ready()]);
}
