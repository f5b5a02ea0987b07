//! Core files: what the kernel would write of the process's memory if the process ended by a fault.
//! They would have passwords, keys and rows.

use refrain_config::General;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// Keeps the kernel from writing core files, unless the options allow it. Logs it if the kernel
/// refuses.
pub(crate) fn keep_secrets(general: &General) {
    if general.core_files {
        return;
    }
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(cause = "start", "core files may have secrets: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_config::Options;
    use rustix::process::dumpable_behavior;

    #[test]
    fn core_files_are_written_only_where_they_are_wanted() {
        let with = |line: &str| {
            let text = format!("auth = \"trust\"\n{line}\n[databases.d]\nhost = \"h\"\n");
            keep_secrets(&Options::from_toml(&text).unwrap().general);
            dumpable_behavior().unwrap()
        };
        assert_eq!(with("core_files = true"), DumpableBehavior::Dumpable);
        assert_eq!(with(""), DumpableBehavior::NotDumpable);
    }
}
