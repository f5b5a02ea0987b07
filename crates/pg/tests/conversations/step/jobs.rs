//! Jobs: what a server does for Refrain while no client holds it.

use crate::talk::*;

fn same() -> [Line; 2] {
    [columns(&["a"]), columns(&["a"])]
}

#[test]
fn a_normalized_query_is_verified_once_the_server_is_free() {
    let talk = autopreparing(2);
    let (alice, server) = (talk.client(), talk.server(1));
    alice.asks(&server, TEXT, one_row());
    alice.asks(&server, TEXT, one_row());
    talk.analysed(talk.case(), one_parameter(&[]));
    alice.asks(&server, TEXT, one_row());
    server.gets(verification(TEXT, NORMALIZED, "~1"));
    server.answers(verified(same(), &[]));
    alice.sends([query(TEXT)]);
    server.gets(run_with("7")).answers(run_answer());
    alice.gets(one_row());
    assert_eq!(talk.counters().protocol.auto_verified, 1);
}

#[test]
fn a_client_that_asks_meanwhile_waits_for_the_end_of_the_job() {
    let talk = autopreparing(2);
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.asks(&server, TEXT, one_row());
    alice.asks(&server, TEXT, one_row());
    talk.analysed(talk.case(), one_parameter(&[]));
    alice.asks(&server, TEXT, one_row());
    bob.sends([query("select now()")]);
    server.gets(verification(TEXT, NORMALIZED, "~1"));
    server.answers(verified(same(), &[]));
    server.gets([query("select now()")]).answers(one_row());
    bob.gets(one_row());
}

#[test]
fn a_client_that_waited_before_the_query_was_due_comes_before_the_job() {
    let talk = autopreparing(2);
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.asks(&server, TEXT, one_row());
    alice.asks(&server, TEXT, one_row());
    talk.analysed(talk.case(), one_parameter(&[]));
    alice.sends([query(TEXT)]);
    server.gets([query(TEXT)]);
    bob.sends([query("select now()")]);
    server.answers(one_row());
    alice.gets(one_row());
    server.gets([query("select now()")]).answers(one_row());
    bob.gets(one_row());
    server.gets(verification(TEXT, NORMALIZED, "~1"));
    server.answers(verified(same(), &[]));
}

#[test]
fn other_columns_or_an_objection_of_the_catalogue_refuse_a_query() {
    let other = [columns(&["a"]), columns(&["b"])];
    for (found, objections) in [(other, &[][..]), (same(), &[&["domain"][..]][..])] {
        let talk = autopreparing(1);
        let (alice, server) = (talk.client(), talk.server(1));
        alice.sends([query(TEXT)]);
        talk.analysed(talk.case(), one_parameter(&[]));
        server.gets(verification(TEXT, NORMALIZED, "~1"));
        server.answers(verified(found, objections));
        server.gets([query(TEXT)]).answers(one_row());
        alice.gets(one_row());
        assert_eq!(talk.snapshot().protocol.normalized_queries[0].state, "refused");
    }
}

#[test]
fn a_job_that_waits_for_a_lock_gives_up_and_the_text_runs_as_it_was_sent() {
    let talk = autopreparing(1);
    let (alice, server) = (talk.client(), talk.server(1));
    alice.sends([query(TEXT)]);
    talk.analysed(talk.case(), one_parameter(&[]));
    server.gets(verification(TEXT, NORMALIZED, "~1"));
    server.answers(internal_answer(&[])).answers([close_complete()]);
    server.answers([error("55P03", "canceling statement due to lock timeout"), ready()]);
    server.gets([query(TEXT)]).answers(one_row());
    alice.gets(one_row());
    assert_eq!(talk.snapshot().protocol.normalized_queries[0].state, "planned");
}

#[test]
fn the_job_of_a_server_that_went_is_done_again_behind_the_next_text() {
    let talk = autopreparing(1);
    let (alice, bob) = (talk.client(), talk.client());
    alice.sends([query(TEXT)]);
    talk.analysed(talk.case(), one_parameter(&[]));
    talk.server(1).gets(verification(TEXT, NORMALIZED, "~1"));
    talk.server(1).breaks();
    alice.gets([fatal("08006", "the server closed the connection unexpectedly")]);
    bob.asks_another(&talk, 2, TEXT);
    bob.sends([query(TEXT)]);
    let second = talk.server(2);
    second.gets(verification(TEXT, NORMALIZED, "~1"));
    second.answers(verified(same(), &[]));
    second.gets(run_with("7")).answers(run_answer());
    bob.gets(one_row());
}

#[test]
fn a_client_that_leaves_amid_its_job_leaves_the_server_to_the_next() {
    let talk = autopreparing(1);
    let (alice, bob, server) = (talk.client(), talk.client(), talk.server(1));
    alice.sends([query(TEXT)]);
    talk.analysed(talk.case(), one_parameter(&[]));
    server.gets(verification(TEXT, NORMALIZED, "~1"));
    alice.breaks();
    bob.sends([query("show work_mem")]);
    server.answers(verified(same(), &[]));
    server.gets([query("show work_mem")]).answers(one_row());
    bob.gets(one_row());
}
