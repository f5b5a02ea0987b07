//! Rules about crates: the crates that each may use, and its lints.

use super::Tree;
use super::tree::Member;

/// A crate, and the crates that it may use.
struct Room {
    name: &'static str,
    /// Crates that its code may use.
    uses: &'static [&'static str],
    /// Further crates that its tests may use.
    tests_use: &'static [&'static str],
}

/// The table of the chapter "Rooms" of `docs/ARCHITECTURE.md`.
const ROOMS: &[Room] = &[
    Room { name: "pg-wire", uses: &[], tests_use: &[] },
    Room { name: "mysql-wire", uses: &[], tests_use: &["xtask"] },
    Room { name: "sql", uses: &[], tests_use: &[] },
    Room { name: "grammar", uses: &["sql"], tests_use: &[] },
    Room { name: "config", uses: &[], tests_use: &[] },
    Room { name: "pool", uses: &["config"], tests_use: &["echo"] },
    Room { name: "echo", uses: &["config", "pool"], tests_use: &[] },
    Room { name: "cache", uses: &[], tests_use: &[] },
    Room { name: "pg", uses: &["pg-wire", "sql", "config", "pool", "cache"], tests_use: &[] },
    Room { name: "mysql", uses: &["mysql-wire", "config", "pool"], tests_use: &["xtask"] },
    Room { name: "sqlite", uses: &[], tests_use: &[] },
    Room { name: "sqlite-pg", uses: &["pg-wire", "sql", "grammar", "sqlite"], tests_use: &[] },
    Room { name: "drive", uses: &[], tests_use: &[] },
    Room {
        name: "refrain",
        uses: &[
            "pg-wire",
            "sql",
            "grammar",
            "config",
            "pool",
            "pg",
            "mysql",
            "sqlite",
            "sqlite-pg",
            "drive",
        ],
        tests_use: &["mysql-wire", "echo", "differ", "xtask"],
    },
    Room {
        name: "sim",
        uses: &["pg-wire", "sql", "grammar", "config", "pool", "pg"],
        tests_use: &[],
    },
    Room { name: "sim-mysql", uses: &["config", "pool", "mysql", "sim"], tests_use: &[] },
    Room { name: "differ", uses: &[], tests_use: &["xtask"] },
    Room { name: "differ-mysql", uses: &["differ"], tests_use: &["xtask"] },
    Room {
        name: "scripts",
        uses: &["pg-wire", "mysql-wire", "sql", "config", "pool", "pg", "mysql"],
        tests_use: &[],
    },
    Room { name: "xtask", uses: &["config"], tests_use: &[] },
    Room { name: "launch", uses: &[], tests_use: &[] },
];

/// The only crates that may hold unsafe code.
const UNSAFE_CRATES: &[&str] = &["drive", "sqlite"];

/// Finds crates that are not in the table, and uses of crates that it does not allow.
pub(super) fn rooms(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for member in &tree.crates {
        let Some(room) = ROOMS.iter().find(|room| room.name == member.name) else {
            found.push(format!("crates/{} is not in the table", member.name));
            continue;
        };
        let tests_use = [room.uses, room.tests_use].concat();
        let sections = [
            ("dependencies", room.uses),
            ("build-dependencies", room.uses),
            ("dev-dependencies", &tests_use),
        ];
        for (section, allowed) in sections {
            let used = rooms_in(tree, member, section);
            let refused = used.filter(|name| !allowed.contains(name));
            found.extend(refused.map(|name| format!("{} uses {name} ({section})", member.name)));
        }
    }
    found
}

/// Returns the crates of the workspace that a section of a manifest names.
fn rooms_in<'a>(
    tree: &'a Tree,
    member: &'a Member,
    section: &str,
) -> impl Iterator<Item = &'a str> {
    let section = member.manifest.get(section).and_then(toml::Value::as_table);
    let names = section.into_iter().flat_map(toml::Table::keys);
    let rooms = names.map(|name| name.strip_prefix("refrain-").unwrap_or(name));
    rooms.filter(|name| tree.crates.iter().any(|member| member.name == *name))
}

/// Finds crates that do not inherit the lints of the workspace.
pub(super) fn lints(tree: &Tree) -> Vec<String> {
    let inherits = |member: &&Member| {
        let lints = member.manifest.get("lints");
        let inherited = lints.and_then(|lints| lints.get("workspace")?.as_bool());
        inherited == Some(true)
    };
    let without = tree.crates.iter().filter(|member| !inherits(member));
    without.map(|member| format!("crates/{}/Cargo.toml", member.name)).collect()
}

/// Finds roots of crates without `forbid(unsafe_code)`. Only [`UNSAFE_CRATES`], which call the
/// kernel and C, do without it.
pub(super) fn unsafe_code(tree: &Tree) -> Vec<String> {
    let safe = tree.crates.iter().filter(|member| !UNSAFE_CRATES.contains(&member.name.as_str()));
    let roots = safe.flat_map(Member::roots);
    let lax = roots.filter(|root| !root.text.contains("#![forbid(unsafe_code)]"));
    lax.map(|root| root.at(1)).collect()
}
