//! The client libraries: which options for TLS each has, what they mean, and the words with which
//! it refuses.

use std::process::Command;

use anyhow::Result;

use crate::drivers::{java, node, of, python};
use crate::provision;

use super::mode::{Checks, Mode, mode};

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
    /// Its gaps, and the reasons.
    pub(super) lacks: &'static [(Ability, &'static str)],
    /// Its own words for what it refuses.
    pub(super) says: &'static [(Refusal, &'static str)],
}

/// An ability that some libraries have and others have not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ability {
    /// One of libpq's modes.
    Mode(&'static str),
    /// TLS without a request.
    Direct,
    /// Logins that must be bound to the server's certificate.
    Binding,
    /// Refusing a login that cannot be bound, if it must be.
    BindingInsisted,
    /// Logins that are bound if the server offers it, although nobody asks for it.
    BindingByItself,
    /// Looking at the name in a certificate while the handshake goes on, so that the server hears
    /// that it failed.
    NameInHandshake,
    /// Refusing bytes in the clear behind the answer to a request for TLS.
    Injected,
    /// Telling the SQLSTATE of a login that the server refuses.
    Sqlstate,
}

/// A refusal by a driver, or by a handshake, in the driver's own words.
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

    /// Returns its words for a refusal, any of which will do. Without a row no words fit, so that a
    /// gap is seen.
    pub(super) fn words(&self, refusal: Refusal) -> Vec<&'static str> {
        let said = self.says.iter().filter(|(said, _)| *said == refusal);
        said.map(|(_, words)| *words).collect()
    }
}

/// libpq's modes, with libpq's meaning.
const OF_LIBPQ: &[Mode] = &[
    mode("disable").in_the_clear(),
    mode("allow").in_the_clear().may_change(),
    mode("prefer").may_change(),
    mode("require"),
    mode("verify-ca").checks(Checks::Authority),
    mode("verify-full").checks(Checks::Name),
];

const NO_SQLSTATE: (Ability, &str) =
    (Ability::Sqlstate, "libpq keeps none for a connection that failed");
const LATE_NAME: (Ability, &str) =
    (Ability::NameInHandshake, "it compares the name afterwards, and leaves in good order");

/// Returns libpq's words. OpenSSL's for a server that goes away depend on the version.
const fn of_libpq(gone: &'static str) -> [(Refusal, &'static str); 10] {
    [
        (Refusal::NoTls, "server does not support SSL, but SSL was required"),
        (Refusal::NoDirectTls, gone),
        (Refusal::WrongName, "server certificate for \"elsewhere\" does not match host name"),
        (Refusal::Expired, "SSL error: certificate verify failed"),
        (Refusal::UnknownAuthority, "SSL error: certificate verify failed"),
        (Refusal::NoCertificate, "SSL error: tlsv13 alert certificate required"),
        (Refusal::UnknownCertificate, "SSL error: tlsv1 alert unknown ca"),
        (Refusal::Injected, "received unencrypted data after SSL response"),
        (Refusal::BindingInClear, "channel binding required, but SSL not in use"),
        (
            Refusal::BindingStripped,
            "server did not offer an authentication method that supports channel binding",
        ),
    ]
}

const OF_NODE: &[(Refusal, &str)] = &[
    (Refusal::NoTls, "The server does not support SSL connections"),
    (Refusal::NoDirectTls, "disconnected before secure TLS connection was established"),
    (Refusal::WrongName, "Hostname/IP does not match certificate's altnames: Host: localhost."),
    (Refusal::Expired, "certificate has expired"),
    (Refusal::UnknownAuthority, "unable to verify the first certificate"),
    (Refusal::NoCertificate, "tlsv13 alert certificate required"),
    (Refusal::UnknownCertificate, "tlsv1 alert unknown ca"),
    (Refusal::Injected, "There was an error establishing an SSL connection"),
];

const NODE_LACKS: &[(Ability, &str)] = &[
    (Ability::Mode("allow"), "it takes a word that it does not know for the strictest mode"),
    (Ability::BindingByItself, "enableChannelBinding is off by default"),
    (Ability::BindingInsisted, "enableChannelBinding binds where the server offers it"),
];

/// Every library.
pub(super) const LIBRARIES: &[Library] = &[
    Library {
        name: "libpq 15 (psycopg)",
        program: || {
            let mut command = of("psycopg", python("tls.py"))?;
            // In this mode psycopg loads the libpq of the system.
            command.env("PSYCOPG_IMPL", "python");
            Ok(command)
        },
        options: &[],
        modes: OF_LIBPQ,
        lacks: &[(Ability::Direct, "sslnegotiation came with libpq 17"), NO_SQLSTATE, LATE_NAME],
        says: &of_libpq(""),
    },
    Library {
        name: "libpq 17 (psycopg2)",
        program: || of("psycopg2", python("tls.py")),
        options: &[],
        modes: OF_LIBPQ,
        lacks: &[NO_SQLSTATE, LATE_NAME],
        says: &of_libpq("SSL SYSCALL error: EOF detected"),
    },
    Library {
        name: "libpq 18 (psycopg)",
        program: || of("psycopg", python("tls.py")),
        options: &[],
        modes: OF_LIBPQ,
        lacks: &[NO_SQLSTATE, LATE_NAME],
        says: &of_libpq("SSL error: unexpected eof while reading"),
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
        says: &[
            (Refusal::NoTls, "rejected SSL upgrade"),
            (Refusal::NoDirectTls, "ConnectionResetError"),
            (Refusal::WrongName, "Hostname mismatch, certificate is not valid for 'localhost'"),
            (Refusal::Expired, "certificate has expired"),
            (Refusal::UnknownAuthority, "unable to get local issuer certificate"),
            // It does not tell what the server's alert says.
            (Refusal::NoCertificate, "connection was closed in the middle of operation"),
            (Refusal::UnknownCertificate, "connection was closed in the middle of operation"),
            (Refusal::Injected, "rejected SSL upgrade"),
        ],
    },
    Library {
        name: "pgx",
        program: || Ok(Command::new(provision::go_tls()?)),
        options: &[],
        modes: OF_LIBPQ,
        lacks: &[],
        says: &[
            (Refusal::NoTls, "server refused TLS connection"),
            (Refusal::NoDirectTls, "EOF"),
            (Refusal::WrongName, "certificate is valid for elsewhere, not localhost"),
            (Refusal::Expired, "certificate has expired or is not yet valid"),
            (Refusal::UnknownAuthority, "certificate signed by unknown authority"),
            (Refusal::NoCertificate, "remote error: tls: certificate required"),
            // It keeps the certificate back, since the server has named other authorities.
            (Refusal::UnknownCertificate, "remote error: tls: certificate required"),
            (Refusal::Injected, "first record does not look like a TLS handshake"),
            (Refusal::BindingInClear, "channel binding required but server does not support"),
            (Refusal::BindingStripped, "channel binding required but server does not support"),
        ],
    },
    Library {
        name: "pgjdbc",
        program: || java("Tls.java"),
        options: &[],
        modes: OF_LIBPQ,
        lacks: &[
            LATE_NAME,
            (Ability::Injected, "it drops what stands behind the answer, and goes on with TLS"),
        ],
        says: &[
            (Refusal::NoTls, "The server does not support SSL."),
            (Refusal::NoDirectTls, "Remote host terminated the handshake"),
            (Refusal::WrongName, "The hostname localhost could not be verified"),
            (Refusal::Expired, "NotAfter: "),
            (Refusal::UnknownAuthority, "unable to find valid certification path"),
            (Refusal::NoCertificate, "Received fatal alert: certificate_required"),
            // It keeps the certificate back, since the server has named other authorities.
            (Refusal::UnknownCertificate, "Received fatal alert: certificate_required"),
            // It still writes while the server ends the handshake, and then reads no alert.
            (Refusal::NoCertificate, "Broken pipe"),
            (Refusal::UnknownCertificate, "Broken pipe"),
            (Refusal::BindingInClear, "Channel Binding is required, but SSL is not in use"),
            (Refusal::BindingStripped, "server did not offer an authentication method"),
        ],
    },
    Library {
        name: "node-postgres",
        program: || node("tls.js"),
        options: &[],
        modes: &[
            mode("disable").in_the_clear(),
            mode("no-verify"),
            mode("prefer").checks(Checks::Name),
            mode("require").checks(Checks::Name),
            mode("verify-ca").checks(Checks::Name),
            mode("verify-full").checks(Checks::Name),
        ],
        lacks: NODE_LACKS,
        says: OF_NODE,
    },
    Library {
        name: "node-postgres with uselibpqcompat",
        program: || node("tls.js"),
        options: &[("compat", "true")],
        modes: &[
            mode("disable").in_the_clear(),
            mode("prefer"),
            mode("require"),
            mode("verify-ca").checks(Checks::Authority),
            mode("verify-full").checks(Checks::Name),
        ],
        lacks: NODE_LACKS,
        says: OF_NODE,
    },
    Library {
        name: "tokio-postgres",
        program: || Ok(Command::new(provision::rust_tls()?)),
        options: &[],
        modes: &[
            mode("disable").in_the_clear(),
            mode("prefer").may_change().checks(Checks::Name),
            mode("require").checks(Checks::Name),
        ],
        lacks: &[
            (Ability::Mode("allow"), "it has three modes"),
            (Ability::Mode("verify-ca"), "rustls has the say of what is checked"),
            (Ability::Mode("verify-full"), "as before; by default the name is checked too"),
        ],
        says: &[
            (Refusal::NoTls, "server does not support TLS"),
            (Refusal::NoDirectTls, "tls handshake eof"),
            (Refusal::WrongName, "certificate not valid for name \"localhost\""),
            (Refusal::Expired, "invalid peer certificate: certificate expired"),
            (Refusal::UnknownAuthority, "invalid peer certificate: UnknownIssuer"),
            (Refusal::NoCertificate, "received fatal alert: CertificateRequired"),
            (Refusal::UnknownCertificate, "received fatal alert: UnknownCA"),
            (Refusal::Injected, "received corrupt message of type InvalidContentType"),
            (Refusal::BindingInClear, "server did not use channel binding"),
            (Refusal::BindingStripped, "server did not use channel binding"),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_mode_is_left_out_in_silence() {
        for library in LIBRARIES {
            for mode in OF_LIBPQ {
                let has = library.modes.iter().any(|own| own.word == mode.word);
                assert_ne!(has, !library.has(Ability::Mode(mode.word)), "{}", library.name);
            }
            for (ability, why) in library.lacks {
                assert!(!why.is_empty(), "{}: {ability:?}", library.name);
            }
        }
    }
}
