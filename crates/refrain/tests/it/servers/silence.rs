//! Servers that die without a word, and servers that are merely busy.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use socket2::{SockFilter, SockRef};

use crate::session::query;
use crate::world::{Config, Version, addr, cluster, eventually};

/// A relay in front of PostgreSQL, which may die without a word.
struct Relay {
    addr: SocketAddr,
    /// The relay's ends of the connections that Refrain has made.
    ends: Arc<Mutex<Vec<TcpStream>>>,
    /// Whether PostgreSQL seems to be too busy to read.
    is_busy: Arc<AtomicBool>,
}

/// Passes bytes on until one end is closed.
fn pass_on(mut from: TcpStream, mut to: TcpStream, is_busy: &AtomicBool) {
    let mut bytes = [0; 65_536];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        while is_busy.load(Relaxed) {
            thread::sleep(Duration::from_millis(10));
        }
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    drop(to.shutdown(Shutdown::Both));
}

impl Relay {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (addr, ends) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<_>>>::default());
        let is_busy = Arc::new(AtomicBool::new(false));
        let (kept, busy) = (Arc::clone(&ends), Arc::clone(&is_busy));
        thread::spawn(move || {
            for near in listener.incoming() {
                let (near, far) = (near.unwrap(), TcpStream::connect(server()).unwrap());
                kept.lock().unwrap().push(near.try_clone().unwrap());
                let back = (far.try_clone().unwrap(), near.try_clone().unwrap());
                let busy = Arc::clone(&busy);
                thread::spawn(move || pass_on(near, far, &busy));
                thread::spawn(move || pass_on(back.0, back.1, &AtomicBool::new(false)));
            }
        });
        Self { addr, ends, is_busy }
    }

    /// Has the connections that there are lose all packets that come.
    fn dies(&self) {
        // The only instruction: keep 0 bytes of a packet.
        let nothing = [SockFilter::new(0x06, 0, 0, 0)];
        for end in &*self.ends.lock().unwrap() {
            SockRef::from(end).attach_filter(&nothing).unwrap();
        }
    }

    fn config(&self, timeout: &str) -> Config {
        let config = Config::over(cluster(Version::V15));
        let config = config.server("host", &format!("\"{}\"", self.addr.ip()));
        let config = config.server("port", &self.addr.port().to_string());
        config.general("server_silence_timeout", &format!("{timeout:?}"))
    }
}

fn server() -> SocketAddr {
    addr(cluster(Version::V15))
}

#[test]
fn a_server_that_acknowledges_nothing_holds_no_client() {
    for driver in ["uring", "epoll"] {
        let relay = Relay::start();
        let proxy = relay.config("2s").general("driver", &format!("{driver:?}")).start();
        let mut client = proxy.open("postgres");
        client.run("begin");
        relay.dies();
        client.send(&[query("select 1")]);
        assert_eq!(client.rest().words(), "E(08006)", "{driver}");
        eventually("it is logged", || proxy.log().contains("timed out"));
        assert_eq!(proxy.open("postgres").value("select 2"), "2", "by another connection");
    }
}

#[test]
fn a_server_that_is_too_busy_to_read_is_waited_for() {
    let relay = Relay::start();
    let proxy = relay.config("1s").start();
    let mut client = proxy.open("postgres");
    relay.is_busy.store(true, Relaxed);
    // More than all buffers on the way take.
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_secs(5));
            relay.is_busy.store(false, Relaxed);
        });
        client.send(&[query(&format!("select length('{}')", "x".repeat(32 << 20)))]);
        assert_eq!(client.ready().words(), "T D(33554432) C(SELECT 1) Z(I)");
    });
}
