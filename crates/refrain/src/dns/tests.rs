//! Lookups at a name server of the tests' own.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use super::*;

/// The names that a server was asked for, each with the kind of address.
type Questions = Arc<Mutex<Vec<(String, u8)>>>;

/// Reads a question: the name and the kind of address.
fn read(query: &[u8]) -> (String, u8) {
    let (mut at, mut labels) = (HEADER, Vec::new());
    while query[at] > 0 {
        let end = at + 1 + usize::from(query[at]);
        labels.push(String::from_utf8_lossy(&query[at + 1..end]).into_owned());
        at = end;
    }
    (labels.join("."), query[at + 2])
}

/// Writes an answer: flags, a code, and records behind the question.
fn write(query: &[u8], flags: u8, code: u8, records: &[Vec<u8>]) -> Vec<u8> {
    let count = u8::try_from(records.len()).unwrap();
    let header = [&query[..2], &[0x81 | flags, 0x80 | code, 0, 1, 0, count, 0, 0, 0, 0]].concat();
    [&header[..], &query[HEADER..], &records.concat()].concat()
}

/// Makes a record of the name that was asked for.
fn record(kind: u8, data: &[u8]) -> Vec<u8> {
    let length = u8::try_from(data.len()).unwrap();
    [&[0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 60, 0, length][..], data].concat()
}

fn reply(query: &[u8], by_tcp: bool) -> Vec<u8> {
    let (name, kind) = read(query);
    let v4 = |last| record(1, &[192, 0, 2, last]);
    match (name.as_str(), kind) {
        ("db.example" | "db", 1) => write(query, 0, 0, &[v4(1), v4(2), v4(1)]),
        ("db.example", 28) => {
            let address: Ipv6Addr = "2001:db8::1".parse().unwrap();
            write(query, 0, 0, &[record(28, &address.octets())])
        }
        // A name that leads to another.
        ("alias.example", 1) => write(query, 0, 0, &[record(5, b"\x02db\xc0\x12"), v4(3)]),
        ("long.example", 1) if by_tcp => write(query, 0, 0, &[v4(4)]),
        ("slow.example", 1) if by_tcp => write(query, 0, 0, &[v4(7)]),
        ("long.example" | "slow.example", 1) => write(query, 2, 0, &[]),
        ("broken.example", _) | ("half.example", 28) | ("six.example", 1) => {
            write(query, 0, 2, &[])
        }
        ("half.example", 1) => write(query, 0, 0, &[v4(5)]),
        ("broken.other", 1) => write(query, 0, 0, &[v4(6)]),
        ("six.example", 28) => write(query, 0, 0, &[record(28, &Ipv6Addr::LOCALHOST.octets())]),
        (
            "alias.example" | "long.example" | "empty.example" | "slow.example" | "broken.other"
            | "db",
            _,
        ) => write(query, 0, 0, &[]),
        _ => write(query, 0, 3, &[]),
    }
}

/// Starts a name server, and returns its address and what it is asked.
fn serve() -> (SocketAddr, Questions) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let socket = UdpSocket::bind(address).unwrap();
    let asked = Questions::default();
    let keeps = Arc::clone(&asked);
    thread::spawn(move || {
        let mut buffer = [0; DATAGRAM_MAX];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let query = &buffer[..length];
            keeps.lock().unwrap().push(read(query));
            // What answers another question comes first, and does not count.
            let mut other = reply(query, false);
            other[1] ^= 1;
            socket.send_to(&other, from).unwrap();
            socket.send_to(&reply(query, false), from).unwrap();
        }
    });
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut length = [0; 2];
            stream.read_exact(&mut length).unwrap();
            let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
            stream.read_exact(&mut query).unwrap();
            let reply = reply(&query, true);
            let length = u16::try_from(reply.len()).unwrap().to_be_bytes();
            let message = [&length[..], &reply].concat();
            if read(&query).0 != "slow.example" {
                stream.write_all(&message).unwrap();
                continue;
            }
            // The timeout of one read is never exceeded.
            for byte in message {
                thread::sleep(Duration::from_millis(200));
                if stream.write_all(&[byte]).is_err() {
                    break;
                }
            }
        }
    });
    (address, asked)
}

/// Makes a file with these lines for a use of it.
fn with_file<T>(lines: &str, uses: impl FnOnce(&Path) -> T) -> T {
    static FILES: AtomicU32 = AtomicU32::new(0);
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let file = format!("refrain-resolv-{}-{number}", std::process::id());
    let file = std::env::temp_dir().join(file);
    fs::write(&file, lines).unwrap();
    let used = uses(&file);
    fs::remove_file(&file).unwrap();
    used
}

/// Looks a name up by a file with these lines.
fn looks_up(lines: &str, name: &str) -> Result<Vec<String>, String> {
    let found = with_file(lines, |file| look_up(file, name));
    found.map(|addresses| addresses.iter().map(ToString::to_string).collect())
}

#[test]
fn names_are_asked_of_the_server_that_the_file_names() {
    let (address, asked) = serve();
    let conf = format!("# a comment\nnameserver {address}\noptions timeout:1 attempts:1\n");
    let finds = |name: &str| looks_up(&conf, name);
    assert_eq!(finds("db.example").unwrap(), ["192.0.2.1", "192.0.2.2", "2001:db8::1"]);
    assert_eq!(finds("DB.example.").unwrap_err(), "host \"DB.example.\" has no address");
    assert_eq!(finds("alias.example").unwrap(), ["192.0.2.3"]);
    assert_eq!(finds("long.example").unwrap(), ["192.0.2.4"]);
    assert!(finds("empty.example").unwrap_err().contains("has no address"));
    assert!(finds("broken.example").unwrap_err().contains("does not answer the question"));
    asked.lock().unwrap().clear();
    assert!(finds("none.example").unwrap_err().contains("has no address"));
    assert_eq!(*asked.lock().unwrap(), [("none.example".to_owned(), 1)]);
    // These are asked of nobody.
    assert_eq!(finds("192.0.2.9").unwrap(), ["192.0.2.9"]);
    assert!(finds(&"x".repeat(64)).unwrap_err().contains("has no address"));
}

#[test]
fn a_server_that_is_silent_is_passed_over() {
    let (address, _) = serve();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent_at = silent.local_addr().unwrap();
    let conf =
        format!("nameserver {silent_at}\nnameserver {address}\noptions timeout:1 attempts:1\n");
    assert_eq!(looks_up(&conf, "alias.example").unwrap(), ["192.0.2.3"]);
    let conf = format!("nameserver {silent_at}\noptions timeout:1 attempts:1\n");
    let why = format!("host \"alias.example\": {silent_at} did not answer within 1 s");
    assert_eq!(looks_up(&conf, "alias.example").unwrap_err(), why);
    assert!(look_up(Path::new("/no/such/file"), "db").unwrap_err().contains("/no/such/file"));
}

#[test]
fn an_answer_that_comes_byte_by_byte_has_the_time_of_any_other() {
    let (address, _) = serve();
    let conf = format!("nameserver {address}\noptions timeout:1 attempts:1\n");
    let began = Instant::now();
    assert!(looks_up(&conf, "slow.example").is_err());
    // Its 50 bytes would take ten seconds.
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn a_question_that_fails_takes_no_other_answer_away() {
    let (address, _) = serve();
    let finds = |ends: &str, name: &str| {
        let conf = format!("search {ends}\nnameserver {address}\noptions timeout:1 attempts:1\n");
        looks_up(&conf, name)
    };
    assert_eq!(finds("", "half.example").unwrap(), ["192.0.2.5"]);
    assert_eq!(finds("", "six.example").unwrap(), ["::1"]);
    assert_eq!(finds("example other", "broken").unwrap(), ["192.0.2.6"]);
    let why = finds("example none", "broken").unwrap_err();
    assert!(why.contains("does not answer the question"), "{why}");
}

#[test]
fn short_names_get_the_ends_of_the_file() {
    let conf = ResolvConf::read("domain old.\nsearch a.example b.example\noptions ndots:2\n");
    assert_eq!(conf.candidates("db"), ["db.a.example", "db.b.example", "db"]);
    assert_eq!(conf.candidates("db.x.y"), ["db.x.y", "db.x.y.a.example", "db.x.y.b.example"]);
    assert_eq!(conf.candidates("db."), ["db"]);
    let servers = "nameserver 10.0.0.1\nnameserver ::1\nnameserver [::1]:54\nnameserver 10.0.0.4\n";
    let conf = ResolvConf::read(servers);
    assert_eq!(
        conf.servers.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["10.0.0.1:53", "[::1]:53", "[::1]:54"]
    );
    assert_eq!(ResolvConf::read("").servers, [SocketAddr::from(([127, 0, 0, 1], 53))]);
    let conf = ResolvConf::read("options timeout:99 attempts:0 ndots:x rotate\n");
    assert_eq!((conf.timeout.as_secs(), conf.attempts, conf.ndots), (30, 1, 1));
}

#[test]
fn name_servers_of_which_none_can_be_read_are_told() {
    let warning = |lines: &str| with_file(lines, warning);
    let told = warning("search example\nnameserver dns.example\nnameserver\n").unwrap();
    assert!(told.contains("no address in \"nameserver dns.example\""), "{told}");
    assert_eq!(warning("nameserver dns.example\nnameserver ::1\n"), None);
    assert_eq!(warning("# nameserver dns.example\nsearch example\n"), None);
}

#[test]
fn names_of_the_machine_stand_in_its_file() {
    let hosts =
        "127.0.0.1 localhost # loopback\n::1\tlocalhost ip6\n# 10.0.0.1 db\n10.0.0.2 DB db2\n";
    let finds =
        |name: &str| in_hosts(hosts, name).iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(finds("localhost"), ["127.0.0.1", "::1"]);
    assert_eq!(finds("db"), ["10.0.0.2"]);
    assert_eq!(finds("db."), ["10.0.0.2"]);
    assert!(finds("loopback").is_empty());
}

#[test]
fn a_message_that_ends_early_is_no_answer() {
    let question = question("db.example", Family::V4).unwrap();
    let query = [&[7, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], &question].concat();
    let whole = reply(&query, false);
    assert!(matches!(answer(&whole, &query), Some(DnsAnswer::Addresses(it)) if it.len() == 2));
    for length in 0..whole.len() {
        assert_eq!(answer(&whole[..length], &query), None, "{length}");
    }
    assert!(super::question("a..b", Family::V4).is_none());
}
