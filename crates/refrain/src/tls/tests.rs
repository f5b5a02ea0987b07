//! Two sessions against each other, without a socket: one as a client's, one as a server's.

mod breaking;
mod meeting;
mod servers;
mod version1;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use refrain_config::Options;
use xtask::certificates::{Authority, Signed};

use super::*;
use refrain_pool::secured::Secured;
use std::sync::Arc;

/// A folder of files, which goes when it is dropped.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("refrain-tls-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes a file. Returns its path as a TOML text.
    pub(super) fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        format!("{:?}", path.to_str().unwrap())
    }

    /// Writes a certificate and its key. Returns their paths.
    pub(super) fn pair(&self, name: &str, signed: &Signed) -> (String, String) {
        let certificate = self.file(&format!("{name}.crt"), &signed.certificate);
        (certificate, self.file(&format!("{name}.key"), &signed.key))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The files and the setup of a test: Refrain is the client and the server.
pub(super) struct World {
    pub(super) options: Options,
    pub(super) store: Store,
    _folder: Folder,
}

impl World {
    /// Makes a setup: `general` has options of the program, `server` those of the database. The
    /// certificate is for `localhost`; the server's entry trusts its authority.
    pub(super) fn new(general: &str, server: &str) -> Self {
        let (folder, authority) = (Folder::new(), Authority::new("root").unwrap());
        let signed = authority.sign("server", &["localhost"]).unwrap();
        Self::with(folder, &authority, &signed, general, server)
    }

    pub(super) fn with(
        folder: Folder,
        authority: &Authority,
        signed: &Signed,
        general: &str,
        server: &str,
    ) -> Self {
        let (certificate, key) = folder.pair("server", signed);
        let root = folder.file("root.crt", &authority.certificate());
        let (own, own_key) = folder.pair("own", &authority.sign("refrain", &["app"]).unwrap());
        let general = general.replace("ROOT", &root);
        let server = server.replace("ROOT", &root).replace("OWN_KEY", &own_key);
        let server = server.replace("OWN", &own);
        let text = format!(
            "auth = \"trust\"\nclient_tls_cert_file = {certificate}\nclient_tls_key_file = {key}\n\
             {general}\n[databases.d]\nhost = \"localhost\"\n{server}\n"
        );
        let options = Options::from_toml(&text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        let store = Store::new(Setup::read(&options).unwrap());
        Self { options, store, _folder: folder }
    }

    /// Begins the session of a client that has asked for TLS.
    pub(super) fn of_client(&self) -> End {
        End::new(Session::of_client(&self.store, 0, false).unwrap())
    }

    /// Begins the session of the server, which has been connected.
    pub(super) fn of_server(&self) -> End {
        let host = &self.options.databases[0].server.host;
        let mut end = End::new(Session::of_server(&self.store, host).unwrap().unwrap());
        end.connects();
        end
    }

    /// Begins both sessions. The server has said that it can.
    pub(super) fn both(&self) -> (End, End) {
        let mut server = self.of_server();
        assert_eq!(server.output(), b"\0\0\0\x08\x04\xd2\x16\x2f");
        server.gets(b"S");
        (self.of_client(), server)
    }

    /// Returns the words of the failure of a handshake, if it fails.
    pub(super) fn failure(&self) -> Option<String> {
        let (mut client, mut server) = self.both();
        converse(&mut client, &mut server, usize::MAX);
        match server.secured() {
            Some(_) => None,
            None => Some(server.failure().to_owned()),
        }
    }
}

/// Something that the engine heard.
#[derive(Debug, PartialEq)]
pub(super) enum Told {
    Secured(Arc<Secured>),
    Connected,
    Bytes(Vec<u8>),
    End,
    Failed(String),
    Broken(String),
}

/// A session with its engine and its kernel.
pub(super) struct End {
    pub(super) session: Session,
    pub(super) told: Vec<Told>,
    /// Other tasks than to send.
    pub(super) tasks: Vec<Task>,
    scratch: Vec<u8>,
}

fn owned(heard: Heard<'_>) -> Told {
    match heard {
        Heard::Secured(secured) => Told::Secured(secured),
        Heard::Connected => Told::Connected,
        Heard::Bytes(bytes) => Told::Bytes(bytes.to_vec()),
        Heard::End => Told::End,
        Heard::Failed(why) => Told::Failed(why),
        Heard::Broken(why) => Told::Broken(why),
    }
}

impl End {
    pub(super) fn new(session: Session) -> Self {
        Self { session, told: Vec::new(), tasks: Vec::new(), scratch: Vec::new() }
    }

    pub(super) fn connects(&mut self) {
        let address = refrain_drive::Address::Tcp("127.0.0.1:5432".parse().unwrap());
        let told = &mut self.told;
        self.session.connected(Some(address), &mut |heard| told.push(owned(heard)));
    }

    pub(super) fn closes(&mut self, why: Option<&str>) {
        let told = &mut self.told;
        self.session.closed(why, &mut |heard| told.push(owned(heard)));
    }

    pub(super) fn gets(&mut self, bytes: &[u8]) {
        let told = &mut self.told;
        self.session.receive(bytes, &mut self.scratch, &mut |heard| told.push(owned(heard)));
    }

    /// Returns what the kernel gets now.
    pub(super) fn output(&mut self) -> Vec<u8> {
        self.sends().concat()
    }

    /// Returns what the kernel gets now, send by send.
    pub(super) fn sends(&mut self) -> Vec<Vec<u8>> {
        let (mut sends, mut spare) = (Vec::new(), Vec::new());
        loop {
            match self.session.next(&mut spare) {
                Task::Nothing => return sends,
                Task::Send(bytes) => {
                    sends.push(bytes);
                    self.session.sent();
                }
                task => {
                    let is_last = task == Task::Dissolve;
                    self.tasks.push(task);
                    if is_last {
                        return sends;
                    }
                }
            }
        }
    }

    /// Returns the bytes that the engine has got, in one piece.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let bytes = |told: &Told| match told {
            Told::Bytes(bytes) => Some(bytes.clone()),
            _ => None,
        };
        self.told.iter().filter_map(bytes).collect::<Vec<_>>().concat()
    }

    pub(super) fn secured(&self) -> Option<Arc<Secured>> {
        self.told.iter().find_map(|told| match told {
            Told::Secured(secured) => Some(Arc::clone(secured)),
            _ => None,
        })
    }

    /// Returns why the handshake has failed.
    #[track_caller]
    pub(super) fn failure(&self) -> &str {
        match self.told.last() {
            Some(Told::Failed(why)) => why,
            other => panic!("it has not failed: {other:?}"),
        }
    }
}

/// Passes on what both send, in pieces of at most `most` bytes, until neither has more to say.
pub(super) fn converse(one: &mut End, other: &mut End, most: usize) {
    loop {
        let (from_one, from_other) = (one.output(), other.output());
        if from_one.is_empty() && from_other.is_empty() {
            return;
        }
        from_one.chunks(most).for_each(|piece| other.gets(piece));
        from_other.chunks(most).for_each(|piece| one.gets(piece));
    }
}
