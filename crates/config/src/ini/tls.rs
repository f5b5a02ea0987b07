//! TLS in PgBouncer's words, which are OpenSSL's.

use super::values::{list, names};
use crate::tls::{TlsCipher, TlsGroup, TlsProtocol};
use crate::value::{Given, Value};

/// Versions that PgBouncer knows and Refrain has not.
const OLD: [&str; 2] = ["tlsv1.0", "tlsv1.1"];
/// Words that stand for the ciphers of the library.
const USUAL: [&str; 6] = ["default", "secure", "fast", "normal", "compat", "all"];

/// Options that were made of a text, and what the text asks for besides.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    /// The value; `None` if it is Refrain's default.
    pub(super) given: Option<Given>,
    /// The words for the operator.
    pub(super) told: Option<String>,
}

/// Reads versions of TLS.
///
/// # Errors
/// If Refrain has none of them.
pub(super) fn protocols(text: &str) -> Result<Chosen, String> {
    let lower = text.to_ascii_lowercase();
    let all = [TlsProtocol::V12, TlsProtocol::V13].map(|version| version.show());
    let mut chosen = Vec::new();
    let mut old = Vec::new();
    for word in lower.split([',', ':']).map(str::trim).filter(|word| !word.is_empty()) {
        let (is_out, name) = word.strip_prefix('!').map_or((false, word), |name| (true, name));
        let named: Vec<&str> = match name {
            "all" | "legacy" | "secure" | "default" | "tlsv1" => {
                all.iter().map(String::as_str).collect()
            }
            _ if OLD.contains(&name) => {
                if !is_out {
                    old.push(name);
                }
                continue;
            }
            _ => all.iter().map(String::as_str).filter(|version| *version == name).collect(),
        };
        if named.is_empty() {
            return Err(format!("{name:?} is no version of TLS"));
        }
        if is_out && chosen.is_empty() {
            chosen.extend(all.iter().map(String::as_str));
        }
        chosen.retain(|version| !named.contains(version));
        if !is_out {
            chosen.extend(named);
        }
    }
    if chosen.is_empty() && !lower.trim().is_empty() {
        return Err("Refrain has TLS 1.2 and 1.3 alone".to_owned());
    }
    let told = (!old.is_empty()).then(|| format!("Refrain has no {}", old.join(", ")));
    chosen.sort_unstable();
    let is_default = chosen.is_empty() || chosen.len() == all.len();
    Ok(Chosen { given: (!is_default).then(|| list(chosen)), told })
}

/// Reads names of cipher suites: those of TLS 1.2 and those of TLS 1.3, if the latter are set.
///
/// # Errors
/// If Refrain has none of those that are named.
pub(super) fn ciphers(older: &str, newer: Option<&str>) -> Result<Chosen, String> {
    let known = |name: &str| TlsCipher::read(&Given::Text(name.to_owned())).is_some();
    let older: Vec<&str> =
        older.split([':', ',', ' ']).map(str::trim).filter(|name| !name.is_empty()).collect();
    let newer: Vec<&str> =
        newer.map_or(Vec::new(), |text| names(text).flat_map(|it| it.split(':')).collect());
    let is_usual = |name: &&&str| USUAL.contains(&name.to_ascii_lowercase().as_str());
    let of_old: Vec<&str> = older.iter().filter(|name| known(name)).copied().collect();
    let is_all = of_old.is_empty();
    let strange: Vec<&str> = older
        .iter()
        .filter(|name| !is_usual(name))
        .chain(&newer)
        .filter(|name| !known(name))
        .copied()
        .collect();
    let of_new: Vec<&str> = newer.iter().filter(|name| known(name)).copied().collect();
    if !newer.is_empty() && of_new.is_empty() {
        return Err(format!("Refrain has none of {}", newer.join(", ")));
    }
    let told = (!strange.is_empty()).then(|| {
        format!("Refrain does not know {}, and has modern suites alone", strange.join(", "))
    });
    if is_all && of_new.is_empty() {
        return Ok(Chosen { given: None, told });
    }
    let is_new = |name: &&str| name.starts_with("TLS_");
    let mut chosen = of_new;
    // PgBouncer's key for older versions leaves those of TLS 1.3 alone, and the other way round.
    if chosen.is_empty() && !of_old.iter().any(is_new) {
        chosen.extend(SUITES.iter().filter(|name| is_new(name)));
    }
    if is_all {
        chosen.extend(SUITES.iter().filter(|name| !is_new(name)));
    }
    chosen.extend(of_old);
    Ok(Chosen { given: Some(list(chosen)), told })
}

/// All of Refrain's suites.
const SUITES: [&str; 9] = [
    "TLS_AES_256_GCM_SHA384",
    "TLS_AES_128_GCM_SHA256",
    "TLS_CHACHA20_POLY1305_SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-RSA-CHACHA20-POLY1305",
];

/// Reads the name of a curve.
pub(super) fn groups(text: &str) -> Chosen {
    let known = TlsGroup::read(&Given::Text(text.to_owned())).is_some();
    if known {
        return Chosen { given: Some(list([text])), told: None };
    }
    let is_usual = ["", "auto", "none"].contains(&text.to_ascii_lowercase().as_str());
    let told = (!is_usual).then(|| format!("Refrain has no curve {text}, and takes those it has"));
    Chosen { given: None, told }
}
