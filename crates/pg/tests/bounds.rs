//! Limits on memory and work against a hostile server.
//!
//! A server floods Refrain at its login, behind a query and while no client has it. An allocator
//! that counts shows that memory stays below a limit and that each message costs about the same.

#![expect(unsafe_code, reason = "an allocator that counts is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::Arc;

use refrain_config::Options;
use refrain_pg::{Action, Engine, Event, Output, Ports, Shared};
use refrain_pg_wire::back::Status;
use refrain_pg_wire::tag::back;
use refrain_pg_wire::write::{self, Report};
use refrain_pool::ids::Peer;
use refrain_pool::{Conn, Core, Now};

struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
    static MOVED: Cell<usize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    HELD.set(HELD.get() + bytes);
    MOST.set(MOST.get().max(HELD.get()));
    MOVED.set(MOVED.get() + bytes.unsigned_abs());
}

fn size(layout: Layout) -> isize {
    isize::try_from(layout.size()).unwrap_or(isize::MAX)
}

// SAFETY: every call is passed on to the system's allocator as it is; counting touches
// thread-local cells that need neither initialisation nor a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(size(layout));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-size(layout));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that one receive brings.
const RECEIVED: usize = 64 * 1024;
/// Number of receives in a flood.
const RECEIVES: u32 = 32;
/// Most bytes that an engine may allocate for the messages of one server.
const BOUND: isize = 2 * 1024 * 1024;

/// An engine with one client and one server.
struct World {
    engine: Engine,
    ports: Ports,
    server: Option<Conn>,
    closed: bool,
    heard: usize,
}

impl World {
    fn new() -> Self {
        let text = "auth = \"trust\"\n[pool]\npool_size = 1\n[databases.\"*\"]\nurl = \"postgres://u@127.0.0.1:1\"\n";
        let options = Options::from_toml(text).expect("it is an options file");
        let shared = Shared::new(Arc::new(options), 1, &mut |bytes| bytes.fill(7));
        let engine = Engine::new(Core(0), shared, Box::new(|bytes| bytes.fill(9)));
        Self { engine, ports: Ports::default(), server: None, closed: false, heard: 0 }
    }

    fn step(&mut self, event: Event<'_>) {
        self.engine.step(Now(1_000_000), event, &mut self.ports);
        while let Some(output) = self.ports.next() {
            match output {
                Output::Send { conn, bytes } => {
                    self.heard += if self.server == Some(conn) { 0 } else { bytes.len() };
                    if self.ports.sent(conn, bytes) {
                        let event = Event::Drained { conn };
                        self.engine.step(Now(1_000_000), event, &mut self.ports);
                    }
                }
                Output::Act(Action::Connect { conn, .. }) => {
                    self.server = Some(conn);
                    let event = Event::Connected { conn };
                    self.engine.step(Now(1_000_000), event, &mut self.ports);
                }
                Output::Close { conn } if self.server == Some(conn) => self.closed = true,
                Output::Close { .. } | Output::Act(_) => {}
            }
        }
    }

    fn client(&mut self) -> Conn {
        let conn = self.ports.open();
        let peer = Peer::Tcp(SocketAddr::from(([127, 0, 0, 1], 5000)));
        self.step(Event::Accepted { conn, peer });
        let mut startup = Vec::new();
        let names: [(&[u8], &[u8]); 2] = [(b"user", b"u"), (b"database", b"d")];
        refrain_pg_wire::startup::write(&mut startup, 0, names.into_iter());
        self.step(Event::Bytes { conn, bytes: &startup });
        conn
    }

    fn server_says(&mut self, bytes: &[u8]) {
        let conn = self.server.expect("it was asked for");
        for bytes in bytes.chunks(RECEIVED) {
            if !self.closed {
                self.step(Event::Bytes { conn, bytes });
            }
        }
    }

    fn greet(&mut self) {
        let mut bytes = Vec::new();
        write::authentication(&mut bytes, 0, b"");
        write::parameter_status(&mut bytes, b"client_encoding", b"UTF8");
        write::backend_key(&mut bytes, 1, b"key!");
        write::ready(&mut bytes, Status::Idle);
        self.server_says(&bytes);
    }

    /// Floods the engine with messages of the server, in receives of 64 KiB that `message` fills.
    /// Returns the most bytes that the engine held meanwhile, and the bytes that it allocated and
    /// freed per byte received.
    fn flood(&mut self, mut message: impl FnMut(&mut Vec<u8>, u32)) -> (isize, usize) {
        let (mut number, mut bytes, mut said) = (0, Vec::with_capacity(8 * RECEIVED), 0);
        let (before, mut moved, mut most) = (HELD.get(), 0, 0);
        for _ in 0..RECEIVES {
            bytes.clear();
            while bytes.len() < RECEIVED {
                message(&mut bytes, number);
                number += 1;
            }
            MOST.set(HELD.get());
            MOVED.set(0);
            self.server_says(&bytes);
            most = most.max(MOST.get() - before);
            moved += MOVED.get();
            said += bytes.len();
        }
        (most, moved / said)
    }
}

/// Settings under ever new names, settings of ever new values, and long ones.
const FLOODS: [fn(&mut Vec<u8>, u32); 4] = [
    |out, number| write::parameter_status(out, format!("my.s{number}").as_bytes(), b"value"),
    |out, number| write::parameter_status(out, b"TimeZone", number.to_string().as_bytes()),
    |out, number| {
        let value = number.to_string().repeat(5000);
        write::parameter_status(out, b"search_path", value.as_bytes());
    },
    |out, number| {
        write::parameter_status(
            out,
            format!("s{}", number % 300).as_bytes(),
            &number.to_be_bytes().map(|b| b | 1),
        );
        write::message(out, back::NOTICE_RESPONSE, |out| out.extend_from_slice(b"C00000\0\0"));
    },
];

#[test]
fn at_the_login() {
    for flood in FLOODS {
        let mut world = World::new();
        world.client();
        let mut hello = Vec::new();
        write::authentication(&mut hello, 0, b"");
        world.server_says(&hello);
        let (most, work) = world.flood(flood);
        assert!(most < BOUND && work < 64, "{most} bytes, {work} for each");
        assert!(world.closed, "it says too much");
    }
}

#[test]
fn behind_a_query() {
    for (at, flood) in FLOODS.into_iter().enumerate() {
        let mut world = World::new();
        let client = world.client();
        world.greet();
        let mut query = Vec::new();
        write::query(&mut query, b"select 1");
        world.step(Event::Bytes { conn: client, bytes: &query });
        world.heard = 0;
        let (most, work) = world.flood(flood);
        assert!(most < BOUND && work < 64, "{at}: {most} bytes, {work} for each");
        assert!(world.closed || world.heard > RECEIVED, "{at}: the client is told");
    }
}

#[test]
fn while_nobody_has_it() {
    for (at, flood) in FLOODS.into_iter().enumerate() {
        let mut world = World::new();
        world.client();
        world.greet();
        let (most, work) = world.flood(flood);
        assert!(most < BOUND && work < 64, "{at}: {most} bytes, {work} for each");
    }
}

#[test]
fn one_message_that_never_ends() {
    let tags = [
        back::ERROR_RESPONSE,
        back::NOTICE_RESPONSE,
        back::PARAMETER_STATUS,
        back::ROW_DESCRIPTION,
    ];
    for tag in tags {
        for logs_in in [true, false] {
            let mut world = World::new();
            let client = world.client();
            if !logs_in {
                world.greet();
                let mut query = Vec::new();
                write::query(&mut query, b"select 1");
                world.step(Event::Bytes { conn: client, bytes: &query });
            }
            let mut begun = Vec::new();
            write::header(&mut begun, tag, 1 << 29);
            begun.extend_from_slice(b"SERROR\0");
            world.server_says(&begun);
            let (most, work) = world.flood(|out, _| out.extend_from_slice(b"xxxxxxxxxxxxxxxx"));
            assert!(most < 2 * BOUND && work < 64, "{tag} {logs_in}: {most}, {work} for each");
        }
    }
}

#[test]
fn errors_without_end() {
    let mut world = World::new();
    let client = world.client();
    world.greet();
    let mut query = Vec::new();
    write::query(&mut query, b"select 1");
    world.step(Event::Bytes { conn: client, bytes: &query });
    let (most, work) = world.flood(|out, _| {
        let report = Report { severity: "ERROR", sqlstate: "22012", message: "no", hint: "" };
        write::error(out, &report);
    });
    assert!(most < BOUND && work < 64, "{most} bytes, {work} for each");
}
