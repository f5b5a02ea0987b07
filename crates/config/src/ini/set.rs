//! Keys that are set on the console, by Refrain's names and by PgBouncer's.

use super::keys::{Key, Outcome, PROGRAM, Table, find};
use super::sections::Setting;
use super::values::Within;
use crate::assign::{Assignment, spot};
use crate::equivalent::POOL;
use crate::general::General;
use crate::machine::Machine;
use crate::pool::PoolOptions;
use crate::spelling::nearest;
use crate::table::{Row, Table as Options};

impl Assignment {
    /// Makes an assignment, if there is such an option. Upper and lower case are the same. Paths by
    /// PgBouncer's keys are relative to the machine's working directory.
    ///
    /// # Errors
    /// The name that was probably meant, if a name is near.
    pub fn new(
        key: &str,
        value: &str,
        machine: &dyn Machine,
    ) -> Result<Self, Option<&'static str>> {
        let key = key.to_ascii_lowercase();
        let theirs = find(PROGRAM, &key);
        if theirs.is_none() && spot(&key).is_none() {
            let names = names::<General>().chain(names::<PoolOptions>());
            return Err(nearest(&key, names.chain(PROGRAM.iter().map(|key| key.name))));
        }
        let directory = machine.directory().unwrap_or_default();
        let theirs = theirs.and_then(|key| match key.outcome {
            Outcome::Option(table, option, kind) => {
                let section = (table == Table::Pool).then_some(POOL);
                let read = kind.read(value, Within::Program, &directory);
                Some(read.map(|given| ((section, option), given)))
            }
            _ => None,
        });
        Ok(Self { key, value: value.to_owned(), theirs })
    }

    /// Returns the name of Refrain's option, which is another one for some keys of PgBouncer.
    pub fn option(&self) -> &str {
        match find(PROGRAM, &self.key).map(|key| &key.outcome) {
            _ if spot(&self.key).is_some() => &self.key,
            Some(Outcome::Option(_, option, _)) => option,
            _ if self.key == "verbose" => "log_level",
            _ => &self.key,
        }
    }

    /// Returns the key of `[pgbouncer]` that is set, if PgBouncer has such a key. `place` is that
    /// of no line.
    pub(super) fn setting(&self, place: usize) -> Option<Setting> {
        let key: &'static Key = find(PROGRAM, &self.key)?;
        Some(Setting { key, value: self.value.clone(), place })
    }
}

fn names<T: Options>() -> impl Iterator<Item = &'static str> {
    T::ROWS.iter().map(|row: &Row<T>| row.name)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::machine::{Network, NoMachine};
    use crate::options::Options;

    fn set(key: &str, value: &str) -> Assignment {
        Assignment::new(key, value, &InDirectory).unwrap()
    }

    const TOML: &str = "auth = \"trust\"\nmax_client_conn = 7\n[databases.d]\nhost = \"h\"\n\
                        [databases.e]\nhost = \"h\"\npool_size = 3\n";

    fn with(assignments: &[Assignment]) -> Result<Options, String> {
        Options::from_toml_on(TOML, &NoMachine, assignments).map_err(|errors| errors.to_string())
    }

    #[test]
    fn a_value_that_is_set_counts_as_if_it_stood_in_the_file() {
        let options = with(&[set("max_client_conn", "9"), set("POOL_SIZE", "5")]).unwrap();
        assert_eq!((options.general.max_client_conn, options.defaults.pool_size), (9, 5));
        let sizes: Vec<_> = options.databases.iter().map(|it| it.pool.pool_size).collect();
        assert_eq!(sizes, [5, 3], "a database's own value stays");
        let later = with(&[set("pool_size", "5"), set("pool_size", "6")]).unwrap();
        assert_eq!(later.defaults.pool_size, 6);
        assert_eq!(with(&[set("cache.memory", "1MiB")]).unwrap().cache.options.memory, 1 << 20);
    }

    #[test]
    fn keys_of_pgbouncer_have_its_values() {
        let options = with(&[set("default_pool_size", "5"), set("query_timeout", "2.5")]).unwrap();
        let timeout = options.defaults.query_timeout.unwrap();
        assert_eq!((options.defaults.pool_size, timeout.as_millis()), (5, 2500));
        assert_eq!(with(&[set("query_timeout", "0")]).unwrap().defaults.query_timeout, None);
        assert_eq!(set("default_pool_size", "5").option(), "pool_size");
        assert_eq!(set("verbose", "1").option(), "log_level");
    }

    #[test]
    fn a_wrong_name_or_value_is_refused() {
        let near = |key| Assignment::new(key, "1", &NoMachine).unwrap_err();
        assert_eq!(near("pool_sise"), Some("pool_size"));
        assert_eq!(near("defualt_pool_size"), Some("default_pool_size"));
        assert_eq!(near("xyz"), None);
        let refused = |key, value| with(&[set(key, value)]).unwrap_err();
        assert!(refused("pool_size", "many").contains("pool_size: expected"));
        assert!(refused("default_pool_size", "x").contains("default_pool_size: expected"));
        // A rule between two options.
        assert!(refused("client_tls_sslmode", "require").contains("client_tls_cert_file"));
        assert!(refused("pkt_buf", "8192").contains("PgBouncer"));
    }

    #[test]
    fn a_key_of_an_ini_has_all_that_it_does_there() {
        let text = "[databases]\nd = host=h\ne = host=h max_db_connections=2\n[pgbouncer]\n";
        let ini = |assignments: &[Assignment]| {
            let read = Options::from_ini_on(text, &InDirectory, assignments);
            read.map(|(options, _)| options).map_err(|errors| errors.to_string())
        };
        let options = ini(&[set("max_db_connections", "7"), set("share_servers", "off")]).unwrap();
        let most: Vec<_> = options.databases.iter().map(|it| it.max_connections).collect();
        assert_eq!(most, [Some(7), Some(2)]);
        assert_eq!(options.defaults.pool_size, 20, "PgBouncer's default");
        assert!(ini(&[set("pool_mode", "x")]).unwrap_err().contains("pool_mode"));
    }

    /// A machine that has nothing but a working directory.
    struct InDirectory;

    impl Machine for InDirectory {
        fn read(&self, path: &Path) -> io::Result<String> {
            NoMachine.read(path)
        }

        fn files_in(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
            NoMachine.files_in(directory)
        }

        fn networks(&self) -> io::Result<Vec<Network>> {
            NoMachine.networks()
        }

        fn directory(&self) -> io::Result<PathBuf> {
            Ok("/".into())
        }
    }
}
