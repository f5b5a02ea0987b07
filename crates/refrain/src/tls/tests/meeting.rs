//! Handshakes that succeed, and what is agreed on.

use super::*;

const PREFER: &str = "client_tls_sslmode = \"prefer\"";
const VERIFY: &str = "sslmode = \"verify-full\"\nsslrootcert = ROOT";

#[test]
fn both_agree_and_pass_bytes_on_however_they_are_cut() {
    let world = World::new(PREFER, VERIFY);
    for most in [1, 2, 7, 1000, usize::MAX] {
        let (mut client, mut server) = world.both();
        server.session.send(b"startup".to_vec());
        converse(&mut client, &mut server, most);
        client.session.send(b"reply".to_vec());
        converse(&mut client, &mut server, most);
        assert_eq!((client.bytes(), server.bytes()), (b"startup".to_vec(), b"reply".to_vec()));
        assert!(matches!(client.told[0], Told::Secured(_)), "before any byte");
        assert!(matches!(server.told[..2], [Told::Secured(_), Told::Connected]));
        for end in [&client, &server] {
            assert!(matches!(end.tasks[..], [Task::Sent(_)]), "the engine gets its buffer back");
        }
    }
}

#[test]
fn both_know_the_version_the_cipher_and_the_hash_of_the_certificate() {
    for (version, cipher) in
        [("tlsv1.2", "ECDHE-ECDSA-CHACHA20-POLY1305"), ("tlsv1.3", "TLS_AES_128_GCM_SHA256")]
    {
        let choices = format!(
            "{PREFER}\nclient_tls_protocols = [{version:?}]\nclient_tls_ciphers = [{cipher:?}]\n\
             client_tls_groups = [\"secp384r1\"]"
        );
        let world = World::new(&choices, VERIFY);
        let (mut client, mut server) = world.both();
        converse(&mut client, &mut server, usize::MAX);
        let (client, server) = (client.secured().unwrap(), server.secured().unwrap());
        assert_eq!(client.version.to_lowercase(), version);
        assert_eq!((&*client.cipher, client.version), (cipher, server.version));
        assert_eq!(client.end_point.as_ref().unwrap().len(), 32);
        assert_eq!(client.end_point, server.end_point);
        assert_eq!(client.certificate, None, "none was asked for");
    }
}

#[test]
fn a_client_shows_its_certificate_if_it_is_asked_to() {
    let general = "client_tls_sslmode = \"verify-full\"\nclient_tls_ca_file = ROOT";
    let server = format!("{VERIFY}\nsslcert = OWN\nsslkey = OWN_KEY");
    let world = World::new(general, &server);
    let (mut client, mut server) = world.both();
    converse(&mut client, &mut server, usize::MAX);
    let certificate = client.secured().unwrap().certificate.clone().unwrap();
    assert_eq!(certificate.common_name.as_deref(), Some("refrain"));
    assert_eq!(&*certificate.subject, "CN=refrain");
    assert_eq!(certificate.names, ["app".into()]);
}

#[test]
fn a_client_without_a_certificate_is_refused_where_one_is_needed() {
    let general = "client_tls_sslmode = \"verify-ca\"\nclient_tls_ca_file = ROOT";
    let world = World::new(general, VERIFY);
    let (mut client, mut server) = world.both();
    converse(&mut client, &mut server, usize::MAX);
    assert_eq!(client.failure(), "peer sent no certificates");
    // In TLS 1.3 the other side believes that all went well, until the alert comes.
    assert!(matches!(server.told.last(), Some(Told::Broken(why)) if why.contains("Certificate")));
}

#[test]
fn a_client_needs_a_list_of_its_authority_that_is_in_time() {
    let (authority, other) = (Authority::new("root").unwrap(), Authority::new("other").unwrap());
    for (list, expected) in [
        (authority.revoke(&[], 2100), None),
        (authority.revoke(&[], 2001), Some("revocation list expired")),
        (other.revoke(&[], 2100), Some("UnknownRevocationStatus")),
    ] {
        let folder = Folder::new();
        let list = folder.file("root.crl", &list.unwrap());
        let general = format!("{PREFER}\nclient_tls_ca_file = ROOT\nclient_tls_crl_file = {list}");
        let server = format!("{VERIFY}\nsslcert = OWN\nsslkey = OWN_KEY");
        let signed = authority.sign("server", &["localhost"]).unwrap();
        let world = World::with(folder, &authority, &signed, &general, &server);
        let (mut client, mut server) = world.both();
        converse(&mut client, &mut server, usize::MAX);
        match expected {
            None => assert!(client.secured().unwrap().certificate.is_some()),
            Some(words) => assert!(client.failure().contains(words), "{}", client.failure()),
        }
    }
}

#[test]
fn sessions_are_resumed_until_a_reload() {
    let world = World::new(PREFER, VERIFY);
    let sizes: Vec<usize> = (0..3)
        .map(|round| {
            if round == 2 {
                world.store.replace(Setup::read(&world.options).unwrap());
            }
            let (mut client, mut server) = world.both();
            let hello = server.output();
            client.gets(&hello);
            let flight = client.output();
            server.gets(&flight);
            converse(&mut client, &mut server, usize::MAX);
            assert!(client.secured().is_some());
            flight.len()
        })
        .collect();
    assert!(sizes[1] + 300 < sizes[0], "no certificate is sent the second time: {sizes:?}");
    assert!(sizes[2] + 50 > sizes[0], "the tickets of before are void: {sizes:?}");
}

#[test]
fn a_large_send_is_encrypted_in_chunks() {
    let world = World::new(PREFER, VERIFY);
    let (mut client, mut server) = world.both();
    converse(&mut client, &mut server, usize::MAX);
    client.output();
    let large: Vec<u8> = (0..1_000_000_u32).map(|number| number.to_le_bytes()[1]).collect();
    client.session.send(large.clone());
    let sends = client.sends();
    assert_eq!(sends.len(), 4);
    assert!(sends.iter().all(|send| send.len() < 300_000));
    sends.iter().flat_map(|send| send.chunks(10_000)).for_each(|piece| server.gets(piece));
    assert!(server.bytes() == large);
}

#[test]
fn bytes_queued_before_the_handshake_go_out_in_the_clear_and_first() {
    let world = World::new(PREFER, VERIFY);
    let mut client = End::new(Session::of_client(&world.store, 2, false).unwrap());
    let (_, mut server) = world.both();
    client.gets(&server.output());
    assert_eq!(client.output(), b"", "the answer comes first");
    client.session.send(b"NSan error".to_vec());
    let output = client.output();
    assert_eq!(output[..3], *b"NS\x16");
    server.gets(&output[2..]);
    converse(&mut client, &mut server, usize::MAX);
    assert_eq!(server.bytes(), b"an error");
}

#[test]
fn a_client_without_a_request_has_to_name_the_protocol() {
    let world = World::new(PREFER, VERIFY);
    let (_, mut server) = world.both();
    let mut client = End::new(Session::of_client(&world.store, 0, true).unwrap());
    converse(&mut client, &mut server, usize::MAX);
    assert!(client.secured().is_some());

    for (protocol, expected) in [
        (None, "received direct SSL connection request without ALPN"),
        (Some("http/1.1"), "peer doesn't support any known protocol"),
    ] {
        let mut client = End::new(Session::of_client(&world.store, 0, true).unwrap());
        foreign_client(&mut client, protocol);
        assert!(client.failure().starts_with(expected), "{}", client.failure());
    }
}

/// Shakes hands as a client that offers this protocol, and checks nothing.
fn foreign_client(end: &mut End, protocol: Option<&str>) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = verify::ServerVerifier::new(&provider, None, Vec::new(), false).unwrap();
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = protocol.iter().map(|name| name.as_bytes().to_vec()).collect();
    let name = "localhost".try_into().unwrap();
    let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    while client.wants_write() {
        let mut out = Vec::new();
        client.write_tls(&mut out).unwrap();
        end.gets(&out);
        client.read_tls(&mut &end.output()[..]).unwrap();
        let _ = client.process_new_packets();
    }
}

#[test]
fn each_end_says_that_it_ends() {
    let world = World::new(PREFER, VERIFY);
    let (mut client, mut server) = world.both();
    converse(&mut client, &mut server, usize::MAX);
    let last = client.session.last().expect("a goodbye");
    server.gets(&last);
    server.gets(b"whatever comes behind");
    server.closes(None);
    let ends = server.told.iter().filter(|told| **told == Told::End).count();
    assert_eq!((ends, server.told.last()), (1, Some(&Told::End)));
    assert!(server.session.last().is_some());
}

#[test]
fn a_name_with_a_zero_byte_in_it_is_none() {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    let hosts = ["u@a.test\0.b.test", "a.test\0.b.test", "c.test", "u@c.test"];
    let signed = Authority::new("root").unwrap().sign("u\0v", &hosts).unwrap();
    let der = CertificateDer::from_pem_slice(signed.certificate.as_bytes()).unwrap();
    let certificate = names::certificate(&der).unwrap();
    assert_eq!(certificate.common_name, None);
    assert_eq!(certificate.names, ["c.test".into(), "u@c.test".into()]);
}

#[test]
fn a_server_that_the_engine_has_asked_gets_the_request_in_the_clear() {
    let world = World::new(PREFER, VERIFY);
    let host = &world.options.databases[0].server.host;
    let mut server = End::new(Session::of_asked_server(&world.store, host, 4).unwrap());
    assert!(server.output().is_empty(), "the engine's bytes come first");
    server.session.send(b"tls\nstartup".to_vec());
    let first = server.output();
    let handshake = first.strip_prefix(b"tls\n").unwrap();
    let mut client = world.of_client();
    client.gets(handshake);
    converse(&mut client, &mut server, usize::MAX);
    assert!(matches!(server.told[..], [Told::Secured(_)]), "it was connected before");
    assert_eq!(client.bytes(), b"startup");
}

#[test]
fn a_client_may_be_secured_while_the_kernel_has_what_came_before() {
    let world = World::new(PREFER, VERIFY);
    let (mut client, mut server) = world.both();
    client.session.follow_a_send();
    client.gets(&server.output());
    assert!(client.output().is_empty(), "one send at a time");
    assert_eq!(client.session.sent(), Sender::Engine);
    converse(&mut client, &mut server, usize::MAX);
    assert_eq!(client.session.sent(), Sender::Session);
    assert!(client.secured().is_some());
}
