//! A login whose settings a server refuses goes to another server, like the requests of
//! the module of that name in `relay`.

use crate::talk::*;

#[test]
fn a_login_goes_to_a_new_server_if_one_that_was_used_refuses_it() {
    let talk = one_server();
    let (bob, server) = (talk.client(), talk.server(1));
    bob.asks(&server, "select 1", one_row());
    let sets = || query_with("'temp_buffers','100',false");
    let refusal = [error("22023", "invalid value for parameter \"temp_buffers\": 100"), ready()];
    let alice = talk.newcomer();
    alice.asks_to_log_in(&[("options", "-c temp_buffers=100")]);
    server.gets([sets()]).answers(refusal);
    assert!(server.is_closed());
    let fresh = talk.server(2);
    fresh.gets([sets()]).answers(synced(&["100"]));
    alice.is_let_in();
    alice.asks(&fresh, "select 2", one_row());
}
