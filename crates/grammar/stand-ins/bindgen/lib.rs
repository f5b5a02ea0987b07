//! Stands in for `bindgen` while `pg_query` is built.
//!
//! What: the few calls that the build script of `pg_query` makes, and behind them bindings that the
//! real bindgen made of the header of that one version.
//!
//! Why: bindgen needs libclang, and to build Refrain takes a Rust toolchain and a C compiler,
//! nothing else. The manifest of the workspace puts this crate in bindgen's place.
//!
//! What always holds: for any other header the build ends here. Then `pg_query.h.bindings` is to be
//! made anew from the header in the package of `pg_query`, by bindgen 0.66.1 with the functions
//! `pg_query_.*` and the constant `PG_VERSION_NUM` allowed and without layout tests.
//!
//! What it does not do: read the header.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

use std::io::{Error, Result};
use std::path::Path;

/// The header of the bindings: FNV-1a, 64 bits, of `pg_query.h` in version 18.1.0.
const HEADER: u64 = 0x26ff_b91b_61b0_c085;

/// Takes the place of bindgen's builder.
#[derive(Default)]
pub struct Builder {
    header: String,
}

impl Builder {
    /// Says which header the bindings are to be of.
    pub fn header(self, header: impl Into<String>) -> Builder {
        Builder { header: header.into() }
    }

    /// Makes sure that the header is the one there are bindings of.
    pub fn generate(self) -> Result<Bindings> {
        let bytes = std::fs::read(&self.header)?;
        if fnv(&bytes) == HEADER {
            return Ok(Bindings);
        }
        let other = "crates/grammar/stand-ins/bindgen has no bindings of this pg_query.h: see lib.rs there";
        Err(Error::other(other))
    }
}

/// Takes the place of bindgen's bindings.
pub struct Bindings;

impl Bindings {
    /// Writes them where the build script wants them.
    pub fn write_to_file(&self, path: impl AsRef<Path>) -> Result<()> {
        std::fs::write(path, include_str!("pg_query.h.bindings"))
    }
}

fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
