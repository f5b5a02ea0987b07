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
fn a_simple_query_ends_the_session_where_none_is_allowed() {
    for (errors, told) in [
        ("postgresql", fatal("0A000", "simple queries are switched off (disable_pqexec)")),
        ("pgbouncer", fatal("08P01", "PQexec disallowed")),
    ] {
        let options = options("pool_size = 1\ndisable_pqexec = true");
        let talk = Conversation::new(format!("pooler_errors = \"{errors}\"\n{options}"));
        let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
        alice.sends([query("select 1")]);
        alice.gets([told.clone()]);
        server.gets_nothing();
        // A client that has a server.
        let segment = || [parse("", "begin"), bind("", ""), execute(""), sync()];
        bob.sends(segment());
        server.gets(segment());
        server.answers([parse_complete(), bind_complete(), complete("BEGIN"), ready_in_block()]);
        bob.forgets();
        bob.sends([query("select 1")]);
        bob.gets([told]);
        assert!(alice.is_closed() && bob.is_closed());
        server.forgets();
    }
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

/// Has alice prepare a statement on the first server, where it returns column `a`, and run it by
/// SQL on the second, where it returns these columns.
fn executes_elsewhere(names: &[&str]) -> (Conversation, Party) {
    const READ: &str = "select * from t";
    let talk = two_servers();
    let (alice, bob, first) = (talk.client(), talk.client(), talk.server(1));
    alice.sends([parse("s", READ), describe_statement("s"), sync()]);
    first.gets([parse("", READ), describe_statement(""), sync()]);
    first.answers([parse_complete(), parameters(&[]), columns(&["a"]), ready()]);
    alice.gets([parse_complete(), parameters(&[]), columns(&["a"]), ready()]);
    bob.opens_block(&first);
    alice.sends([query("execute s")]);
    let second = talk.server(2);
    second.gets([parse("~1", READ), describe_statement("~1"), sync()]);
    second.answers([parse_complete(), parameters(&[]), columns(names), ready()]);
    (talk, alice)
}

#[test]
fn e67_an_execute_waits_until_the_columns_of_a_new_copy_are_known() {
    let (talk, alice) = executes_elsewhere(&["a"]);
    let second = talk.server(2);
    second.gets([query("execute \"~1\"")]).answers(one_row());
    alice.gets(one_row());
}

#[test]
fn e67_an_execute_of_a_copy_with_other_columns_is_refused_as_a_stale_plan() {
    let (talk, alice) = executes_elsewhere(&["a", "b"]);
    let second = talk.server(2);
    // The schema has changed unseen: no older copy is used any more.
    let renewed = [parse("~1.1", "select * from t"), describe_statement("~1.1"), sync()];
    second.gets([vec![close_statement("~1")], renewed.to_vec()].concat());
    second.answers([
        close_complete(),
        parse_complete(),
        parameters(&[]),
        columns(&["a", "b"]),
        ready(),
    ]);
    second.gets([query("EXECUTE \"~none\"")]);
    second.answers([error("26000", "prepared statement \"~none\" does not exist"), ready()]);
    alice.gets([error_like("cached plan must not change result type"), ready()]);
}

/// Has a client prepare a statement whose text has a constant, and look at it.
fn describes(alice: &Party, server: &Party) {
    let columns = [parse_complete(), parameters(&[]), columns(&["a"]), ready()];
    alice.sends([parse("s", OF_A_DAY), describe_statement("s"), sync()]);
    server.gets([parse("", OF_A_DAY), describe_statement(""), sync()]).answers(columns.clone());
    alice.gets(columns);
}

const OF_A_DAY: &str = "select a from t where d = '2020-01-01 00:00'";

fn gone() -> Line {
    error("42P01", "relation \"t\" does not exist")
}

/// Returns what the server gets in front of an EXECUTE under another time zone than the Parse's.
fn parse_under_utc() -> Vec<Line> {
    [
        internal("pg_catalog.set_config('timezone','UTC',true)"),
        vec![parse("~2", OF_A_DAY)],
        internal("pg_catalog.set_config('timezone','Asia/Tokyo',true)"),
        vec![sync()],
    ]
    .concat()
}

#[test]
fn e67_an_execute_whose_new_copy_is_refused_fails_once() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    describes(&alice, &server);
    alice.sends([query("execute s")]);
    server.gets([parse("~1", OF_A_DAY), describe_statement("~1"), sync()]);
    server.answers([gone(), ready()]);
    alice.gets([gone(), ready()]);
    alice.asks(&server, "select 1", one_row());
}

#[test]
fn e67_an_execute_whose_new_copy_is_refused_in_a_block_fails_the_block_once() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    describes(&alice, &server);
    alice.opens_block(&server);
    alice.sends([query("execute s")]);
    server.gets([parse("~1", OF_A_DAY), describe_statement("~1"), sync()]);
    server.answers([gone(), ready_failed()]);
    alice.gets([gone(), ready_failed()]);
    alice.asks(&server, "rollback", [complete("ROLLBACK"), ready()]);
}

#[test]
fn e67_an_execute_amid_query_strings_fails_in_its_place_if_its_new_copy_is_refused() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    describes(&alice, &server);
    alice.sends([query("select 1"), query("execute s"), query("select 1"), query("select 2")]);
    server.gets([query("select 1")]).answers(one_row());
    server.gets([parse("~1", OF_A_DAY), describe_statement("~1"), sync()]);
    server.answers([gone(), ready()]);
    server.gets([query("select 1"), query("select 2")]);
    let fails = [error("22012", "division by zero"), ready()];
    server.answers(one_row()).answers(fails.clone());
    alice.gets([one_row(), vec![gone(), ready()], one_row(), fails.to_vec()].concat());
}

#[test]
fn e67_a_copy_parsed_under_other_settings_is_looked_at_once_its_parse_has_succeeded() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    describes(&alice, &server);
    alice.moves_to_tokyo(&server);
    alice.sends([query("execute s")]);
    server.gets([query_with("'client_encoding',NULL,false")]).answers(synced(&["UTF8", "on"]));
    server.gets(parse_under_utc()).answers(internal_answer(&[])).answers([parse_complete()]);
    server.answers(internal_answer(&[])).answers([ready()]);
    server.gets([describe_statement("~2"), sync()]);
    server.answers([parameters(&[]), columns(&["a"]), ready()]);
    server.gets([query("execute \"~2\"")]).answers(one_row());
    alice.gets(one_row());
}

#[test]
fn e67_an_execute_whose_copy_is_refused_under_other_settings_fails_once() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    describes(&alice, &server);
    alice.moves_to_tokyo(&server);
    alice.sends([query("execute s"), query("begin")]);
    server.gets([query_with("'client_encoding',NULL,false")]).answers(synced(&["UTF8", "on"]));
    server.gets(parse_under_utc()).answers(internal_answer(&[])).answers([gone(), ready()]);
    server.gets([query("begin")]).answers([complete("BEGIN"), ready_in_block()]);
    alice.gets([gone(), ready(), complete("BEGIN"), ready_in_block()]);
    alice.sends([query("execute s"), query("rollback")]);
    server.gets(parse_under_utc()).answers(internal_answer(&[])).answers([gone(), ready_failed()]);
    server.gets([query("rollback")]).answers([complete("ROLLBACK"), ready()]);
    alice.gets([gone(), ready_failed(), complete("ROLLBACK"), ready()]);
}

#[test]
fn e67_a_cancel_that_hits_the_look_at_a_new_copy_is_told_once() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    let cancelled = || error("57014", "canceling statement due to user request");
    describes(&alice, &server);
    alice.opens_block(&server);
    alice.sends([query("execute s")]);
    server.gets([parse("~1", OF_A_DAY), describe_statement("~1"), sync()]);
    server.answers([parse_complete(), cancelled(), ready_failed()]);
    alice.gets([cancelled(), ready_failed()]);
    alice.asks(&server, "rollback", [complete("ROLLBACK"), ready()]);
}
