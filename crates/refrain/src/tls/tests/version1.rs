//! Certificates of version 1, on both sides.

use refrain_config::Host;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConnection, ServerConfig, ServerConnection};

use super::*;

const VERSIONS: [&str; 2] = ["tlsv1.2", "tlsv1.3"];

/// Returns the words of the failure of a handshake with a server that shows this certificate, if it
/// fails.
fn shown(signed: &Signed, authority: &Authority, sslmode: &str, version: &str) -> Option<String> {
    let general =
        format!("client_tls_sslmode = \"prefer\"\nclient_tls_protocols = [{version:?}]\n");
    let roots = if sslmode.starts_with("verify") { "sslrootcert = ROOT" } else { "" };
    let server = format!("sslmode = {sslmode:?}\n{roots}");
    World::with(Folder::new(), authority, signed, &general, &server).failure()
}

#[test]
fn those_of_servers_are_checked_as_sslmode_says() {
    let (known, unknown) = (Authority::new("root").unwrap(), Authority::new("other").unwrap());
    let (right, wrong) = (known.sign_old("localhost"), known.sign_old("elsewhere"));
    let (right, wrong) = (right.unwrap(), wrong.unwrap());
    let strange = unknown.sign_old("localhost").unwrap();
    let below = |is_authority| {
        let between = known.below("between", is_authority).unwrap();
        let mut signed = between.sign_old("localhost").unwrap();
        signed.certificate += &between.certificate();
        signed
    };
    let twice = known.below("between", true).unwrap();
    let mut deep = twice.below("deeper", true).unwrap().sign_old("localhost").unwrap();
    deep.certificate += &twice.certificate();
    for (what, signed, sslmode, expected) in [
        ("right", &right, "prefer", None),
        ("right", &right, "require", None),
        ("right", &right, "verify-ca", None),
        ("right", &right, "verify-full", None),
        ("wrong name", &wrong, "verify-ca", None),
        ("wrong name", &wrong, "verify-full", Some("NotValidForName")),
        ("unknown authority", &strange, "require", None),
        ("unknown authority", &strange, "verify-ca", Some("UnknownIssuer")),
        ("authority below", &below(true), "verify-full", None),
        ("no authority", &below(false), "verify-ca", Some("UnknownIssuer")),
        ("one authority is missing", &deep, "verify-ca", Some("UnknownIssuer")),
    ] {
        for version in VERSIONS {
            let failure = shown(signed, &known, sslmode, version);
            match (expected, &failure) {
                (None, None) => {}
                (Some(words), Some(failure)) if failure.contains(words) => {}
                _ => panic!("{what} under {sslmode} with {version}: {failure:?}"),
            }
        }
    }
}

#[test]
fn those_of_clients_are_checked() {
    let (known, unknown) = (Authority::new("root").unwrap(), Authority::new("other").unwrap());
    for (authority, expected) in [(&known, true), (&unknown, false)] {
        for version in VERSIONS {
            let folder = Folder::new();
            let (own, key) = folder.pair("old", &authority.sign_old("app").unwrap());
            let general = format!(
                "client_tls_sslmode = \"verify-ca\"\nclient_tls_ca_file = ROOT\n\
                 client_tls_protocols = [{version:?}]"
            );
            let server = format!("sslmode = \"require\"\nsslcert = {own}\nsslkey = {key}");
            let signed = known.sign_old("localhost").unwrap();
            let world = World::with(folder, &known, &signed, &general, &server);
            let (mut client, mut server) = world.both();
            converse(&mut client, &mut server, usize::MAX);
            let name = client.secured().and_then(|secured| secured.certificate.clone());
            let name = name.and_then(|certificate| certificate.common_name);
            assert_eq!(name.as_deref(), expected.then_some("app"), "{version}");
        }
    }
}

/// Returns the result of a handshake with a server that shows a certificate and signs by a key.
fn signs(world: &World, certificate: &str, key: &str) -> Result<(), rustls::Error> {
    let Host::Tcp { tls, .. } = &world.options.databases[0].server.host else { panic!("TCP") };
    let config = world.store.of_server(tls).unwrap();
    let provider: CryptoProvider = ring::default_provider();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let key = provider.key_provider.load_private_key(key).unwrap();
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
    let shown = SingleCertAndKey::from(CertifiedKey::new(chain, key));
    let server = ServerConfig::builder_with_provider(provider.into());
    let server = server.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let mut server = server.with_cert_resolver(Arc::new(shown));
    server.alpn_protocols = config.alpn_protocols.clone();
    let mut server = ServerConnection::new(server.into()).unwrap();
    let mut client = ClientConnection::new(config, "localhost".try_into().unwrap()).unwrap();
    while client.is_handshaking() {
        let mut records = Vec::new();
        client.write_tls(&mut records).unwrap();
        server.read_tls(&mut &*records).unwrap();
        server.process_new_packets().unwrap();
        records.clear();
        server.write_tls(&mut records).unwrap();
        client.read_tls(&mut &*records).unwrap();
        client.process_new_packets()?;
    }
    Ok(())
}

#[test]
fn a_server_has_to_own_the_key_of_its_certificate() {
    let authority = Authority::new("root").unwrap();
    let [own, other] = [(), ()].map(|()| authority.sign_old("localhost").unwrap());
    for version in VERSIONS {
        let server = format!("sslmode = \"require\"\nserver_tls_protocols = [{version:?}]");
        let world = World::new("", &server);
        assert_eq!(signs(&world, &own.certificate, &own.key), Ok(()), "{version}");
        let refused = signs(&world, &own.certificate, &other.key);
        let expected = rustls::CertificateError::BadSignature.into();
        assert_eq!(refused, Err(expected), "{version}");
    }
}

#[test]
fn an_error_names_the_file_that_is_wrong() {
    let authority = Authority::new("root").unwrap();
    let [own, other] = [(), ()].map(|()| authority.sign_old("localhost").unwrap());
    let folder = Folder::new();
    let ((cert, _), (_, key)) = (folder.pair("own", &own), folder.pair("other", &other));
    let broken = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    let broken = folder.file("broken.crt", broken);
    let plain = |path: &str| path.trim_matches('"').to_owned();
    for (cert, expected) in [
        (&cert, format!("{}: the key is not that of the certificate in", plain(&key))),
        (&broken, format!("{}: the certificate cannot be read", plain(&broken))),
    ] {
        let text = format!(
            "auth = \"trust\"\nclient_tls_sslmode = \"prefer\"\nclient_tls_cert_file = {cert}\n\
             client_tls_key_file = {key}\n[databases.d]\nhost = \"localhost\"\n"
        );
        let why = Setup::read(&Options::from_toml(&text).unwrap()).unwrap_err();
        assert!(why.contains(&expected), "{why}");
    }
}
