//! `refrain`: see `refrain --help`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    refrain::cli::run()
}
