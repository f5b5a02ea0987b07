//! A client that writes messages and reads the replies as short texts.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use refrain_pg_wire::back::{Fields, columns, command_tag};
use refrain_pg_wire::frame::{HEADER_BYTES, Header};
use refrain_pg_wire::tag::{back, front};
use refrain_pg_wire::write;
use refrain_sqlite::{Database, OpenOptions};
use refrain_sqlite_pg::{Backend, Pool, Progress, Session};

/// A database in a file of its own.
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) backend: Arc<Backend>,
    pub(crate) pool: Arc<Pool>,
}

/// Maximum number of times that a session is resumed until it has answered.
const RESUMES_MAX: u32 = 10_000;

static NEXT: AtomicUsize = AtomicUsize::new(0);

impl Place {
    pub(crate) fn new() -> Self {
        Self::with(OpenOptions::default())
    }

    pub(crate) fn with(options: OpenOptions) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("refrain-sqlite-pg-{}-{number}.db", std::process::id());
        let path = std::env::temp_dir().join(name);
        let database = Database::new(&path, options);
        let backend = Backend::new("db", 2).unwrap();
        let pool = Pool::new(&backend, database, Duration::from_millis(300));
        Self { path, backend, pool }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.pool.clone())
    }

    /// Runs SQLite's own statements on the file, as another program would.
    pub(crate) fn natively(&self, statements: &str) {
        let connection = rusqlite::Connection::open(&self.path).unwrap();
        connection.execute_batch(statements).unwrap();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", self.path.display()));
        }
    }
}

/// Waits until `is` returns true.
pub(crate) fn eventually(what: &str, mut is: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A client and its session.
pub(crate) struct Client {
    pub(crate) session: Session,
    woken: Receiver<()>,
    out: Vec<u8>,
    /// The messages that are not sent yet.
    asked: Vec<u8>,
}

impl Client {
    fn new(pool: Arc<Pool>) -> Self {
        let (wake, woken) = channel();
        let session = Session::new(pool, Arc::new(move || wake.send(()).unwrap_or(())));
        let mut client = Self { session, woken, out: Vec::new(), asked: Vec::new() };
        refrain_pg_wire::startup::write(
            &mut client.asked,
            0,
            [(&b"user"[..], &b"ann"[..])].into_iter(),
        );
        let answers = client.answers();
        assert_eq!(answers.last().map(String::as_str), Some("ready I"), "{answers:?}");
        client
    }

    /// Returns the messages that are not sent yet.
    pub(crate) fn asked(&mut self) -> &mut Vec<u8> {
        &mut self.asked
    }

    pub(crate) fn query(&mut self, text: &str) -> Vec<String> {
        write::query(&mut self.asked, text.as_bytes());
        self.answers()
    }

    /// Returns the first row of a query, or its error; without both, the first message.
    pub(crate) fn first(&mut self, text: &str) -> String {
        let answers = self.query(text);
        let found = answers.iter().find(|it| it.starts_with("row ") || it.starts_with("error"));
        found.or(answers.first()).cloned().unwrap_or_default()
    }

    /// Runs statements, and checks what [`Client::first`] returns of each.
    #[track_caller]
    pub(crate) fn answers_first(&mut self, all: &[(&str, &str)]) {
        for (text, expected) in all {
            assert_eq!(self.first(text), *expected, "{text}");
        }
    }

    /// Sends a query. Returns all bytes of the answer.
    pub(crate) fn query_bytes(&mut self, text: &str) -> Vec<u8> {
        write::query(&mut self.asked, text.as_bytes());
        self.bytes()
    }

    /// Adds a message of this tag and body.
    pub(crate) fn say(&mut self, tag: u8, body: &[u8]) -> &mut Self {
        write::message(&mut self.asked, tag, |out| out.extend_from_slice(body));
        self
    }

    pub(crate) fn parse(&mut self, name: &str, text: &str, types: &[u32]) -> &mut Self {
        let mut body = format!("{name}\0{text}\0").into_bytes();
        body.extend_from_slice(&u16::try_from(types.len()).unwrap().to_be_bytes());
        types.iter().for_each(|oid| body.extend_from_slice(&oid.to_be_bytes()));
        self.say(front::PARSE, &body)
    }

    /// Adds a Bind, with values in one format and results in one format.
    pub(crate) fn bind(
        &mut self,
        names: (&str, &str),
        format: u16,
        values: &[Option<&[u8]>],
        results: u16,
    ) -> &mut Self {
        let mut body = format!("{}\0{}\0", names.0, names.1).into_bytes();
        body.extend_from_slice(&[0, 1]);
        body.extend_from_slice(&format.to_be_bytes());
        body.extend_from_slice(&u16::try_from(values.len()).unwrap().to_be_bytes());
        for value in values {
            let length = value.map_or(-1, |value| i32::try_from(value.len()).unwrap());
            body.extend_from_slice(&length.to_be_bytes());
            body.extend_from_slice(value.unwrap_or_default());
        }
        body.extend_from_slice(&[0, 1]);
        body.extend_from_slice(&results.to_be_bytes());
        self.say(front::BIND, &body)
    }

    pub(crate) fn describe(&mut self, target: &str) -> &mut Self {
        self.say(front::DESCRIBE, format!("{target}\0").as_bytes())
    }

    pub(crate) fn execute(&mut self, portal: &str, limit: i32) -> &mut Self {
        let mut body = format!("{portal}\0").into_bytes();
        body.extend_from_slice(&limit.to_be_bytes());
        self.say(front::EXECUTE, &body)
    }

    pub(crate) fn sync(&mut self) -> Vec<String> {
        self.say(front::SYNC, b"").answers()
    }

    /// Sends the messages and a Sync. Returns all bytes of the answer.
    pub(crate) fn sync_bytes(&mut self) -> Vec<u8> {
        self.say(front::SYNC, b"").bytes()
    }

    fn bytes(&mut self) -> Vec<u8> {
        let progress = self.send();
        self.go_on_from(progress);
        std::mem::take(&mut self.out)
    }

    /// Sends the messages, without waiting for work that takes long.
    pub(crate) fn send(&mut self) -> Progress {
        let asked = std::mem::take(&mut self.asked);
        self.session.receive(asked, &mut self.out)
    }

    /// Sends the messages one byte at a time.
    pub(crate) fn send_in_bytes(&mut self) -> Vec<String> {
        let asked = std::mem::take(&mut self.asked);
        for byte in &asked {
            self.session.receive(vec![*byte], &mut self.out);
        }
        self.answers()
    }

    /// Sends the messages in pieces of `size` bytes, each when the session is done with the piece
    /// before. Fails if the session is woken without end.
    pub(crate) fn send_in_pieces(&mut self, size: usize) -> Vec<String> {
        let asked = std::mem::take(&mut self.asked);
        for piece in asked.chunks(size) {
            let progress = self.session.receive(piece.to_vec(), &mut self.out);
            self.go_on_from(progress);
        }
        self.answers()
    }

    /// Sends the messages, and resumes the session again and again, whether it was woken or not.
    pub(crate) fn answers_without_wakes(&mut self) -> Vec<String> {
        let (mut progress, begun) = (self.send(), Instant::now());
        while progress == Progress::Waiting && begun.elapsed() < Duration::from_secs(30) {
            progress = self.session.resume(&mut self.out);
        }
        assert_ne!(progress, Progress::Waiting, "the session waits for ever");
        self.wait(progress)
    }

    /// Sends the messages, waits for all replies, and returns them as short texts.
    pub(crate) fn answers(&mut self) -> Vec<String> {
        let progress = self.send();
        self.wait(progress)
    }

    /// Waits for all replies, and returns them as short texts.
    pub(crate) fn wait(&mut self, progress: Progress) -> Vec<String> {
        self.go_on_from(progress);
        let out = std::mem::take(&mut self.out);
        let mut rest = &out[..];
        let mut said = Vec::new();
        while let Some(header) = Header::parse(rest).unwrap() {
            let (message, behind) = rest.split_at(header.message_bytes());
            said.extend(short(header.tag, &message[HEADER_BYTES..]));
            rest = behind;
        }
        said
    }

    /// Resumes the session until it waits for the client.
    fn go_on_from(&mut self, mut progress: Progress) {
        for _ in 0..RESUMES_MAX {
            progress = match progress {
                Progress::Waiting => {
                    let woken = self.woken.recv_timeout(Duration::from_secs(30));
                    woken.expect("the session is woken");
                    self.session.resume(&mut self.out)
                }
                Progress::More => self.session.resume(&mut self.out),
                Progress::Idle | Progress::Closed => return,
            };
        }
        panic!("the session is woken without end");
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns a message as a short text.
fn short(tag: u8, body: &[u8]) -> Option<String> {
    let row = || {
        let values = columns(body).map(|value| value.map_or("null".to_owned(), text));
        values.collect::<Vec<_>>().join("|")
    };
    Some(match tag {
        back::ERROR_RESPONSE => format!("error {}", text(Fields(body).sqlstate())),
        back::NOTICE_RESPONSE => format!("notice {}", text(Fields(body).sqlstate())),
        back::READY_FOR_QUERY => format!("ready {}", text(body)),
        back::COMMAND_COMPLETE => text(command_tag(body)),
        back::DATA_ROW => format!("row {}", row()),
        back::ROW_DESCRIPTION => format!("columns {}", described(body)),
        back::PARAMETER_DESCRIPTION => {
            let oids = body[2..].chunks(4).map(|oid| u32::from_be_bytes(oid.try_into().unwrap()));
            format!("parameters {:?}", oids.collect::<Vec<_>>())
        }
        back::PARSE_COMPLETE => "parsed".to_owned(),
        back::BIND_COMPLETE => "bound".to_owned(),
        back::CLOSE_COMPLETE => "closed".to_owned(),
        back::NO_DATA => "no data".to_owned(),
        back::PORTAL_SUSPENDED => "suspended".to_owned(),
        back::EMPTY_QUERY_RESPONSE => "empty".to_owned(),
        back::COPY_IN_RESPONSE => "copy in".to_owned(),
        back::COPY_OUT_RESPONSE => "copy out".to_owned(),
        back::COPY_DATA => format!("data {}", text(body).trim_end()),
        back::COPY_DONE => "copied".to_owned(),
        back::PARAMETER_STATUS if !body.starts_with(b"application_name\0a") => return None,
        back::PARAMETER_STATUS => "status".to_owned(),
        _ => return None,
    })
}

/// Returns names and types of columns, with the lengths of the types.
fn described(body: &[u8]) -> String {
    let mut rest = &body[2..];
    let mut all = Vec::new();
    while let Some((name, behind)) = refrain_pg_wire::frame::split_string(rest) {
        let oid = u32::from_be_bytes(behind[6..10].try_into().unwrap());
        let modifier = i32::from_be_bytes(behind[12..16].try_into().unwrap());
        let limit = if modifier < 0 { String::new() } else { format!("({})", modifier - 4) };
        all.push(format!("{}:{oid}{limit}", text(name)));
        rest = &behind[18..];
    }
    all.join(" ")
}
