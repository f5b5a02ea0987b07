//! The log's lines for syslog: datagrams to the socket of the machine's log (`syslog`).
//!
//! The form is RFC 3164's, which glibc's `syslog` writes as well: priority, time, name and process,
//! and the line. The time is in the zone of `log_timezone`. A datagram that the socket does not
//! take at once is dropped, since the log must not wait; the socket is connected anew with the next
//! line.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process;

use refrain_config::{General, SyslogFacility};
use tracing::Level;

use super::zone;

/// The machine's log.
const SOCKET: &str = "/dev/log";

/// The name and the facility of lines, and the socket.
#[derive(Debug)]
pub(super) struct Syslog {
    ident: String,
    facility: SyslogFacility,
    socket: Option<UnixDatagram>,
}

impl Syslog {
    /// Returns the place that the options name; `None` if it is none.
    pub(super) fn of(general: &General) -> Option<Self> {
        let (ident, facility) = (general.syslog_ident.clone(), general.syslog_facility);
        general.syslog.then_some(Self { ident, facility, socket: None })
    }

    /// Sends a line.
    pub(super) fn write(&mut self, level: Level, line: &str) {
        self.write_to(Path::new(SOCKET), level, line);
    }

    fn write_to(&mut self, path: &Path, level: Level, line: &str) {
        if self.socket.is_none() {
            self.socket = connect(path);
        }
        let Some(socket) = &self.socket else { return };
        let priority = code(self.facility) * 8 + severity(level);
        let (time, ident, pid) = (zone::syslog_now(), &self.ident, process::id());
        let line = line.trim_end_matches('\n');
        let datagram = format!("<{priority}>{time} {ident}[{pid}]: {line}");
        if socket.send(datagram.as_bytes()).is_err() {
            self.socket = None;
        }
    }
}

fn connect(path: &Path) -> Option<UnixDatagram> {
    let socket = UnixDatagram::unbound().ok()?;
    socket.set_nonblocking(true).ok()?;
    socket.connect(path).ok()?;
    Some(socket)
}

/// Returns the number of a facility (RFC 3164, 4.1.1).
fn code(facility: SyslogFacility) -> u8 {
    match facility {
        SyslogFacility::User => 1,
        SyslogFacility::Daemon => 3,
        SyslogFacility::Auth => 4,
        SyslogFacility::Authpriv => 10,
        SyslogFacility::Local0 => 16,
        SyslogFacility::Local1 => 17,
        SyslogFacility::Local2 => 18,
        SyslogFacility::Local3 => 19,
        SyslogFacility::Local4 => 20,
        SyslogFacility::Local5 => 21,
        SyslogFacility::Local6 => 22,
        SyslogFacility::Local7 => 23,
    }
}

/// Returns the number of a severity, which PgBouncer chooses alike.
fn severity(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG | Level::TRACE => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_reach_a_socket_that_may_come_and_go() {
        let dir = std::env::temp_dir().join(format!("refrain-syslog-{}", process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("log");
        let general = General {
            syslog: true,
            syslog_ident: "shop".to_owned(),
            syslog_facility: SyslogFacility::Local3,
            ..General::default()
        };
        let mut syslog = Syslog::of(&general).expect("it is on");
        syslog.write_to(&path, Level::ERROR, "nobody reads it\n");
        for (level, priority) in [(Level::WARN, 156), (Level::INFO, 158), (Level::DEBUG, 159)] {
            let read = UnixDatagram::bind(&path).unwrap();
            // The first line finds that the socket from before has gone.
            (0..2).for_each(|_| syslog.write_to(&path, level, "a line\n"));
            let mut buffer = [0; 200];
            let length = read.recv(&mut buffer).unwrap();
            let text = std::str::from_utf8(&buffer[..length]).unwrap();
            assert!(text.starts_with(&format!("<{priority}>")), "{text}");
            assert!(text.ends_with(&format!(" shop[{}]: a line", process::id())), "{text}");
            drop(read);
            std::fs::remove_file(&path).unwrap();
        }
        assert!(Syslog::of(&General::default()).is_none());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
