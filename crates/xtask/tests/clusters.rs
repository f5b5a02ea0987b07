//! Throwaway clusters start, ask for passwords where they should, and end.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use xtask::command;
use xtask::postgres::{AUTH_DATABASE, Cluster, PASSWORD, Version};

#[test]
fn a_cluster_of_postgresql_15_starts_stops_and_goes_on() {
    try_out(Version::V15).unwrap();
}

#[test]
fn a_cluster_of_postgresql_18_starts_stops_and_goes_on() {
    try_out(Version::V18).unwrap();
}

fn try_out(version: Version) -> Result<()> {
    let mut cluster = Cluster::start(version, &[("work_mem", "1MB")])?;
    assert_eq!(cluster.psql("postgres", "show work_mem")?, "1MB\n");
    assert_eq!(cluster.psql("postgres", "show max_connections")?, "200\n");
    for user in ["md5_user", "scram_user", "plain_user"] {
        assert!(admits(&cluster, user, PASSWORD), "{user}\n{}", cluster.log());
        assert!(!admits(&cluster, user, "wrong"), "{user}");
    }
    cluster.psql("postgres", "create table kept (a int)")?;
    cluster.stop();
    assert!(cluster.psql("postgres", "select 1").is_err());
    cluster.resume()?;
    cluster.psql("postgres", "select a from kept")?;
    if let Some(dir) = cluster.dir().map(Path::to_path_buf) {
        drop(cluster);
        assert!(!dir.exists());
    }
    Ok(())
}

fn admits(cluster: &Cluster, user: &str, password: &str) -> bool {
    let url = format!("postgres://{user}@127.0.0.1:{}/{AUTH_DATABASE}", cluster.port());
    let mut psql = Command::new("psql");
    psql.args(["-XAtwqc", "select 1", &url]).env("PGPASSWORD", password);
    command::output(&mut psql).is_ok()
}
