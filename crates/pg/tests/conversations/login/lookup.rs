//! Users from the database: hits, misses, waiting, wrong answers.

use std::time::Duration;

use crate::login::client::proves;
use crate::talk::*;

/// The query of the options here.
const QUERY: &str = "select n, p from users($1)";

/// Returns options by which users are looked up in the database `auth`.
pub(crate) fn looking_up(more: &str) -> String {
    format!(
        "auth = \"password\"\nauth_user = \"asker\"\nauth_query = \"{QUERY}\"\n\
         auth_dbname = \"auth\"\n{more}\n[pool]\ntrack_functions = \"off\"\n\
         share_servers = \"off\"\n[databases.\"*\"]\nurl = \"postgres://127.0.0.1:1\"\n"
    )
}

/// Returns what a server gets that is asked about a user.
pub(crate) fn asked(user: &str) -> Vec<Line> {
    let bound = bind_value("~aside", "~aside", user);
    let ends = [execute("~aside"), close_portal("~aside"), close_statement("~aside"), sync()];
    [vec![close_statement("~aside"), parse("~aside", QUERY), bound], ends.to_vec()].concat()
}

/// Returns the answer of these rows.
pub(crate) fn told(rows: &[Line]) -> Vec<Line> {
    let begins = [close_complete(), parse_complete(), bind_complete()];
    let ends = [complete("SELECT"), close_complete(), close_complete(), ready()];
    [&begins[..], rows, &ends].concat()
}

/// Returns the row of a user with this password.
pub(crate) fn user(name: &str, password: &str) -> Vec<Line> {
    told(&[row(&[name, password])])
}

/// Returns the row of a user whose password is NULL.
fn without_password(name: &str) -> Line {
    let mut body = vec![0, 2, 0, 0, 0, u8::try_from(name.len()).expect("it is short")];
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(&[255; 4]);
    let length = u8::try_from(body.len() + 4).expect("it is short");
    raw(&[&[b'D', 0, 0, 0, length], &body[..]].concat())
}

fn asks_for_password() -> Line {
    authentication(3, b"")
}

/// Writes a PasswordMessage.
pub(crate) fn says(text: &str) -> Line {
    password(&[text.as_bytes(), b"\0"].concat())
}

fn refused() -> Line {
    fatal("28P01", "password authentication failed for user \"u\"")
}

fn unavailable() -> Line {
    fatal("57P03", "could not look up the user")
}

/// Begins a login, whose user the first server is asked about.
fn first(talk: &Conversation) -> (Party, Party) {
    let alice = talk.newcomer();
    alice.asks_to_log_in(&[]);
    let server = talk.server(1);
    server.gets(asked("u"));
    alice.gets_nothing();
    (alice, server)
}

/// Ends a login that is asked for a password.
fn enters(client: &Party, password: &str) {
    client.gets([asks_for_password()]).sends([says(password)]).is_let_in();
}

#[test]
fn a_user_of_the_database_logs_in_and_the_next_login_asks_nobody() {
    let talk = Conversation::new(looking_up(""));
    let (alice, server) = first(&talk);
    server.answers(user("u", "secret"));
    enters(&alice, "secret");
    let bob = talk.newcomer();
    bob.asks_to_log_in(&[]);
    enters(&bob, "secret");
    server.gets_nothing();
    // The time of the answer is over.
    talk.waits(Duration::from_secs(31));
    let carol = talk.newcomer();
    carol.asks_to_log_in(&[]);
    server.gets(asked("u")).answers(user("u", "secret"));
    enters(&carol, "secret");
    let stats = talk.lookups();
    assert_eq!((stats.users, stats.queries, stats.hits, stats.failures), (1, 2, 3, 0));
}

#[test]
fn the_server_asks_under_the_name_and_in_the_database_of_the_options() {
    let talk = Conversation::new(looking_up("")).by_hand();
    let alice = talk.newcomer();
    alice.asks_to_log_in(&[]);
    let server = talk.connection(1);
    server.accepts();
    server.gets_bytes(&startup(0, &[("user", "asker"), ("database", "auth")]).bytes);
    server.greets(1);
    server.gets(asked("u")).answers(user("u", "secret"));
    alice.gets([asks_for_password()]);
}

#[test]
fn whoever_may_not_log_in_is_refused_in_the_words_for_a_wrong_password() {
    let rows: [&[Line]; 3] = [&[], &[without_password("u")], &[row(&["u", ""])]];
    for rows in rows {
        let talk = Conversation::new(looking_up(""));
        let (alice, server) = first(&talk);
        server.answers(told(rows));
        // Where users are looked up, most have a SCRAM verifier; `password` asks all alike.
        alice.gets([asks_for_password()]).sends([says("secret")]).gets([refused()]);
        assert!(alice.is_closed());
        // The answer is kept for a moment.
        let bob = talk.newcomer();
        bob.asks_to_log_in(&[]);
        bob.gets([asks_for_password()]);
        server.gets_nothing();
        talk.waits(Duration::from_millis(2100));
        let carol = talk.newcomer();
        carol.asks_to_log_in(&[]);
        server.gets(asked("u")).answers(user("u", "secret"));
        enters(&carol, "secret");
    }
}

#[test]
fn an_answer_that_cannot_be_read_lets_nobody_in() {
    let twice = row(&["u", "secret"]);
    let rows: [(&[Line], &str); 4] = [
        (&[row(&["u"])], "it has to return two columns, a name and a password"),
        (&[row(&["u", "secret", "more"])], "it has to return two columns, a name and a password"),
        (&[row(&["root", "secret"])], "it returned another user than it was asked for"),
        (&[twice.clone(), twice], "it returned more than one row"),
    ];
    for (rows, why) in rows {
        let talk = Conversation::new(looking_up(""));
        let (alice, server) = first(&talk);
        server.answers(told(rows));
        alice.gets([unavailable()]);
        assert!(alice.is_closed());
        assert!(talk.log().contains(&("user_lookup", format!("auth_query for user \"u\": {why}"))));
    }
}

#[test]
fn an_error_of_the_query_is_logged_and_not_told() {
    let talk = Conversation::new(looking_up(""));
    let (alice, server) = first(&talk);
    let denied = error("42501", "permission denied for table pg_authid");
    server.answers([close_complete(), denied, ready()]);
    alice.gets([unavailable()]);
    let why = "auth_query for user \"u\": permission denied for table pg_authid";
    assert!(talk.log().contains(&("user_lookup", why.to_owned())));
    // For a moment no login asks again.
    let bob = talk.newcomer();
    bob.asks_to_log_in(&[]);
    bob.gets([unavailable()]);
    server.gets_nothing();
    talk.waits(Duration::from_millis(1100));
    let carol = talk.newcomer();
    carol.asks_to_log_in(&[]);
    server.gets(asked("u")).answers(user("u", "secret"));
    enters(&carol, "secret");
}

#[test]
fn all_logins_of_a_user_wait_for_one_query_on_every_core() {
    let talk = Conversation::on_cores(2, looking_up(""));
    let (alice, server) = first(&talk);
    let others: Vec<Party> = (0..20).map(|i| talk.newcomer_on(i % 2)).collect();
    others.iter().for_each(|client| client.asks_to_log_in(&[]));
    others.iter().for_each(|client| assert_eq!(client.has_got(), 0));
    server.gets_nothing().answers(user("u", "secret"));
    enters(&alice, "secret");
    others.iter().for_each(|client| enters(client, "secret"));
    assert_eq!(talk.lookups().queries, 1);
}

#[test]
fn a_client_that_leaves_fails_nobody() {
    let talk = Conversation::new(looking_up(""));
    let (alice, server) = first(&talk);
    let bob = talk.newcomer();
    bob.asks_to_log_in(&[]);
    alice.breaks();
    server.answers(user("u", "secret"));
    enters(&bob, "secret");
}

#[test]
fn a_login_waits_no_longer_than_logins_may_take() {
    let talk = Conversation::new(looking_up("client_login_timeout = \"3s\""));
    let (alice, server) = first(&talk);
    talk.waits(Duration::from_millis(3200));
    alice.gets([fatal("57014", "canceling authentication due to timeout")]);
    // The answer still serves others.
    server.answers(user("u", "secret"));
    let bob = talk.newcomer();
    bob.asks_to_log_in(&[]);
    enters(&bob, "secret");
}

#[test]
fn what_the_client_sends_meanwhile_is_kept_for_later() {
    let talk = Conversation::new(looking_up(""));
    let alice = talk.newcomer();
    let packet = startup(0, &[("user", "u"), ("database", "d")]);
    alice.sends([packet, says("secret")]);
    talk.server(1).gets(asked("u")).answers(user("u", "secret"));
    alice.is_let_in();
}

#[test]
fn a_database_that_cannot_be_reached_leaves_the_logins_with_answers_from_before() {
    let talk = Conversation::new(looking_up("auth_cache_stale = \"1min\"")).by_hand();
    let alice = talk.newcomer();
    alice.asks_to_log_in(&[]);
    talk.connection(1).fails("connection refused");
    talk.waits(Duration::from_millis(100));
    alice.gets([unavailable()]);
    talk.waits(Duration::from_secs(2));
    let bob = talk.newcomer();
    bob.asks_to_log_in(&[]);
    let server = talk.connection(2);
    server.accepts().forgets();
    server.greets(1);
    server.gets(asked("u")).answers(user("u", "secret"));
    bob.gets([asks_for_password()]);
    server.breaks();
    talk.waits(Duration::from_secs(40));
    // It is asked, and an answer from before is better than none.
    let carol = talk.newcomer();
    carol.asks_to_log_in(&[]);
    carol.gets_nothing();
    talk.connection(3).fails("connection refused");
    talk.waits(Duration::from_millis(100));
    carol.gets([asks_for_password()]);
    // From then on nobody waits, and the database is asked now and then.
    talk.waits(Duration::from_secs(2));
    let dave = talk.newcomer();
    dave.asks_to_log_in(&[]);
    dave.gets([asks_for_password()]);
    talk.connection(4).fails("connection refused");
    talk.waits(Duration::from_secs(30));
    let eve = talk.newcomer();
    eve.asks_to_log_in(&[]);
    talk.connection(5).fails("connection refused");
    talk.waits(Duration::from_millis(100));
    eve.gets([unavailable()]);
    bob.forgets();
    carol.forgets();
    dave.forgets();
}

#[test]
fn a_database_that_does_not_answer_is_not_waited_for_if_there_is_an_answer_from_before() {
    let talk = Conversation::new(looking_up(""));
    let (alice, server) = first(&talk);
    server.answers(user("u", "secret"));
    enters(&alice, "secret");
    talk.waits(Duration::from_secs(31));
    let bob = talk.newcomer();
    bob.asks_to_log_in(&[]);
    server.gets(asked("u"));
    talk.waits(Duration::from_millis(900));
    bob.gets_nothing();
    talk.waits(Duration::from_millis(300));
    enters(&bob, "secret");
    server.answers(user("u", "secret"));
}

#[test]
fn a_server_that_is_lost_at_work_fails_the_login() {
    let talk = Conversation::new(looking_up(""));
    let (alice, server) = first(&talk);
    server.breaks();
    talk.waits(Duration::from_millis(100));
    alice.gets([unavailable()]);
}

#[test]
fn a_new_password_counts_from_the_second_login_on() {
    let talk = Conversation::new(looking_up(""));
    let (alice, server) = first(&talk);
    server.answers(user("u", "old"));
    enters(&alice, "old");
    talk.waits(Duration::from_secs(2));
    let bob = talk.newcomer();
    bob.asks_to_log_in(&[]);
    bob.gets([asks_for_password()]).sends([says("new")]).gets([refused()]);
    server.gets_nothing();
    let carol = talk.newcomer();
    carol.asks_to_log_in(&[]);
    server.gets(asked("u")).answers(user("u", "new"));
    enters(&carol, "new");
    // Guesses do not lead to a query each.
    for _ in 0..3 {
        let mallory = talk.newcomer();
        mallory.asks_to_log_in(&[]);
        mallory.gets([asks_for_password()]).sends([says("guess")]).gets([refused()]);
        server.gets_nothing();
    }
}

#[test]
fn after_a_flush_every_login_asks() {
    let talk = Conversation::new(looking_up(""));
    let (alice, server) = first(&talk);
    // The answer under way may be out of date.
    talk.flushes_users();
    server.answers(user("u", "old"));
    alice.gets([asks_for_password()]);
    let bob = talk.newcomer();
    bob.asks_to_log_in(&[]);
    server.gets(asked("u")).answers(user("u", "new"));
    enters(&bob, "new");
    talk.flushes_users();
    assert_eq!(talk.lookups().users, 0);
    let carol = talk.newcomer();
    carol.asks_to_log_in(&[]);
    server.gets(asked("u")).answers(user("u", "newer"));
    enters(&carol, "newer");
}

#[test]
fn an_answer_from_before_a_flush_counts_for_no_login_behind_it() {
    let talk = Conversation::new(looking_up(""));
    let (alice, server) = first(&talk);
    talk.waits(Duration::from_millis(10));
    talk.flushes_users();
    talk.waits(Duration::from_millis(10));
    let bob = talk.newcomer();
    bob.asks_to_log_in(&[]);
    server.answers(user("u", "old"));
    alice.gets([asks_for_password()]).sends([says("old")]).is_let_in();
    // The password was changed before the flush, and the query had begun by then.
    server.gets(asked("u"));
    bob.gets_nothing();
    server.answers(user("u", "new"));
    enters(&bob, "new");
    // Nor does it count while the database gives no answer.
    let talk = Conversation::new(looking_up(""));
    let (alice, server) = first(&talk);
    talk.waits(Duration::from_millis(10));
    talk.flushes_users();
    server.answers(user("u", "old"));
    alice.gets([asks_for_password()]);
    talk.waits(Duration::from_millis(10));
    let bob = talk.newcomer();
    bob.asks_to_log_in(&[]);
    server.gets(asked("u")).breaks();
    talk.waits(Duration::from_secs(2));
    bob.gets([unavailable()]);
}

#[test]
fn logins_may_wait_until_the_database_can_be_asked() {
    let options = looking_up("auth_unavailable = \"wait\"\nclient_login_timeout = \"5s\"");
    let talk = Conversation::new(options).by_hand();
    let (alice, bob) = (talk.newcomer(), talk.newcomer());
    alice.asks_to_log_in(&[]);
    talk.connection(1).fails("connection refused");
    bob.asks_to_log_in(&[]);
    talk.waits(Duration::from_millis(500));
    assert_eq!(talk.connections(), 1, "not at once");
    talk.waits(Duration::from_secs(1));
    talk.connection(2).fails("connection refused");
    talk.waits(Duration::from_millis(1500));
    let server = talk.connection(3);
    server.accepts().forgets();
    server.greets(1);
    server.gets(asked("u")).answers(user("u", "secret"));
    alice.gets([asks_for_password()]);
    bob.gets([asks_for_password()]);
    assert_eq!(talk.lookups().failures, 2);
}

#[test]
fn a_secret_that_servers_refuse_is_forgotten_and_the_user_is_looked_up_again() {
    let talk = Conversation::new(looking_up("")).by_hand();
    let alice = talk.newcomer();
    alice.asks_to_log_in(&[]);
    let users = talk.connection(1);
    users.accepts().forgets();
    users.greets(1);
    users.gets(asked("u")).answers(user("u", "old"));
    // The password in the database changes.
    talk.waits(Duration::from_secs(2));
    alice.gets([asks_for_password()]).sends([says("old")]).gets([authentication(0, b"")]);
    let own = talk.connection(2);
    own.accepts().forgets();
    own.sends([asks_for_password()]).gets([password(b"old\0")]);
    own.sends([refused()]);
    alice.gets([refused()]);
    let bob = talk.newcomer();
    bob.asks_to_log_in(&[]);
    users.gets(asked("u")).answers(user("u", "new"));
    bob.gets([asks_for_password()]).sends([says("new")]).gets([authentication(0, b"")]);
    talk.waits(Duration::from_secs(2));
    let own = talk.connection(3);
    own.accepts().forgets();
    own.sends([asks_for_password()]).gets([password(b"new\0")]);
    own.greets(2);
    bob.is_let_in();
}

/// A verifier of the password `pencil`, as PostgreSQL has made it.
const VERIFIER: &str = "SCRAM-SHA-256$4096:TgBFWONF8iwXk4FS6v6NPA==$\
    L1EXVtSAvGz1dsVIEgzt7ZhnKitxXQSoV5DZxfmzB5c=:X88FFqgzxTJcZbfcqaTdaiT+F1qfGTq7Tr4PWs+QNfs=";

#[test]
fn a_key_that_servers_have_no_use_for_is_forgotten() {
    let talk = Conversation::new(looking_up("").replace("password", "scram")).by_hand();
    let alice = talk.newcomer();
    alice.asks_to_log_in(&[]);
    let users = talk.connection(1);
    users.accepts().forgets();
    users.greets(1);
    users.gets(asked("u")).answers(user("u", VERIFIER));
    // The password in the database changes.
    talk.waits(Duration::from_secs(2));
    assert_eq!(proves(&alice, "pencil"), [authentication(0, b"")]);
    let own = talk.connection(2);
    own.accepts().forgets();
    own.sends([authentication(10, b"SCRAM-SHA-256\0\0")]);
    let first = own.forgets();
    let nonce = first[0].bytes.split(|byte| *byte == b'=').next_back().expect("it has a nonce");
    let challenge = [b"r=", nonce, b"x,s=c2FsdA==,i=4096"].concat();
    // Nothing is proved with the key: the server has another salt.
    own.sends([authentication(11, &challenge)]);
    alice.gets([refused()]);
    assert!(own.is_closed());
    let bob = talk.newcomer();
    bob.asks_to_log_in(&[]);
    users.gets(asked("u"));
}

#[test]
fn whoever_tries_many_names_does_not_drive_out_users() {
    let talk = Conversation::new(looking_up("auth_cache_size = 2"));
    let (alice, server) = first(&talk);
    server.answers(user("u", "secret"));
    enters(&alice, "secret");
    for name in ["a", "b", "c"] {
        let mallory = talk.newcomer();
        mallory.sends([startup(0, &[("user", name), ("database", "d")])]);
        server.gets(asked(name)).answers(told(&[]));
        mallory.gets([asks_for_password()]);
    }
    let bob = talk.newcomer();
    bob.asks_to_log_in(&[]);
    server.gets_nothing();
    enters(&bob, "secret");
}

#[test]
fn a_user_of_the_configuration_is_not_looked_up() {
    let more = "[users.u]\npassword = \"own\"\n[users.\"*\"]\npool_size = 1";
    let talk = Conversation::new(looking_up(more));
    let alice = talk.newcomer();
    alice.asks_to_log_in(&[]);
    enters(&alice, "own");
    let bob = talk.newcomer();
    bob.sends([startup(0, &[("user", "v"), ("database", "d")])]);
    talk.server(2).gets(asked("v")).answers(user("v", "secret"));
    enters(&bob, "secret");
}

#[test]
fn the_oldest_answers_are_forgotten_when_there_are_too_many() {
    let talk = Conversation::new(looking_up("auth_cache_size = 2"));
    for name in ["a", "b", "c", "d"] {
        let client = talk.newcomer();
        client.sends([startup(0, &[("user", name), ("database", "d")])]);
        talk.server(1).gets(asked(name)).answers(user(name, "secret"));
        client.gets([asks_for_password()]);
    }
    assert_eq!(talk.lookups().users, 2);
}
