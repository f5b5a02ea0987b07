//! The program's command line, its environment, and its start while a killed one still holds the
//! port.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use xtask::ports::free_port;
use xtask::postgres::PASSWORD;
use xtask::proxy::program;

use crate::session::{LIMIT, startup};
use crate::world::{Version, cluster, eventually, psql};

const PARAMS: [(&str, &str); 2] = [("user", "scram_user"), ("database", "postgres")];

/// Arguments and environment variables.
type Way<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)]);

/// The program, which listens on a port of its own.
struct Running {
    child: Child,
    addr: SocketAddr,
}

impl Running {
    fn start(port: u16, args: &[&str], environment: &[(&str, &str)]) -> Self {
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut command = Command::new(program().unwrap());
        command.args(args).args(["--metrics-listen", "off", "--listen", &addr.to_string()]);
        command.envs(environment.iter().copied()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { child: command.spawn().unwrap(), addr }
    }

    /// Waits until it answers. A killed program's socket may still accept a connection and never
    /// answer.
    fn answers(&mut self) {
        eventually("it answers or ends", || {
            let ended = self.child.try_wait().unwrap().is_some();
            assert!(!ended, "it did not start");
            self.answer().is_ok()
        });
    }

    /// Logs in, and returns the first byte of the reply.
    fn answer(&self) -> io::Result<u8> {
        let mut stream = TcpStream::connect(self.addr)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.write_all(&startup(0x0003_0000, &PARAMS))?;
        let mut tag = [0];
        stream.read_exact(&mut tag)?;
        Ok(tag[0])
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_restart_right_behind_a_kill() {
    let port = free_port().unwrap();
    let start = || Running::start(port, &["postgres://scram_user@127.0.0.1:1"], &[]);
    let mut old = start();
    for _ in 0..20 {
        old.answers();
        old.child.kill().unwrap();
        // The kernel ends the io_uring operations of a killed program at its own time.
        let mut new = start();
        old.child.wait().unwrap();
        std::mem::swap(&mut old, &mut new);
    }
    old.answers();
}

#[test]
fn a_password_need_not_stand_in_the_list_of_processes() {
    let cluster = cluster(Version::V15);
    let url = format!("postgres://scram_user@{}:{}/postgres", cluster.host(), cluster.port());
    let whole = url.replace("scram_user@", &format!("scram_user:{PASSWORD}@"));
    let file = std::env::temp_dir().join(format!("refrain-it-password-{}", std::process::id()));
    fs::write(&file, format!("{PASSWORD}\n")).unwrap();
    let place = file.to_str().unwrap();
    let ways: [Way<'_>; 3] = [
        (&[&url, "--password-file", place], &[]),
        (&[&url], &[("REFRAIN_PASSWORD", PASSWORD)]),
        (&[], &[("REFRAIN_URL", &whole)]),
    ];
    for (args, environment) in ways {
        let mut program = Running::start(free_port().unwrap(), args, environment);
        program.answers();
        let line = fs::read(format!("/proc/{}/cmdline", program.child.id())).unwrap();
        assert!(!String::from_utf8_lossy(&line).contains(PASSWORD));
        let through = format!("postgres://scram_user@{}/postgres", program.addr);
        assert_eq!(psql(&through, PASSWORD, "select current_user").as_deref(), Ok("scram_user"));
        assert!(psql(&through, "wrong", "select 1").is_err());
    }
    fs::remove_file(&file).unwrap();
}
