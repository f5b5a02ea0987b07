//! Query strings longer than the part that Refrain reads: their rest may do anything, unless it is
//! one long list of values.

use super::look::{asked, tracking};
use crate::talk::*;

/// The newest objects of the database: no function of users'.
const NEWEST: &[&str] = &["=newest", "16400 1 1 1 1 1"];

pub(super) fn comment() -> String {
    format!("/*{}*/", "x".repeat(70_000))
}

/// Has a client send a query string in two pieces, of which the first is read.
pub(super) fn sends_in_pieces(client: &Party, text: &str) {
    let bytes = query(text).bytes;
    client.sends_bytes(&bytes[..66_000]);
    client.sends_bytes(&bytes[66_000..]);
}

#[test]
fn the_session_is_looked_at_behind_a_text_that_was_not_read_whatever_functions_are_tracked() {
    for how in ["on", "off", "strict"] {
        let talk = tracking(how);
        let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
        let text = format!("{} set role r", comment());
        sends_in_pieces(&alice, &text);
        bob.sends([query("select 1")]);
        server.gets([query(&text)]).answers([complete("SET"), ready()]);
        alice.gets([complete("SET"), ready()]);
        server.gets(asked()).answers(settings_answer(&[NEWEST, &["=role", ""]]));
        server.gets_nothing();
        assert_eq!(talk.pinned(), "role");
        bob.gets_nothing();
    }
}

#[test]
fn a_long_list_of_values_costs_no_look() {
    let talk = tracking("on");
    let (alice, server) = (talk.client(), talk.server(1));
    let text = format!("select 1 where 'a' in ('{}')", "it; ', '".repeat(10_000));
    sends_in_pieces(&alice, &text);
    server.gets([query(&text)]).answers(one_row());
    alice.gets(one_row());
    server.gets_nothing();
}

#[test]
fn a_custom_parameter_in_the_rest_is_asked_for_and_one_without_a_name_ties_the_client() {
    for (rest, asks, pins) in [
        ("set app.tenant = '7'", true, ""),
        ("select set_config('app.' || 'tenant', '7', false)", false, "settings"),
    ] {
        let talk = tracking("on");
        let (alice, server) = (talk.client(), talk.server(1));
        let text = format!("{}{rest}", comment());
        sends_in_pieces(&alice, &text);
        server.gets([query(&text)]).answers([complete("SET"), ready()]);
        alice.gets([complete("SET"), ready()]);
        let question = if asks { internal("app.tenant") } else { internal("pg_my_temp_schema") };
        server.gets([question, vec![sync()]].concat()).answers(settings_answer(&[NEWEST]));
        assert_eq!(talk.pinned(), pins, "{rest}");
    }
}

#[test]
fn the_next_message_waits_for_the_end_of_such_a_text() {
    let talk = tracking("off");
    let (alice, server) = (talk.client(), talk.server(1));
    let text = format!("{} deallocate all", comment());
    sends_in_pieces(&alice, &text);
    alice.sends([query("select 2")]);
    server.gets([query(&text)]).answers([complete("DEALLOCATE ALL"), ready()]);
    alice.gets([complete("DEALLOCATE ALL"), ready()]);
    server.gets([query("select 2")]).answers(one_row());
    alice.gets(one_row());
    server.gets(asked()).answers(settings_answer(&[NEWEST]));
}

#[test]
fn a_statement_that_is_not_kept_is_looked_behind_when_it_runs() {
    let talk = Conversation::new(options(
        "pool_size = 1\ntrack_functions = \"on\"\nmax_client_statement_bytes = \"4KiB\"\n\
         max_cached_statement_bytes = \"1KiB\"",
    ));
    let (alice, server) = (talk.client(), talk.server(1));
    let text = format!("{} set role r", comment());
    alice.sends([parse("s", &text), sync()]);
    server.gets([parse("s", &text), sync()]).answers([parse_complete(), ready()]);
    alice.gets([parse_complete(), ready()]);
    alice.sends([bind("", "s"), execute(""), sync()]);
    server.gets([bind("", "s"), execute(""), sync()]);
    server.answers([bind_complete(), complete("SET"), ready()]);
    alice.gets([bind_complete(), complete("SET"), ready()]);
    server.gets(asked()).answers(settings_answer(&[NEWEST, &["=role", ""]]));
    assert_eq!(talk.pinned(), "prepared, role");
}
