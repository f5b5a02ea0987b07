//! Queries of Refrain's own amid a client's messages.

use crate::talk::*;

/// Logs a client in with a time zone of its own.
pub(super) fn in_tokyo(talk: &Conversation) -> (Party, Party) {
    let client = talk.newcomer();
    client.asks_to_log_in(&[("timezone", "Asia/Tokyo")]);
    let server = talk.server(1);
    server.gets([query_with("pg_catalog.set_config('timezone','Asia/Tokyo',false)")]);
    let mut checked = synced(&["Asia/Tokyo"]);
    checked.insert(3, parameter("TimeZone", "Asia/Tokyo"));
    server.answers(checked);
    client.is_let_in();
    (client, server)
}

/// Returns the query that restores the setting of such a client, and its end.
pub(super) fn restores() -> Vec<Line> {
    [internal("(SELECT 'timezone' AS name,'Asia/Tokyo' AS value)"), vec![sync()]].concat()
}

#[test]
fn a_reset_within_a_segment_is_followed_by_the_startup_setting_there() {
    let talk = one_server();
    let (alice, server) = in_tokyo(&talk);
    alice.sends([parse("", "reset timezone"), bind("", ""), execute(""), sync()]);
    let reset = vec![parse("", "reset timezone"), bind("", ""), execute("")];
    server.gets([reset, restores()].concat());
    server.answers([parse_complete(), bind_complete(), complete("RESET")]);
    server.answers(internal_answer(&[&["Asia/Tokyo"]])).answers([ready()]);
    alice.gets([parse_complete(), bind_complete(), complete("RESET"), ready()]);
}
