//! Peers that break off, or send what is no TLS. Nothing panics, nothing is let through, and the
//! session takes no more memory.

use super::*;

const PREFER: &str = "client_tls_sslmode = \"prefer\"";
const VERIFY: &str = "sslmode = \"verify-full\"\nsslrootcert = ROOT";

#[test]
fn a_handshake_that_is_cut_at_any_byte_secures_nothing() {
    let world = World::new(PREFER, VERIFY);
    let (mut client, mut server) = world.both();
    let hello = server.output();
    client.gets(&hello);
    server.gets(&client.output());
    let finished = server.output();
    for (flight, number) in [(&hello, 0), (&finished, 1)] {
        for cut in 0..flight.len() {
            let (mut client, mut server) = world.both();
            if number == 1 {
                client.gets(&server.output());
                client.output();
            }
            client.gets(&flight[..cut]);
            client.closes(None);
            assert!(client.secured().is_none(), "cut at {cut}");
            assert_eq!(client.failure(), "the peer has closed the connection");
            drop(client.session.last());
        }
    }
}

#[test]
fn a_changed_byte_never_lets_bytes_through() {
    let world = World::new(PREFER, VERIFY);
    let (mut client, mut server) = world.both();
    converse(&mut client, &mut server, usize::MAX);
    server.session.send(b"select 1".to_vec());
    let record = server.output();
    // Each try needs a connection of its own: a record is read once.
    for at in 0..record.len() {
        let (mut client, mut server) = world.both();
        converse(&mut client, &mut server, usize::MAX);
        server.session.send(b"select 1".to_vec());
        let mut record = server.output();
        record[at] ^= 0x10;
        client.gets(&record);
        // The version in a record's header means nothing.
        let is_void = (1..3).contains(&at);
        assert!(client.bytes().is_empty() || is_void, "changed at {at}");
    }
}

#[test]
fn garbage_fails_the_handshake() {
    let world = World::new(PREFER, VERIFY);
    let mut number = 88_172_645_463_325_252_u64;
    let mut random = move || {
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
        number.to_le_bytes()[0]
    };
    for round in 0..2000 {
        let mut garbage: Vec<u8> = (0..400).map(|_| random()).collect();
        if round % 2 == 1 {
            // A header that is right, so that the rest is read.
            garbage[..5].copy_from_slice(&[0x16, 3, 1, 1, 0x80]);
        }
        let mut client = world.of_client();
        garbage.chunks(97).for_each(|piece| client.gets(piece));
        assert!(client.secured().is_none());
        client.output();
        assert!(client.session.next(&mut Vec::new()) == Task::Nothing);
    }
}

#[test]
fn words_in_the_clear_fail_the_handshake_and_are_answered_by_an_alert() {
    let world = World::new(PREFER, VERIFY);
    let mut client = world.of_client();
    client.gets(b"\0\0\0\x08\0\x03\0\0");
    assert!(client.failure().contains("corrupt message"), "{}", client.failure());
    assert_eq!(client.output()[..1], [0x15], "an alert");
    assert_eq!(client.bytes(), b"");
}

#[test]
fn records_that_are_too_long_or_empty_end_the_connection() {
    let world = World::new(PREFER, VERIFY);
    for record in [vec![0x17, 3, 3, 0xff, 0xff], [0x17, 3, 3, 0, 0].repeat(100)] {
        let (mut client, mut server) = world.both();
        converse(&mut client, &mut server, usize::MAX);
        client.gets(&record);
        assert!(matches!(client.told.last(), Some(Told::Broken(_))), "{:?}", client.told);
        assert_eq!(client.bytes(), b"");
        // What the engine still sends goes nowhere, and the engine gets its buffer back.
        client.session.send(b"bye".to_vec());
        client.output();
        assert_eq!(client.tasks, [Task::Sent(b"bye".to_vec())]);
    }
}

#[test]
fn a_handshake_after_the_handshake_ends_the_connection() {
    let world = World::new(&format!("{PREFER}\nclient_tls_protocols = [\"tlsv1.2\"]"), VERIFY);
    let (mut client, mut server) = world.both();
    let hello = server.output();
    client.gets(&hello);
    server.gets(&client.output());
    converse(&mut client, &mut server, usize::MAX);
    assert!(client.secured().is_some());
    client.gets(&hello);
    assert!(matches!(client.told.last(), Some(Told::Broken(_))), "{:?}", client.told);
}
