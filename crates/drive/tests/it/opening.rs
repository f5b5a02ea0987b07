//! Listening and connecting.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use refrain_drive::{
    Address, Driver, Kind, Listener, Listening, Peer, Sizing, Token, Tuning, open,
};
use socket2::SockRef;

use crate::harness::{Seen, on_both, tcp};

fn socket_path(name: &str) -> PathBuf {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("test").replace("::", "-");
    std::env::temp_dir().join(format!("refrain-{}-{test}-{name}", std::process::id()))
}

on_both! {
    fn a_client_is_accepted_and_answered(driven) {
        let address = driven.listen(7);
        let mut client = tcp(&address);
        let (listener, socket, peer) = driven.accepted();
        assert_eq!(listener, 7);
        assert_eq!(peer, Peer::Tcp(client.local_addr().unwrap()));
        driven.kernel.adopt(Token(0), socket);
        for round in 0..100_u8 {
            client.write_all(&[round; 10]).unwrap();
            assert_eq!(driven.received(Token(0), 10), [round; 10]);
            driven.send(Token(0), &[round; 20]);
            driven.turn(Duration::ZERO);
            let mut answer = [0; 20];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(answer, [round; 20]);
        }
    }

    fn an_accepted_socket_inherits_its_options(driven) {
        let address = driven.listen(0);
        let _client = tcp(&address);
        let (_, socket, _) = driven.accepted();
        let socket = SockRef::from(&socket);
        assert!(socket.tcp_nodelay().unwrap());
        assert!(socket.keepalive().unwrap());
        assert!(!socket.nonblocking().unwrap());
    }

    fn a_listener_that_awaits_first_bytes_accepts_those_who_speak(driven) {
        let any = Address::Tcp(([127, 0, 0, 1], 0).into());
        let listener = Listener::bind(&any, 16).unwrap();
        listener.await_first_bytes().unwrap();
        let address = listener.local().unwrap();
        driven.kernel.listen(1, listener).unwrap();
        let (silent, mut talker) = (tcp(&address), tcp(&address));
        talker.write_all(b"hello").unwrap();
        let began = Instant::now();
        let (_, socket, peer) = driven.accepted();
        assert_eq!(peer, Peer::Tcp(talker.local_addr().unwrap()));
        driven.kernel.adopt(Token(0), socket);
        assert_eq!(driven.received(Token(0), 5), b"hello");
        // One that says nothing is accepted in the end: its time to log in begins.
        let (_, _, peer) = driven.accepted();
        assert_eq!(peer, Peer::Tcp(silent.local_addr().unwrap()));
        let waited = began.elapsed();
        assert!(Duration::from_millis(500) < waited && waited < Duration::from_secs(5), "{waited:?}");
    }

    fn a_connect_succeeds(driven) {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        driven.kernel.connect(Token(5), &Address::Tcp(server.local_addr().unwrap()));
        let local = driven.connected(Token(5));
        let (mut peer, address) = server.accept().unwrap();
        assert_eq!(local, Some(Address::Tcp(address)));
        peer.write_all(b"hello").unwrap();
        assert_eq!(driven.received(Token(5), 5), b"hello");
    }

    fn a_connect_to_nobody_fails(driven) {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(server.local_addr().unwrap());
        drop(server);
        driven.kernel.connect(Token(1), &address);
        assert_eq!(driven.failed(Token(1)).kind(), io::ErrorKind::ConnectionRefused);
        driven.kernel.close(Token(1));

        driven.kernel.connect(Token(1), &Address::Unix(socket_path("nobody")));
        assert_eq!(driven.failed(Token(1)).kind(), io::ErrorKind::NotFound);
        driven.kernel.close(Token(1));

        // Longer than a socket's path may be.
        driven.kernel.connect(Token(1), &Address::Unix("x".repeat(200).into()));
        driven.failed(Token(1));
        driven.kernel.close(Token(1));
        driven.assert_silent(Token(1));
    }

    fn a_connect_that_is_closed_is_not_heard_of(driven) {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(server.local_addr().unwrap());
        driven.kernel.connect(Token(0), &address);
        driven.kernel.close(Token(0));
        driven.kernel.connect(Token(0), &Address::Unix("x".repeat(200).into()));
        driven.kernel.close(Token(0));
        driven.kernel.connect(Token(0), &address);
        driven.connected(Token(0));
        driven.assert_silent(Token(0));
    }

    fn unix_sockets_work_on_both_sides(driven) {
        let path = socket_path("both");
        let address = Address::Unix(path.clone());
        let listener = Listener::bind(&address, 8).unwrap();
        assert_eq!(listener.local().unwrap(), address);
        driven.kernel.listen(1, listener).unwrap();
        driven.kernel.connect(Token(0), &address);
        assert_eq!(driven.connected(Token(0)), None);
        let (_, socket, peer) = driven.accepted();
        let Peer::Unix { uid: Some(_), pid } = peer else { panic!("{peer:?}") };
        assert_eq!(pid, Some(std::process::id() as i32));
        driven.kernel.adopt(Token(1), socket);
        driven.send(Token(0), b"there");
        assert_eq!(driven.received(Token(1), 5), b"there");
        driven.send(Token(1), b"back");
        assert_eq!(driven.received(Token(0), 4), b"back");
        driven.kernel.close(Token(0));
        assert!(driven.closed(Token(1)).is_none());
        fs::remove_file(path).unwrap();
    }

    fn sockets_have_the_options_that_are_asked_for(driven) {
        let any = Address::Tcp(([127, 0, 0, 1], 0).into());
        let (idle, patience) = (Duration::from_secs(31), Duration::from_millis(7000));
        let tuning =
            Tuning {
                idle: Some(idle),
                user_timeout: Some(patience),
                buffer: Some(32 * 1024),
                ..Tuning::default()
            };
        let how = Listening { backlog: 8, is_shared: true, tuning };
        let listener = Listener::bind_as(&any, &how).unwrap();
        let address = listener.local().unwrap();
        assert!(Listener::bind(&address, 8).is_err(), "only those that share it may have it");
        drop(Listener::bind_as(&address, &how).unwrap());
        driven.kernel.listen(0, listener).unwrap();
        let _client = tcp(&address);
        let (_, socket, _) = driven.accepted();
        let socket = SockRef::from(&socket);
        assert_eq!(socket.tcp_keepalive_time().unwrap(), idle);
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(patience));
        // The kernel doubles what is asked for.
        assert_eq!(socket.send_buffer_size().unwrap(), 64 * 1024);
        assert_eq!(socket.recv_buffer_size().unwrap(), 64 * 1024);
    }

    fn after_unlisten_nobody_is_accepted(driven) {
        let address = driven.listen(3);
        let _first = tcp(&address);
        driven.accepted();
        driven.kernel.unlisten(3);
        driven.calm_down();
        let Address::Tcp(tcp) = address else { panic!() };
        assert!(std::net::TcpStream::connect(tcp).is_err());
        let listener = Listener::bind(&address, 8).unwrap();
        driven.kernel.listen(3, listener).unwrap();
        let _second = std::net::TcpStream::connect(tcp).unwrap();
        driven.accepted();
    }

    fn two_drivers_share_a_listener(driven) {
        let mut other = driven.another();
        let any = Address::Tcp(([127, 0, 0, 1], 0).into());
        let listener = Listener::bind(&any, 64).unwrap();
        let address = listener.local().unwrap();
        other.kernel.listen(0, listener.try_clone().unwrap()).unwrap();
        driven.kernel.listen(0, listener).unwrap();
        driven.turn(Duration::ZERO);
        other.turn(Duration::ZERO);
        let clients: Vec<_> = (0..20).map(|_| tcp(&address)).collect();
        driven.calm_down();
        other.calm_down();
        let accepted = driven.seen.iter().chain(&other.seen);
        assert_eq!(accepted.filter(|seen| matches!(seen, Seen::Accepted(..))).count(), 20);
        // One of them going does not end the other's accepting.
        driven.kernel.unlisten(0);
        driven.calm_down();
        let _late = tcp(&address);
        other.accepted();
        drop(clients);
    }
}

#[test]
fn a_stale_unix_socket_is_replaced_and_a_live_one_is_not() {
    let path = socket_path("stale");
    let address = Address::Unix(path.clone());
    drop(UnixListener::bind(&path).unwrap());
    let live = Listener::bind(&address, 8).unwrap();
    let error = Listener::bind(&address, 8).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    UnixStream::connect(&path).unwrap();
    drop(live);
    fs::remove_file(&path).unwrap();

    fs::write(&path, "precious").unwrap();
    assert!(Listener::bind(&address, 8).is_err());
    assert_eq!(fs::read(&path).unwrap(), b"precious");
    fs::remove_file(&path).unwrap();
}

#[test]
fn some_kernel_is_always_found() {
    let kernel = open(Kind::Auto, Sizing::default()).unwrap();
    assert_eq!(kernel.why().is_some(), kernel.name() == "epoll");
}
