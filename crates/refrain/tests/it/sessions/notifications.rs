//! LISTEN and NOTIFY: the sender in a notification.

use refrain_differ::reply::Frame;

use crate::session::Session;
use crate::world::{Config, Version, cluster, database};

/// Returns process ID, channel and payload of a NotificationResponse.
fn read(frame: &Frame) -> (u32, String, String) {
    assert_eq!(frame.tag, b'A');
    let (pid, words) = frame.body.split_first_chunk::<4>().unwrap();
    let mut words = words.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into());
    (u32::from_be_bytes(*pid), words.next().unwrap(), words.next().unwrap())
}

/// Returns the process ID that a client got at its login.
fn own_pid(session: &Session) -> u32 {
    u32::from_be_bytes(*session.key.first_chunk().unwrap())
}

/// Runs a query, and returns the notifications among its replies.
fn notified(session: &mut Session, sql: &str) -> Vec<(u32, String, String)> {
    session.query(sql).frames.iter().filter(|frame| frame.tag == b'A').map(read).collect()
}

#[test]
fn a_session_that_notifies_itself_is_the_one_it_was_told() {
    let database = database("notify_itself");
    for driver in ["uring", "epoll"] {
        let config = Config::over(cluster(Version::V15)).general("driver", &format!("{driver:?}"));
        let proxy = config.start();
        let mut client = proxy.open(database);
        client.run("listen c");
        let own = own_pid(&client);
        assert_ne!(client.pid(), own.to_string(), "its server has a number of its own");
        let one = |payload: &str| (own, "c".to_owned(), payload.to_owned());
        assert_eq!(notified(&mut client, "notify c, 'hello'"), [one("hello")]);
        // Some of these notifications arrive in several reads.
        let all = notified(
            &mut client,
            "select pg_notify('c', n || repeat('x', 7900)) from generate_series(1, 300) n",
        );
        let expected = (1..=300).map(|n| one(&format!("{n}{}", "x".repeat(7900))));
        assert!(all == expected.collect::<Vec<_>>());
    }
}

#[test]
fn who_is_notified_by_another_is_told_of_its_server() {
    let database = database("notify_another");
    let proxy = Config::over(cluster(Version::V15)).pool("pool_size", "2").start();
    let mut listener = proxy.open(database);
    listener.run("listen c");
    let mut other = proxy.open(database);
    let pid = other.pid();
    other.run("notify c, 'from another'");
    let all = notified(&mut listener, "select 1");
    assert_eq!(all, [(pid.parse().unwrap(), "c".to_owned(), "from another".to_owned())]);
}

#[test]
fn no_notification_is_lost_while_the_session_is_looked_at() {
    const ALL: usize = 300;
    let database = database("notify_looked_at");
    let config = Config::over(cluster(Version::V15)).pool("track_functions", "\"strict\"");
    let proxy = config.pool("pool_size", "2").start();
    proxy
        .open(database)
        .run("create function f() returns int language plpgsql as $$begin return 1; end$$");
    let mut listener = proxy.open(database);
    listener.run("listen c");
    let mut other = proxy.open(database);
    let sender = std::thread::spawn(move || {
        (0..ALL).for_each(|n| other.run(&format!("notify c, '{n}'")));
    });
    let mut payloads = Vec::new();
    while payloads.len() < ALL && !(sender.is_finished() && payloads.is_empty()) {
        let all = notified(&mut listener, "select f()");
        payloads.extend(all.into_iter().map(|(_, _, payload)| payload));
        if sender.is_finished() {
            // Notifications that were sent before this query come with its reply at the latest.
            let last = notified(&mut listener, "select 1");
            payloads.extend(last.into_iter().map(|(_, _, payload)| payload));
            break;
        }
    }
    sender.join().unwrap();
    assert_eq!(payloads, (0..ALL).map(|n| n.to_string()).collect::<Vec<_>>());
}
