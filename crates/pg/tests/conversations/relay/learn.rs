//! Settings that a server checks before Refrain lets a client in.

use crate::talk::*;

#[test]
fn the_startup_packet_is_checked_by_a_server_and_refused_in_its_words() {
    let talk = one_server();
    let alice = talk.newcomer();
    alice.asks_to_log_in(&[("timezone", "Nowhere")]);
    let server = talk.server(1);
    server.gets([query_with("'timezone','Nowhere',false")]);
    let words = "invalid value for parameter \"TimeZone\": \"Nowhere\"";
    server.answers([error("22023", words), ready()]);
    alice.gets([authentication(0, b""), fatal("22023", words)]);
    assert!(alice.is_closed());
    server.forgets();
}
