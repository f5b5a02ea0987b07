//! Describe and Close of a statement, and DEALLOCATE in extended messages.

use crate::talk::*;

const WRITE: &str = "update t set a = $1";

#[test]
fn a_close_is_answered_and_the_server_keeps_the_statement() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares(&server, "s", WRITE);
    alice.opens_block(&server);
    alice.sends([close_statement("s"), bind("", "s"), sync()]);
    server.gets([bind("", "s"), sync()]);
    let unknown = error("26000", "prepared statement \"s\" does not exist");
    server.answers([unknown.clone(), ready_failed()]);
    alice.gets([close_complete(), unknown, ready_failed()]);
}

#[test]
fn a_close_of_an_unknown_statement_within_a_transaction_goes_to_the_server() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.opens_block(&server);
    alice.sends([close_statement("by_sql"), sync()]);
    server.gets([close_statement("by_sql"), sync()]);
    server.answers([close_complete(), ready_in_block()]);
    alice.gets([close_complete(), ready_in_block()]);
}

#[test]
fn deallocate_by_extended_messages_finds_an_empty_statement_of_the_clients_name() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares(&server, "s", WRITE);
    alice.sends([parse("", "deallocate s"), bind("", ""), execute(""), sync()]);
    server.gets([
        parse("", "deallocate s"),
        bind("", ""),
        close_statement("s"),
        parse("s", ""),
        execute(""),
        sync(),
    ]);
    server.answers([
        parse_complete(),
        bind_complete(),
        close_complete(),
        parse_complete(),
        complete("DEALLOCATE"),
        ready(),
    ]);
    alice.gets([parse_complete(), bind_complete(), complete("DEALLOCATE"), ready()]);
    alice.sends([bind("", "s"), sync()]);
    server.gets([bind("", "s"), sync()]).answers([error("26000", "no"), ready()]);
    alice.gets([error("26000", "no"), ready()]);
}

#[test]
fn deallocate_behind_the_rollback_of_a_failed_block_finds_its_statement() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares(&server, "s", WRITE);
    alice.opens_block(&server);
    alice.asks(&server, "no", [error("42601", "no"), ready_failed()]);
    let runs = |text| [parse("", text), bind("", ""), execute("")];
    let lends = [close_statement("s"), parse("s", "")];
    let (rollback, deallocate) = (runs("rollback"), runs("deallocate s"));
    alice.sends(rollback.iter().chain(&deallocate).cloned().chain([sync()]));
    let at_server = rollback.iter().chain(&deallocate[..2]).chain(&lends).chain(&deallocate[2..]);
    server.gets(at_server.cloned().chain([sync()]));
    let ran = |tag| [parse_complete(), bind_complete(), complete(tag)];
    let lent = [close_complete(), parse_complete()];
    let (rolled_back, deallocated) = (ran("ROLLBACK"), ran("DEALLOCATE"));
    let from_server =
        rolled_back.iter().chain(&deallocated[..2]).chain(&lent).chain(&deallocated[2..]);
    server.answers(from_server.cloned().chain([ready()]));
    alice.gets(rolled_back.iter().chain(&deallocated).cloned().chain([ready()]));
    let unknown = error("26000", "prepared statement \"s\" does not exist");
    alice.sends([bind("", "s"), sync()]);
    server.gets([bind("", "s"), sync()]).answers([unknown.clone(), ready()]);
    alice.gets([unknown, ready()]);
}

#[test]
fn deallocate_that_a_failed_block_refuses_leaves_the_statement() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    alice.prepares(&server, "s", WRITE);
    alice.prepares(&server, "d", "deallocate s");
    alice.opens_block(&server);
    alice.asks(&server, "no", [error("42601", "no"), ready_failed()]);
    alice.sends([bind("", "d"), execute(""), sync()]);
    server.gets([
        parse("", "deallocate s"),
        bind("", ""),
        close_statement("s"),
        parse("s", ""),
        execute(""),
        sync(),
    ]);
    let refused = error("25P02", "current transaction is aborted");
    server.answers([refused.clone(), ready_failed()]);
    alice.gets([refused, ready_failed()]);
    alice.sends([query("rollback")]);
    server.gets([query("rollback")]).answers([complete("ROLLBACK"), ready()]);
    alice.gets([complete("ROLLBACK"), ready()]);
    alice.sends([bind("", "s"), sync()]);
    server.gets([parse("", WRITE), bind("", ""), sync()]);
}

#[test]
fn the_first_63_bytes_of_a_name_are_the_name() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    let [one, other] = ["a", "b"].map(|end| format!("{}{end}", "n".repeat(63)));
    alice.prepares_by_name(&server, &one, WRITE, "~1");
    // PostgreSQL repeats the name of the message, whatever the statement was called before.
    alice.sends([bind("", &other), sync()]);
    let words = |name| error("08P01", &format!("prepared statement \"{name}\" requires 1"));
    server.gets([bind("", "~1"), sync()]).answers([words("~1"), ready()]);
    alice.gets([words(&other), ready()]);
    alice.sends([close_statement(&other), sync()]);
    alice.gets([close_complete(), ready()]);
    alice.sends([bind("", &one), sync()]);
    server.gets([bind("", &one), sync()]);
}
