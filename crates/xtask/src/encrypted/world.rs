//! The places that drivers connect to: several Refrains over two servers that encrypt, and men in
//! the middle.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::certificates::Authority;
use crate::command;
use crate::postgres::{AUTH_DATABASE, Cluster, PASSWORD};
use crate::provision::{self, Version};
use crate::proxy::Refrain;
use crate::workspace::{self, built};

use super::middle::{self, Trick};

/// The user who logs in by password.
pub(super) const USER: &str = "scram_user";
/// The user who logs in by certificate.
pub(super) const CERTIFIED: &str = "ann";
/// The databases, with the version of PostgreSQL behind each.
pub(super) const DATABASES: [(&str, u32); 2] = [("fifteen", 15), ("eighteen", 18)];

/// A place to connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Door {
    /// Refrain, which does not encrypt.
    Clear,
    /// Refrain, which leaves it to the client.
    Either,
    /// Refrain, which insists on TLS.
    Encrypted,
    /// Refrain, which insists on a certificate of the client.
    Certified,
    /// Refrain, whose certificate is for another name.
    Elsewhere,
    /// Refrain, whose certificate has expired.
    Expired,
    /// A man in the middle, in front of [`Door::Either`].
    Middle(Trick),
}

/// The places, and the files of certificates.
pub(super) struct World {
    folder: PathBuf,
    proxies: Vec<(Door, Refrain)>,
    middles: Vec<(Trick, u16)>,
    _clusters: Vec<Cluster>,
}

const RULES: &str = "\
hostssl  all      ann    all           cert
host     refrain  admin  127.0.0.1/32  trust
host     all      all    127.0.0.1/32  scram-sha-256
";

impl World {
    /// Starts everything.
    pub(super) fn start() -> Result<World> {
        let program = built("refrain")?;
        let authority = Authority::new("root")?;
        let hba = "hostssl all scram_user all scram-sha-256\n";
        let clusters = [Version::V15, Version::V18Tls]
            .map(|version| Cluster::start_encrypting(version, &authority, hba, ""));
        let clusters = clusters.into_iter().collect::<Result<Vec<_>>>()?;
        let folder = workspace::target().join("drivers-tls-modes");
        write_files(&folder, &authority)?;
        let mut proxies = Vec::new();
        for (door, mode, certificate) in [
            (Door::Clear, "disable", "refrain"),
            (Door::Either, "prefer", "refrain"),
            (Door::Encrypted, "require", "refrain"),
            (Door::Certified, "verify-ca", "refrain"),
            (Door::Elsewhere, "prefer", "elsewhere"),
            (Door::Expired, "prefer", "expired"),
        ] {
            let config = configuration(&folder, mode, certificate, &clusters);
            proxies.push((door, Refrain::start_as(&program, &config)?));
        }
        let mut world = World { folder, proxies, middles: Vec::new(), _clusters: clusters };
        for trick in [Trick::Answer, Trick::Request, Trick::Between, Trick::Strip] {
            let port = middle::start(trick, &authority, world.refrain(Door::Either)?.port())?;
            world.middles.push((trick, port));
        }
        Ok(world)
    }

    /// Returns the path of a file.
    pub(super) fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Returns the port of a place.
    pub(super) fn port(&self, door: Door) -> Result<u16> {
        match door {
            Door::Middle(trick) => {
                let middle = self.middles.iter().find(|(of, _)| *of == trick);
                Ok(middle.context("no man in the middle")?.1)
            }
            _ => Ok(self.refrain(door)?.port()),
        }
    }

    /// Returns the Refrain that is at a place, or behind it.
    pub(super) fn refrain(&self, door: Door) -> Result<&Refrain> {
        let door = if matches!(door, Door::Middle(_)) { Door::Either } else { door };
        let found = self.proxies.iter().find(|(of, _)| *of == door);
        Ok(&found.context("no such Refrain")?.1)
    }

    /// Asks a Refrain's console how the client of this `application_name` is encrypted: version and
    /// cipher, or nothing. `None` if there is no such client.
    pub(super) fn encryption(&self, door: Door, name: &str) -> Result<Option<String>> {
        let mut psql = Command::new(provision::postgres(Version::V15)?.join("psql"));
        let port = self.refrain(door)?.port();
        let (certificate, key) = (self.file("ann.crt"), self.file("ann.key"));
        let url =
            format!("postgres://admin@127.0.0.1:{port}/refrain?sslcert={certificate}&sslkey={key}");
        let listing = command::output(psql.args(["-XAqd", &url, "-c", "show clients"]))?;
        let mut rows = listing.lines().map(|row| row.split('|').collect::<Vec<_>>());
        let names = rows.next().context("no clients at all")?;
        let place = |column| names.iter().position(|name| *name == column).context("no column");
        let (application, tls) = (place("application_name")?, place("tls")?);
        let found = rows.find(|row| row.get(application) == Some(&name));
        Ok(found.and_then(|row| row.get(tls).map(|&tls| tls.to_owned())))
    }
}

/// Writes certificates and keys: those of Refrains, and those of clients.
fn write_files(folder: &Path, authority: &Authority) -> Result<()> {
    let stranger = Authority::new("stranger")?;
    fs::create_dir_all(folder)?;
    fs::write(folder.join("root.crt"), authority.certificate())?;
    fs::write(folder.join("stranger.crt"), stranger.certificate())?;
    let pairs = [
        ("refrain", authority.sign("refrain", &["localhost"])?),
        ("elsewhere", authority.sign("elsewhere", &["elsewhere"])?),
        ("expired", authority.sign_expired("expired", &["localhost"])?),
        ("ann", authority.sign("ann", &[])?),
        ("bob", authority.sign("bob", &[])?),
        ("unknown", stranger.sign("ann", &[])?),
    ];
    pairs.iter().try_for_each(|(name, signed)| signed.write(folder, name))
}

fn configuration(folder: &Path, mode: &str, certificate: &str, clusters: &[Cluster]) -> String {
    let file = |name: &str| format!("{:?}", folder.join(name));
    let mut text = format!(
        "workers = 1\nlog_level = \"debug\"\nauth = \"hba\"\nhba = '''\n{RULES}'''\nadmin_users = [\"admin\"]\n\
         client_tls_sslmode = {mode:?}\nclient_tls_ca_file = {}\n\
         client_tls_cert_file = {}\nclient_tls_key_file = {}\n\n\
         [users.{USER}]\npassword = {PASSWORD:?}\n",
        file("root.crt"),
        file(&format!("{certificate}.crt")),
        file(&format!("{certificate}.key")),
    );
    for ((name, _), cluster) in DATABASES.iter().zip(clusters) {
        text += &format!(
            "\n[databases.{name}]\nhost = {:?}\nport = {}\ndbname = {AUTH_DATABASE:?}\n\
             user = {USER:?}\npassword = {PASSWORD:?}\nsslmode = \"verify-full\"\n\
             sslrootcert = {}\nchannel_binding = \"require\"\n",
            cluster.host(),
            cluster.port(),
            file("root.crt"),
        );
    }
    text
}
