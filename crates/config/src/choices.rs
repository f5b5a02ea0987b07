//! Words that options of the program may have.

use crate::value::{Given, Value, choice};

choice! {
    /// Kernel interface for socket I/O.
    DriverChoice {
        /// io_uring if the kernel allows it, otherwise epoll.
        Auto = "auto",
        /// io_uring; without it, Refrain does not start.
        Uring = "uring",
        /// epoll.
        Epoll = "epoll",
    }
}

choice! {
    /// The names by which metrics of pools are told apart.
    MetricsBy {
        /// By database and user.
        Pool = "pool",
        /// By database.
        Database = "database",
        /// Not told apart.
        Total = "total",
    }
}

choice! {
    /// Log format.
    LogFormat {
        /// For people: text and `key=value`.
        Text = "text",
        /// For machines: one JSON object per line.
        Json = "json",
    }
}

choice! {
    /// Log level: less important lines are not written.
    LogLevel {
        /// Failures that an operator should look at.
        Error = "error",
        /// Problems that Refrain copes with.
        Warn = "warn",
        /// Start, stop, reload, logins refused.
        Info = "info",
        /// Start and end of every connection.
        Debug = "debug",
        /// Every message.
        Trace = "trace",
    }
}

choice! {
    /// Facility of lines in syslog.
    SyslogFacility {
        /// Login and authority.
        Auth = "auth",
        /// Login and authority, for few to read.
        Authpriv = "authpriv",
        /// Programs in the background.
        Daemon = "daemon",
        /// Programs of users.
        User = "user",
        /// For the machine's own use.
        Local0 = "local0",
        /// The same.
        Local1 = "local1",
        /// The same.
        Local2 = "local2",
        /// The same.
        Local3 = "local3",
        /// The same.
        Local4 = "local4",
        /// The same.
        Local5 = "local5",
        /// The same.
        Local6 = "local6",
        /// The same.
        Local7 = "local7",
    }
}

choice! {
    /// The words and SQLSTATEs of Refrain's own errors.
    PoolerErrors {
        /// PostgreSQL's.
        PostgreSql = "postgresql",
        /// PgBouncer's.
        PgBouncer = "pgbouncer",
    }
}

choice! {
    /// Method by which clients authenticate.
    AuthMethod {
        /// No authentication.
        Trust = "trust",
        /// Password in clear text.
        Password = "password",
        /// MD5 with a salt; SCRAM for users whose secret is a SCRAM verifier.
        Md5 = "md5",
        /// SCRAM-SHA-256.
        Scram = "scram",
        /// By the rules of `hba` or `hba_file`.
        Hba = "hba",
    }
}

choice! {
    /// Version of PgBouncer whose listings the console has.
    PgBouncerVersion {
        /// 1.24.
        V24 = "1.24",
        /// 1.25, with the same listings.
        V25 = "1.25",
        /// 1.26, which counts connections of clients too.
        V26 = "1.26",
    }
}

choice! {
    /// The lot of clients that need a database while it cannot be reached.
    Unavailable {
        /// They get an error.
        Refuse = "refuse",
        /// They wait until it is reached.
        Wait = "wait",
    }
}

/// Number of worker threads, each with an engine and a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// One for each core that the process may use.
    Cores,
    /// A fixed number.
    Fixed(u16),
}

impl Value for Workers {
    fn what() -> String {
        "\"cores\" or a whole number".to_owned()
    }

    fn read(given: &Given) -> Option<Self> {
        match given.text() {
            Some("cores") => Some(Self::Cores),
            _ => u16::read(given).map(Self::Fixed),
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Cores => "cores".to_owned(),
            Self::Fixed(count) => count.to_string(),
        }
    }

    fn measure(&self) -> Option<u64> {
        match self {
            Self::Cores => None,
            Self::Fixed(count) => Some(u64::from(*count)),
        }
    }
}
