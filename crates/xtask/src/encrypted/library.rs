//! The client libraries: which options for TLS each has, what they mean, and the words with which
//! it refuses.

use std::process::Command;

use anyhow::Result;

use crate::drivers::{java, node, of, python};
use crate::provision;

use super::mode::{Checks, Mode};

/// A client library.
pub(super) struct Library {
    /// The name in reports.
    pub(super) name: &'static str,
    /// Returns its program.
    pub(super) program: fn() -> Result<Command>,
    /// Options that each connection has.
    pub(super) options: &'static [(&'static str, &'static str)],
    /// Every mode that it has. The last is the strictest.
    pub(super) modes: &'static [Mode],
    /// What it has not, and why.
    pub(super) lacks: &'static [(Ability, &'static str)],
    /// Its own words for what it refuses. It goes on where it has none.
    pub(super) says: &'static [(Refusal, &'static str)],
}

/// What some libraries have and others have not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ability {
    /// One of libpq's modes.
    Mode(&'static str),
    /// TLS without a request.
    Direct,
    /// Logins that must be bound to the server's certificate.
    Binding,
    /// Logins that are bound if the server offers it, although nobody asks for it.
    BindingByItself,
}

/// What a driver refuses, or meets, and tells in its own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The server has no TLS, and the client must encrypt.
    NoTls,
    /// The server has no TLS, and the client began it without a request.
    NoDirectTls,
    /// The certificate is for another name.
    WrongName,
    /// The certificate has expired.
    Expired,
    /// The certificate is of an authority that the client does not trust.
    UnknownAuthority,
    /// The server ends the handshake, because the client shows no certificate.
    NoCertificate,
    /// The server ends the handshake, because the client's certificate is of an authority that the
    /// server does not trust.
    UnknownCertificate,
    /// Bytes in the clear stand behind the server's answer to the request.
    Injected,
    /// The connection is in the clear, and logins must be bound.
    BindingInClear,
    /// The server does not offer to bind logins, and they must be bound.
    BindingStripped,
}

impl Library {
    /// Whether it has this ability.
    pub(super) fn has(&self, ability: Ability) -> bool {
        !self.lacks.iter().any(|(lacking, _)| *lacking == ability)
    }

    /// Returns its words for a refusal. `None` if it goes on.
    pub(super) fn words(&self, refusal: Refusal) -> Option<&'static str> {
        self.says.iter().find(|(said, _)| *said == refusal).map(|(_, words)| *words)
    }
}

/// libpq's modes, with libpq's meaning.
const OF_LIBPQ: &[Mode] = &[
    Mode { word: "disable", begins_clear: true, may_change: false, checks: Checks::Nothing },
    Mode { word: "allow", begins_clear: true, may_change: true, checks: Checks::Nothing },
    Mode { word: "prefer", begins_clear: false, may_change: true, checks: Checks::Nothing },
    Mode { word: "require", begins_clear: false, may_change: false, checks: Checks::Nothing },
    Mode { word: "verify-ca", begins_clear: false, may_change: false, checks: Checks::Authority },
    Mode { word: "verify-full", begins_clear: false, may_change: false, checks: Checks::Name },
];

/// Every library.
pub(super) const LIBRARIES: &[Library] = &[
    Library {
        name: "libpq 15 (psycopg)",
        program: || {
            let mut command = of("psycopg", python("tls.py"))?;
            // Without its own libpq, psycopg loads that of the system.
            command.env("PSYCOPG_IMPL", "python");
            Ok(command)
        },
        options: &[],
        modes: OF_LIBPQ,
        lacks: &[(Ability::Direct, "sslnegotiation came with libpq 17")],
        says: &[],
    },
    Library {
        name: "libpq 17 (psycopg2)",
        program: || of("psycopg2", python("tls.py")),
        options: &[],
        modes: OF_LIBPQ,
        lacks: &[],
        says: &[],
    },
    Library {
        name: "libpq 18 (psycopg)",
        program: || of("psycopg", python("tls.py")),
        options: &[],
        modes: OF_LIBPQ,
        lacks: &[],
        says: &[],
    },
    Library {
        name: "asyncpg",
        program: || of("asyncpg", python("tls.py")),
        options: &[],
        modes: OF_LIBPQ,
        lacks: &[
            (Ability::Binding, "it knows SCRAM-SHA-256 only, and says that it cannot bind"),
            (Ability::BindingByItself, "as before"),
        ],
        says: &[],
    },
    Library {
        name: "pgx",
        program: || Ok(Command::new(provision::go_tls()?)),
        options: &[],
        modes: OF_LIBPQ,
        lacks: &[],
        says: &[],
    },
    Library {
        name: "pgjdbc",
        program: || java("Tls.java"),
        options: &[],
        modes: OF_LIBPQ,
        lacks: &[],
        says: &[],
    },
    Library {
        name: "node-postgres",
        program: || node("tls.js"),
        options: &[],
        modes: &[
            Mode {
                word: "disable",
                begins_clear: true,
                may_change: false,
                checks: Checks::Nothing,
            },
            Mode {
                word: "no-verify",
                begins_clear: false,
                may_change: false,
                checks: Checks::Nothing,
            },
            Mode { word: "prefer", begins_clear: false, may_change: false, checks: Checks::Name },
            Mode { word: "require", begins_clear: false, may_change: false, checks: Checks::Name },
            Mode {
                word: "verify-ca",
                begins_clear: false,
                may_change: false,
                checks: Checks::Name,
            },
            Mode {
                word: "verify-full",
                begins_clear: false,
                may_change: false,
                checks: Checks::Name,
            },
        ],
        lacks: &[
            (Ability::Mode("allow"), "it takes an unknown mode for a strict one"),
            (Ability::BindingByItself, "enableChannelBinding is off by default"),
        ],
        says: &[],
    },
    Library {
        name: "node-postgres, uselibpqcompat",
        program: || node("tls.js"),
        options: &[("compat", "true")],
        modes: &[
            Mode {
                word: "disable",
                begins_clear: true,
                may_change: false,
                checks: Checks::Nothing,
            },
            Mode {
                word: "prefer",
                begins_clear: false,
                may_change: false,
                checks: Checks::Nothing,
            },
            Mode {
                word: "require",
                begins_clear: false,
                may_change: false,
                checks: Checks::Nothing,
            },
            Mode {
                word: "verify-ca",
                begins_clear: false,
                may_change: false,
                checks: Checks::Authority,
            },
            Mode {
                word: "verify-full",
                begins_clear: false,
                may_change: false,
                checks: Checks::Name,
            },
        ],
        lacks: &[
            (Ability::Mode("allow"), "it takes an unknown mode for a strict one"),
            (Ability::BindingByItself, "enableChannelBinding is off by default"),
        ],
        says: &[],
    },
    Library {
        name: "tokio-postgres",
        program: || Ok(Command::new(provision::rust_tls()?)),
        options: &[],
        modes: &[
            Mode {
                word: "disable",
                begins_clear: true,
                may_change: false,
                checks: Checks::Nothing,
            },
            Mode { word: "prefer", begins_clear: false, may_change: true, checks: Checks::Name },
            Mode { word: "require", begins_clear: false, may_change: false, checks: Checks::Name },
        ],
        lacks: &[
            (Ability::Mode("allow"), "it has disable, prefer and require"),
            (Ability::Mode("verify-ca"), "the configuration of rustls says what is checked"),
            (Ability::Mode("verify-full"), "as before: by default, everything is"),
        ],
        says: &[],
    },
];
