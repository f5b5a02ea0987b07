//! Statements as the console shows them.

use crate::talk::*;

#[test]
fn the_figures_of_all_cores_add_up() {
    let talk = Conversation::on_cores(2, options("pool_size = 1"));
    let (alice, bob) = (talk.client_on(0), talk.client_on(1));
    let server = talk.server(1);
    for client in [&alice, &bob, &alice] {
        client.asks(&server, "select 1", one_row());
    }
    let shown = talk.statements();
    assert_eq!((shown.len(), shown[0].id, &*shown[0].text), (1, 0, "(not prepared)"));
    assert_eq!((shown[0].figures.counts.calls, shown[0].figures.counts.rows), (3, 3));
}

#[test]
fn texts_are_shown_without_literals_whether_or_not_they_have_a_plan() {
    let talk = one_server();
    let (alice, server) = (talk.client(), talk.server(1));
    let texts = ["update t set a = 'secret' -- secret", "alter role r password 'secret'"];
    for text in texts {
        alice.sends([parse("", text), sync()]);
        server.forgets();
        server.answers([parse_complete(), ready()]);
        alice.forgets();
    }
    let shown: Vec<_> = talk.statements().into_iter().map(|view| view.text).collect();
    assert_eq!(shown, ["update t set a = ''", "alter role r password ''"]);
}
