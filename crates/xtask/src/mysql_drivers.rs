//! Client libraries of MySQL and MariaDB: see `drivers/README.md`.
//!
//! Each library's program prints what its checks get. It runs straight against a server, whose
//! answers are right, and through Refrain in transaction mode, where it must print the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::certificates::Authority;
use crate::command::{self, Tally, failed};
use crate::drivers::{node, of, python};
use crate::mysql::{Flavour, PASSWORD, Server, USER};
use crate::ports::{self, free_port};
use crate::provision;
use crate::proxy::Refrain;
use crate::rounds::compared;
use crate::turns::in_turns;
use crate::workspace::{self, built};

/// The most servers that Refrain has for a library. Each program has 24 clients at once.
const SERVERS: u32 = 4;
/// Programs that run at once. Each has a Refrain of its own: what a client asks about its statement
/// before, such as SHOW WARNINGS, gets an error if another has had the server since.
const AT_ONCE: usize = 2;
/// The longest that Refrain may take until it listens for clients of MySQL.
const START_MAX: Duration = Duration::from_secs(10);

/// A client library, or a way to use one.
struct Library {
    name: &'static str,
    /// Fetches what the program needs and returns it as a command.
    command: fn() -> Result<Command>,
    /// Things that the library cannot do.
    lacks: &'static [Lack],
}

/// Something that a library cannot do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lack {
    /// It has no other plugin than `mysql_native_password`.
    Plugins,
    /// It does not connect to Unix sockets.
    Sockets,
    /// It is only where MySQL 9 is, and does not log in to MariaDB.
    MariaDb,
}

const LIBRARIES: &[Library] = &[
    Library { name: "PyMySQL", command: || of("pymysql", python("smoke_mysql.py")), lacks: &[] },
    Library {
        name: "mysqlclient",
        command: || of("mysqlclient", python("smoke_mysql.py")),
        lacks: &[],
    },
    Library { name: "aiomysql", command: || of("aiomysql", python("smoke_mysql.py")), lacks: &[] },
    Library { name: "asyncmy", command: || of("asyncmy", python("smoke_mysql.py")), lacks: &[] },
    Library {
        name: "Connector/Python",
        command: || of("connector", python("smoke_mysql.py")),
        lacks: &[],
    },
    Library {
        name: "Connector/Python prepared",
        command: || of("connector-prepared", python("smoke_mysql.py")),
        lacks: &[],
    },
    Library {
        name: "MariaDB Connector/Python",
        command: || of("mariadb", python("smoke_mysql.py")),
        lacks: &[],
    },
    Library {
        name: "MariaDB Connector/Python prepared",
        command: || of("mariadb-binary", python("smoke_mysql.py")),
        lacks: &[],
    },
    Library { name: "mysql2", command: || of("mysql2", node("smoke_mysql.js")), lacks: &[] },
    Library {
        name: "mysql of Node",
        command: || of("mysql", node("smoke_mysql.js")),
        lacks: &[Lack::Plugins],
    },
    Library {
        name: "mariadb of Node",
        command: || of("mariadb", node("smoke_mysql.js")),
        lacks: &[],
    },
    Library { name: "go-sql-driver", command: || of("prepared", go()), lacks: &[] },
    Library { name: "go-sql-driver by text", command: || of("text", go()), lacks: &[] },
    Library {
        name: "Connector/J",
        command: || of("connector-text", java()),
        lacks: &[Lack::Sockets],
    },
    Library {
        name: "Connector/J prepared",
        command: || of("connector-prepared", java()),
        lacks: &[Lack::Sockets],
    },
    Library {
        name: "MariaDB Connector/J",
        command: || of("mariadb-text", java()),
        lacks: &[Lack::Sockets],
    },
    Library {
        name: "MariaDB Connector/J prepared",
        command: || of("mariadb-prepared", java()),
        lacks: &[Lack::Sockets],
    },
    Library { name: "sqlx", command: || of("sqlx", rust()), lacks: &[] },
    Library { name: "mysql_async", command: || of("mysql_async", rust()), lacks: &[] },
    Library {
        name: "mariadb",
        command: || command_line("mariadb", &Command::new("mariadb")),
        lacks: &[],
    },
    Library { name: "mysql of MySQL 9", command: mysql_9, lacks: &[Lack::MariaDb] },
];

/// Frameworks, each with tests of its own.
const FRAMEWORKS: &[Library] = &[
    Library { name: "Django's suite", command: django_suite, lacks: &[] },
    Library { name: "SQLAlchemy's suite", command: sqlalchemy_suite, lacks: &[] },
];

fn go() -> Result<Command> {
    Ok(Command::new(provision::go_with_mysql()?))
}

fn java() -> Result<Command> {
    let places = [provision::java()?.join("*"), provision::java_with_mysql()?];
    let places = places.map(|place| place.display().to_string()).join(":");
    let mut java = Command::new("java");
    // It is soon over, so code is not worth much of a compiler's time.
    java.args(["-XX:TieredStopAtLevel=1", "-cp", &places, "SmokeMysql"]);
    Ok(java)
}

fn rust() -> Result<Command> {
    Ok(Command::new(provision::rust_with_mysql()?))
}

fn mysql_9() -> Result<Command> {
    let nine = provision::mysql_9()?.context("MySQL 9 is not there")?;
    command_line("mysql", &nine.client())
}

fn django_suite() -> Result<Command> {
    let mut command = python("../django-suite/run.py")?;
    command.arg(provision::source_of("Django")?);
    Ok(command)
}

fn sqlalchemy_suite() -> Result<Command> {
    python("../sqlalchemy-suite/run.py")
}

/// Returns the command of the script that runs a command line client.
fn command_line(name: &str, client: &Command) -> Result<Command> {
    let mut script = Command::new("bash");
    script.arg(workspace::root().join("drivers/shell/smoke_mysql.sh")).arg(name);
    script.arg(client.get_program()).args(client.get_args());
    Ok(script)
}

/// A way from a program through Refrain to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// In the clear, over TCP on both sides.
    Clear,
    /// Encrypted on both sides, as far as the server can.
    Tls,
    /// By Unix sockets on both sides.
    Socket,
    /// In the clear, when the server has just been started again.
    Restarted,
}

/// Every way.
pub const WAYS: &[Way] = &[Way::Clear, Way::Tls, Way::Socket, Way::Restarted];

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Clear => "in the clear",
            Self::Tls => "over TLS",
            Self::Socket => "by Unix sockets",
            Self::Restarted => "after a restart of the server",
        }
    }
}

/// A place that programs connect to.
#[derive(Clone, Default)]
struct Place {
    port: u16,
    /// The Unix socket, if they are to use that.
    socket: Option<PathBuf>,
    /// The file of the authority of the server's certificate, if they are to encrypt.
    root: Option<PathBuf>,
}

/// The output of a program, and the time that it took.
type Output = (Result<String>, Duration);

impl Place {
    fn output_of(&self, library: &Library) -> Output {
        let started = Instant::now();
        let output = (library.command)().and_then(|mut program| {
            program.env("MYSQL_HOST", "127.0.0.1").env("MYSQL_PORT", self.port.to_string());
            for (name, path) in [("MYSQL_SOCKET", &self.socket), ("MYSQL_CA", &self.root)] {
                match path {
                    Some(path) => program.env(name, path),
                    None => program.env_remove(name),
                };
            }
            command::output(program.env("TZ", "UTC"))
        });
        (output, started.elapsed())
    }
}

/// Runs programs, one at a time at each place, and returns their outputs.
fn outputs_of(libraries: &[&Library], places: &[Place]) -> Result<Vec<Output>> {
    in_turns(places.to_vec(), libraries, |place, library| Ok(place.output_of(library)))
}

/// A server, and files that it and Refrain need.
struct World {
    flavour: Flavour,
    server: Server,
    folder: PathBuf,
}

impl World {
    fn start(flavour: Flavour) -> Result<World> {
        let folder = workspace::target().join("drivers-mysql").join(format!("{flavour:?}"));
        fs::create_dir_all(&folder)?;
        let authority = Authority::new("root")?;
        fs::write(folder.join("root.crt"), authority.certificate())?;
        authority.sign("own", &["localhost", "127.0.0.1"])?.write(&folder, "own")?;
        let path = |name: &str| folder.join(name).display().to_string();
        let (root, certificate, key) = (path("root.crt"), path("own.crt"), path("own.key"));
        let mut settings = vec![("local-infile", "1"), ("max-connections", "500")];
        if encrypts(flavour) {
            settings.extend([("ssl-ca", &*root), ("ssl-cert", &certificate), ("ssl-key", &key)]);
        }
        let server = Server::start_listening(flavour, &settings)?;
        let world = World { flavour, server, folder };
        world.remember()?;
        Ok(world)
    }

    /// Has the server remember the user's password, which not every library can send in the clear.
    fn remember(&self) -> Result<()> {
        let mut client = Command::new("mariadb");
        client
            .args(["--no-defaults", "-e", "DO 1"])
            .args([format!("-u{USER}"), format!("-p{PASSWORD}")]);
        command::output(client.arg("-S").arg(self.server.socket())).map(drop)
    }

    /// Starts Refrain for a way, and returns it with the place where it listens.
    fn refrain(&self, program: &Path, way: Way) -> Result<(Refrain, Place)> {
        let port = free_port()?;
        let path = |name: &str| self.folder.join(name);
        let (mut socket, mut root, mut clients) = (None, None, String::new());
        let mut server = format!(
            "url = \"mysql://{USER}:{PASSWORD}@127.0.0.1:{}/?sslmode=disable\"",
            self.server.port()
        );
        match way {
            Way::Clear | Way::Restarted => {}
            Way::Tls => {
                clients = format!(
                    "client_tls_sslmode = \"require\"\nclient_tls_cert_file = {:?}\n\
                     client_tls_key_file = {:?}\n",
                    path("own.crt"),
                    path("own.key")
                );
                if encrypts(self.flavour) {
                    let with =
                        format!("sslmode=verify-full\"\nsslrootcert = {:?}", path("root.crt"));
                    server = server.replace("sslmode=disable\"", &with);
                }
                root = Some(path("root.crt"));
            }
            Way::Socket => {
                server = format!(
                    "backend = \"mysql\"\nuser = \"{USER}\"\npassword = \"{PASSWORD}\"\nhost = {:?}",
                    self.server.socket()
                );
                // Such a path has to be short.
                let name = format!("refrain-drivers-{port}.sock");
                let own = std::env::temp_dir().join(name);
                clients = format!("mysql_socket = {own:?}\n");
                socket = Some(own);
            }
        }
        let config = format!(
            "mysql_listen = [\"127.0.0.1:{port}\"]\n{clients}[users.{USER}]\n\
             password = \"{PASSWORD}\"\n[pool]\npool_mode = \"transaction\"\n\
             pool_size = {SERVERS}\n[databases.\"*\"]\n{server}\n"
        );
        let mut refrain = Refrain::start_as(program, &config)?;
        ports::wait_for(port, START_MAX, || refrain.is_running())
            .with_context(|| format!("no port for MySQL:\n{}", refrain.log()))?;
        Ok((refrain, Place { port, socket, root }))
    }
}

/// Whether the server and Refrain have methods of TLS in common.
fn encrypts(flavour: Flavour) -> bool {
    flavour != Flavour::MySql
}

/// Runs libraries with a server: directly, and through Refrain in these ways.
pub fn run(flavour: Flavour, ways: &[Way], only: Option<&str>) -> Result<Tally> {
    run_of(LIBRARIES, flavour, ways, only)
}

/// Runs the tests of frameworks with a server, directly and through Refrain, in the clear.
pub fn frameworks(flavour: Flavour, only: Option<&str>) -> Result<Tally> {
    run_of(FRAMEWORKS, flavour, &[Way::Clear], only)
}

fn run_of(
    libraries: &[Library],
    flavour: Flavour,
    ways: &[Way],
    only: Option<&str>,
) -> Result<Tally> {
    let has_nine = Flavour::MySql9.is_there()?;
    let chosen: Vec<_> = libraries
        .iter()
        .filter(|library| only.is_none_or(|name| library.name == name))
        .filter(|library| flavour == Flavour::MariaDb || !library.lacks.contains(&Lack::Plugins))
        .filter(|library| {
            has_nine && flavour != Flavour::MariaDb || !library.lacks.contains(&Lack::MariaDb)
        })
        .collect();
    if chosen.is_empty() || flavour == Flavour::MySql9 && !has_nine {
        return Ok(Tally::default());
    }
    let program = built("refrain")?;
    let mut world = World::start(flavour)?;
    println!("--- {flavour:?}, {}", world.server.run("SELECT VERSION()")?.trim_end());
    // Fetches and builds everything, so that this is in no program's time.
    chosen.iter().try_for_each(|library| (library.command)().map(drop))?;
    let direct = Place { port: world.server.port(), ..Place::default() };
    let expected = outputs_of(&chosen, &vec![direct; AT_ONCE])?;
    let mut tally = Tally::default();
    for &way in ways {
        let started = (0..AT_ONCE).map(|_| world.refrain(&program, way));
        let (refrains, places): (Vec<_>, Vec<_>) =
            started.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        if way == Way::Restarted {
            // They have servers, which go.
            places.iter().try_for_each(|place| place.output_of(chosen[0]).0.map(drop))?;
            world.server.restart()?;
        }
        let some: Vec<_> = chosen
            .iter()
            .zip(&expected)
            .filter(|(library, _)| way != Way::Socket || !library.lacks.contains(&Lack::Sockets))
            .collect();
        let libraries: Vec<_> = some.iter().map(|(library, _)| **library).collect();
        let answered = outputs_of(&libraries, &places)?;
        let mut of_way = Tally::default();
        for ((library, expected), answered) in some.into_iter().zip(answered) {
            of_way += judged(library, way, expected, answered);
        }
        if of_way.failed > 0 {
            let logs: Vec<_> = refrains.iter().map(Refrain::log).collect();
            println!("--- Refrain's log\n{}", logs.concat());
        }
        tally += of_way;
    }
    Ok(tally)
}

/// Compares the outputs of a library.
fn judged(library: &Library, way: Way, direct: &Output, through: Output) -> Tally {
    let seconds = |output: &Output| output.1.as_secs_f32();
    let (direct_s, through_s) = (seconds(direct), seconds(&through));
    println!("--- {} {}: {direct_s:.1} s directly, {through_s:.1} s", library.name, way.name());
    match (&direct.0, through.0) {
        (Ok(expected), Ok(answered)) => compared(["direct", "Refrain"], expected, &answered),
        (Err(error), _) => failed(&format!("FAILED  directly: {error:#}")),
        (_, Err(error)) => failed(&format!("FAILED  through Refrain: {error:#}")),
    }
}
