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

/// Returns pseudo-random numbers (xorshift), the same in each run.
fn numbers() -> impl FnMut() -> u64 {
    let mut number = 88_172_645_463_325_252_u64;
    move || {
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
        number
    }
}

/// Returns the bytes of a client that wants no handshake: of one of six kinds, by the round.
fn garbage(round: usize, hello: &[u8], random: &mut impl FnMut() -> u64) -> Vec<u8> {
    let mut below = |most: usize| usize::try_from(random() % most as u64).unwrap();
    let mut bytes: Vec<u8> = (0..400).map(|_| below(256).to_le_bytes()[0]).collect();
    match round % 6 {
        0 => {}
        // A header that is right, so that the rest is read.
        1 => bytes[..5].copy_from_slice(&[0x16, 3, 1, 1, 0x80]),
        // A record of more than TLS allows.
        2 => bytes[..5].copy_from_slice(&[0x16, 3, 1, 0x48 + below(0xb8) as u8, 1]),
        // Records of nothing, of any kind, and then the beginning of the hello.
        3 => {
            let kind = 0x14 + below(5) as u8;
            bytes = [kind, 3, 1, 0, 0].repeat(1 + below(40));
            bytes.extend_from_slice(&hello[..below(hello.len())]);
        }
        4 => bytes = hello[..below(hello.len())].to_vec(),
        // A hello with a changed byte, behind the version in the header, which means nothing. It
        // may still be a hello, and is never a whole handshake.
        _ => {
            bytes = hello.to_vec();
            bytes[3 + below(hello.len() - 3)] ^= 1 + below(255) as u8;
        }
    }
    bytes
}

#[test]
fn ten_thousand_handshakes_of_garbage_secure_nothing_and_each_fails_once() {
    let world = World::new(PREFER, VERIFY);
    let hello = world.both().1.output();
    let mut random = numbers();
    let mut answered = 0;
    for round in 0..10_000 {
        let bytes = garbage(round, &hello, &mut random);
        let mut client = world.of_client();
        bytes.chunks(97).for_each(|piece| client.gets(piece));
        let output = client.output();
        if client.told.is_empty() {
            // It waits for more, and none comes.
            client.closes(None);
        }
        assert!(matches!(client.told[..], [Told::Failed(_)]), "{round}: {:?}", client.told);
        // An alert at most, but for a hello that still is one.
        let is_answered = output.first() == Some(&0x16);
        assert!(output.len() <= 7 || is_answered && round % 6 == 5, "{round}: {output:?}");
        answered += usize::from(is_answered);
        assert!(client.output().is_empty() && client.tasks.is_empty());
        assert_eq!(client.session.last(), None);
    }
    assert!(answered > 0, "no hello came as far as an answer");
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
