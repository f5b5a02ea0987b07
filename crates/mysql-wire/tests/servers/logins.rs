//! Logins: proofs, plugins, refusals, and the change of a user.

use refrain_mysql_wire::auth::{caching_sha2, native};
use refrain_mysql_wire::handshake::Attributes;
use refrain_mysql_wire::reply::{ErrPacket, OkPacket, first};
use refrain_mysql_wire::request::{ChangeUser, Request};
use refrain_mysql_wire::track::Change;
use xtask::mysql::Flavour;

use super::World;
use super::session::{ROOT, Session, Wanted, changes};

/// A user with a password of `mysql_native_password`.
const ANN: Wanted<'static> = Wanted { user: "ann", password: "secret", ..ROOT };

pub(crate) fn check(world: &World) {
    let mut root = Session::start(world, ROOT);
    let by = match world.flavour {
        Flavour::MariaDb => "IDENTIFIED VIA mysql_native_password USING PASSWORD('secret')",
        _ => "IDENTIFIED WITH mysql_native_password BY 'secret'",
    };
    root.run(&format!("CREATE USER ann@localhost {by}"));
    root.run("CREATE DATABASE shop");
    root.run("GRANT ALL ON shop.* TO ann@localhost");
    native_passwords(world);
    databases(world);
    changes_of_user(world);
    if world.flavour == Flavour::MySql {
        root.run("CREATE USER eve@localhost IDENTIFIED WITH caching_sha2_password BY 'secret'");
        cached_passwords(world, &mut root);
    }
}

fn native_passwords(world: &World) {
    let mut ann = Session::start(world, ANN);
    let stored = native::Key::of(b"secret").verifier();
    let proof = native::Key::of(b"secret").proof(ann.nonce());
    assert!(stored.verify(ann.nonce(), &proof).is_some());
    ann.command(&Request::Quit);
    // A client that begins with another plugin is asked for this one.
    Session::start(world, Wanted { plugin: caching_sha2::PLUGIN, ..ANN });
    for wrong in [Wanted { password: "Secret", ..ANN }, Wanted { user: "nobody", ..ANN }] {
        let (_, end) = Session::try_start(world, wrong);
        let err = ErrPacket::read(&end).expect("an ERR packet");
        assert_eq!((err.number, err.sqlstate), (1045, Some(*b"28000")));
    }
}

fn databases(world: &World) {
    let (ann, end) = Session::try_start(world, Wanted { database: "shop", ..ANN });
    let ok = OkPacket::read(&end, ann.agreed).expect("an OK packet");
    assert_eq!(changes(&ok), [Change::Schema(b"shop")]);
    let (_, end) = Session::try_start(world, Wanted { database: "none", ..ROOT });
    assert_eq!(ErrPacket::read(&end).expect("an ERR packet").number, 1049);
}

fn changes_of_user(world: &World) {
    let mut session = Session::start(world, ROOT);
    let mut list = Vec::new();
    Attributes::put(&mut list, b"program_name", b"other");
    let proof = native::Key::of(b"secret").proof(session.nonce());
    let change = ChangeUser {
        user: b"ann",
        proof: &proof,
        database: b"shop",
        collation: Some(45),
        plugin: native::PLUGIN,
        attributes: Attributes(&list),
    };
    session.command(&Request::ChangeUser(change));
    let end = session.finish_login("secret");
    assert_eq!(end[0], first::OK);
    let row = session.run("SELECT CONCAT(CURRENT_USER(), DATABASE())").rows.remove(0);
    assert_eq!(row, b"\x11ann@localhostshop");
}

/// The first login needs the password, and later ones do until the server forgets.
fn cached_passwords(world: &World, root: &mut Session) {
    let eve = Wanted { user: "eve", plugin: caching_sha2::PLUGIN, ..ANN };
    let more_data = || Session::start(world, eve).more_data;
    assert_eq!(more_data(), [caching_sha2::PERFORM_FULL_AUTHENTICATION]);
    assert_eq!(more_data(), [caching_sha2::FAST_AUTH_SUCCESS]);
    root.run("FLUSH PRIVILEGES");
    assert_eq!(more_data(), [caching_sha2::PERFORM_FULL_AUTHENTICATION]);
    // By TCP without TLS the password is encrypted.
    root.run("FLUSH PRIVILEGES");
    let mut session = Session::start_by_tcp(world, eve);
    assert_eq!(session.more_data, [caching_sha2::PERFORM_FULL_AUTHENTICATION]);
    session.run("DO 1");
    assert_eq!(Session::start_by_tcp(world, eve).more_data, [caching_sha2::FAST_AUTH_SUCCESS]);
    let (_, end) = Session::try_start(world, Wanted { password: "Secret", ..eve });
    assert_eq!(ErrPacket::read(&end).expect("an ERR packet").number, 1045);
}
