//! Messages that are cut short, out of turn, or made to hurt. Nothing here may panic or let anyone
//! in.

use super::*;

fn proving(step: AuthStep) -> (AuthRequest, Proving) {
    match step {
        AuthStep::Send(request, proving) => (request, proving),
        other => panic!("expected to be asked something: {other:?}"),
    }
}

fn start(method: Method, form: Form) -> (AuthRequest, Proving) {
    proving(Proving::start(method, &alice(form), &SERVERS_RANDOM))
}

fn code(step: &AuthStep) -> &'static str {
    match step {
        AuthStep::Failed(refusal) => refusal.sqlstate(),
        AuthStep::Send(..) => "asked on",
        AuthStep::Done(..) => "let in",
    }
}

fn sasl_initial(mechanism: &str, length: i32, message: &[u8]) -> Vec<u8> {
    [mechanism.as_bytes(), &[0], &length.to_be_bytes(), message].concat()
}

fn initial(message: &[u8]) -> Vec<u8> {
    sasl_initial("SCRAM-SHA-256", i32::try_from(message.len()).unwrap(), message)
}

/// Returns the messages' bodies of a client with the right password.
fn good_bodies(method: Method, form: Form) -> Vec<Vec<u8>> {
    let mut bodies = Vec::new();
    let secret = Secret::Password(password("pencil"));
    let mut login = Login::new("alice", secret, &CLIENTS_RANDOM);
    let mut step = Proving::start(method, &alice(form), &SERVERS_RANDOM);
    while let AuthStep::Send(request, proving) = step {
        let Ok(Reply::Send(body, next)) = answer(login, &request, &mut None) else {
            panic!("no answer to {request:?}");
        };
        login = next;
        step = proving.receive(&body);
        bodies.push(body.to_vec());
    }
    assert_eq!(code(&step), "let in");
    bodies
}

/// Runs the exchange with `body` in place of the message that comes after `good`.
fn with_body(method: Method, credential: &Credential, good: &[Vec<u8>], body: &[u8]) -> AuthStep {
    let (_, mut server_counts) = proving(Proving::start(method, credential, &SERVERS_RANDOM));
    for earlier in good {
        (_, server_counts) = proving(server_counts.receive(earlier));
    }
    server_counts.receive(body)
}

#[test]
fn every_truncation_and_every_changed_byte_of_a_clients_messages_is_refused() {
    let cases = [
        (Method::Password, Form::Password),
        (Method::Md5, Form::Md5),
        (Method::Scram, Form::Password),
    ];
    for (method, form) in cases {
        let good = good_bodies(method, form);
        let credential = alice(form);
        for (nth, body) in good.iter().enumerate() {
            let last = nth + 1 == good.len();
            for end in 0..body.len() {
                let step = with_body(method, &credential, &good[..nth], &body[..end]);
                assert_eq!(code(&step), "08P01", "{method:?} message {nth} cut at {end}");
            }
            for at in 0..body.len() {
                for byte in [0, b',', b'=', b'm', b'z', 0x80, 0xff] {
                    let mut changed = body.clone();
                    changed[at] = byte;
                    let step = with_body(method, &credential, &good[..nth], &changed);
                    assert!(changed == *body || !last || code(&step) != "let in", "{at} {byte}");
                }
            }
        }
    }
}

/// A client-first message altered on its way is still one; its client then signs something else.
#[test]
fn a_changed_opening_spoils_the_proof() {
    let good = good_bodies(Method::Scram, Form::Password);
    let opening = String::from_utf8(good[0][18..].to_vec()).unwrap();
    for changed in
        [opening.replace("n,,", "y,,"), opening.replace("n=,", "n=bob,"), opening.clone() + ",x=1"]
    {
        let (_, server_counts) = start(Method::Scram, Form::Password);
        let (_, server_counts) = proving(server_counts.receive(&initial(changed.as_bytes())));
        assert_ne!(code(&server_counts.receive(&good[1])), "let in", "{changed}");
    }
}

#[test]
fn a_client_may_say_that_it_could_have_bound_the_channel() {
    let (_, server_counts) = start(Method::Scram, Form::Scram);
    let (_, server_counts) = proving(server_counts.receive(&initial(b"y,,n=,r=abc")));
    let nonce = [b"abc".as_slice(), scram::nonce(&SERVERS_RANDOM).as_bytes()].concat();
    let proof = [b"c=eSws,r=", nonce.as_slice(), b",x=y,p=", [b'A'; 43].as_slice(), b"="].concat();
    assert_eq!(code(&server_counts.receive(&proof)), "28P01", "well-formed, and wrong");
}

#[test]
fn the_first_message_may_come_second() {
    let (_, server_counts) = start(Method::Scram, Form::Password);
    let (request, server_counts) =
        proving(server_counts.receive(&sasl_initial("SCRAM-SHA-256", -1, b"")));
    assert_eq!(request, AuthRequest::SaslContinue(Vec::new()));
    let (_, direct) = start(Method::Scram, Form::Password);
    let opening = b"n,,n=,r=abc";
    let (late, _) = proving(server_counts.receive(opening));
    assert_eq!(late, proving(direct.receive(&initial(opening))).0);
}

#[test]
fn openings_that_are_refused() {
    let bodies: [Vec<u8>; 16] = [
        sasl_initial("SCRAM-SHA-256-PLUS", 11, b"n,,n=,r=abc"),
        sasl_initial("SCRAM-SHA-256", 12, b"n,,n=,r=abc"),
        sasl_initial("SCRAM-SHA-256", -1, b"n,,n=,r=abc"),
        sasl_initial("SCRAM-SHA-256", -2, b""),
        sasl_initial("SCRAM-SHA-256", i32::MAX, b""),
        initial(b""),
        initial(b"p=tls-server-end-point,,n=,r=abc"),
        initial(b"n,a=bob,n=,r=abc"),
        initial(b"x,,n=,r=abc"),
        initial(b"n,,r=abc"),
        initial(b"n,,m=x,n=,r=abc"),
        initial(b"n,,n=,r="),
        initial(b"n,,n=,r=a b"),
        initial(b"n,,n=,r=abc,"),
        initial(b"n,,n=a\0,r=abc"),
        initial(&[b"n,,n=,r=".as_slice(), &[b'a'; 2000]].concat()),
    ];
    for body in bodies {
        let (_, server_counts) = start(Method::Scram, Form::Scram);
        assert_eq!(code(&server_counts.receive(&body)), "08P01", "{}", body.escape_ascii());
    }
}

#[test]
fn proofs_that_are_refused() {
    let nonce = format!("abc{}", scram::nonce(&SERVERS_RANDOM));
    let proof = "A".repeat(43) + "=";
    for (last, expected) in [
        (format!("c=biws,r={nonce},p={proof}"), "28P01"),
        (format!("c=eSws,r={nonce},p={proof}"), "08P01"),
        (format!("c=biws,r={nonce}x,p={proof}"), "08P01"),
        (format!("c=biws,r=abc,p={proof}"), "08P01"),
        (format!("c=biws,r={nonce},p={proof},"), "08P01"),
        (format!("c=biws,r={nonce},p={proof},x=1"), "08P01"),
        (format!("c=biws,r={nonce},m=1,p={proof}"), "08P01"),
        (format!("c=biws,p={proof}"), "08P01"),
        (format!("r={nonce},c=biws,p={proof}"), "08P01"),
        (format!("c=biws,r={nonce},p=AAAA"), "08P01"),
        (format!("c=biws,r={nonce},p="), "08P01"),
        (format!("c=biws,r={nonce}"), "08P01"),
    ] {
        let (_, server_counts) = start(Method::Scram, Form::Scram);
        let (_, server_counts) = proving(server_counts.receive(&initial(b"n,,n=,r=abc")));
        assert_eq!(code(&server_counts.receive(last.as_bytes())), expected, "{last}");
    }
}

#[test]
fn passwords_that_are_refused() {
    let long = [vec![b'a'; 70_000], vec![0]].concat();
    let cases: [(&[u8], &str); 6] = [
        (b"", "08P01"),
        (b"pencil", "08P01"),
        (b"pencil\0\0", "08P01"),
        (b"pen\0cil\0", "08P01"),
        (&long, "08P01"),
        (b"\0", "28P01"),
    ];
    for (body, expected) in cases {
        for method in [Method::Password, Method::Md5] {
            let (_, server_counts) = start(method, Form::Password);
            assert_eq!(code(&server_counts.receive(body)), expected, "{}", body.len());
        }
    }
}

fn login() -> Login {
    Login::new("alice", Secret::Password(password("pencil")), &CLIENTS_RANDOM)
}

/// A login that has sent its first message, and one that has sent its proof.
fn challenged() -> Login {
    match login().answer(ServerAsks::Sasl { mechanisms: b"SCRAM-SHA-256\0\0" }, &mut None) {
        Ok(Reply::Send(_, login)) => login,
        other => panic!("{other:?}"),
    }
}

fn challenge(iterations: &str) -> String {
    format!("r={}srv,s=c2FsdA==,i={iterations}", scram::nonce(&CLIENTS_RANDOM))
}

fn proved() -> Login {
    let challenge = challenge("1");
    match challenged().answer(ServerAsks::SaslContinue(challenge.as_bytes()), &mut None) {
        Ok(Reply::Send(_, login)) => login,
        other => panic!("{other:?}"),
    }
}

#[test]
fn challenges_that_are_refused() {
    let good = challenge("1");
    // Up to the digit: a number cut short would be a number.
    for end in 0..good.len() {
        let cut = &good.as_bytes()[..end];
        assert!(challenged().answer(ServerAsks::SaslContinue(cut), &mut None).is_err(), "{end}");
    }
    for bad in [
        good.replace("srv", ""),
        good.replacen("r=", "r=x", 1),
        good.replace("c2FsdA==", ""),
        good.replace("c2FsdA==", "*"),
        challenge("0"),
        challenge("-1"),
        challenge("99999999999"),
        challenge("1,"),
        format!("m=1,{good}"),
    ] {
        let end = challenged().answer(ServerAsks::SaslContinue(bad.as_bytes()), &mut None);
        assert!(matches!(end, Err(LoginError::Malformed(_))), "{bad}");
    }
    let endless = challenge("4294967295");
    let end = challenged().answer(ServerAsks::SaslContinue(endless.as_bytes()), &mut None);
    assert!(matches!(end, Err(LoginError::TooManyIterations(u32::MAX))));
}

#[test]
fn signatures_that_are_refused() {
    let wrong = format!("v={}=", "A".repeat(43));
    for (last, expected) in [
        (wrong.as_str(), Some(LoginError::ServerProofWrong)),
        ("e=invalid-proof", Some(LoginError::Refused)),
        ("v=", None),
        ("v=AAAA", None),
        ("x", None),
        ("", None),
    ] {
        let end = proved().answer(ServerAsks::SaslFinal(last.as_bytes()), &mut None);
        match (end, expected) {
            (Err(LoginError::Malformed(_)), None) => {}
            (Err(error), Some(expected)) => assert_eq!(error, expected),
            (end, _) => panic!("{last}: {end:?}"),
        }
    }
}

/// All stages against all messages: what is not expected ends the login.
#[test]
fn a_server_must_keep_the_order() {
    let sasl = ServerAsks::Sasl { mechanisms: b"SCRAM-SHA-256\0\0" };
    let all = [
        ServerAsks::Ok,
        ServerAsks::CleartextPassword,
        ServerAsks::Md5 { salt: [0; 4] },
        sasl,
        ServerAsks::SaslContinue(b""),
        ServerAsks::SaslFinal(b""),
        ServerAsks::Other(7),
    ];
    for asks in all {
        let first = login().answer(asks, &mut None);
        let takes = !matches!(
            asks,
            ServerAsks::SaslContinue(_) | ServerAsks::SaslFinal(_) | ServerAsks::Other(_)
        );
        assert_eq!(first.is_ok(), takes, "{asks:?} {first:?}");
        for stage in [challenged, proved] {
            let end = stage().answer(asks, &mut None);
            assert!(end.is_err(), "{asks:?} {end:?}");
        }
    }
    // No way round the signature.
    for stage in [challenged, proved] {
        let end = stage().answer(ServerAsks::Ok, &mut None);
        assert!(matches!(end, Err(LoginError::ServerProofWrong)));
    }
}

#[test]
fn mechanisms_and_kinds_that_are_not_ours() {
    for names in [&b""[..], b"\0", b"SCRAM-SHA-25", b"OAUTHBEARER\0\0"] {
        let end = login().answer(ServerAsks::Sasl { mechanisms: names }, &mut None);
        assert!(matches!(end, Err(LoginError::Unsupported(10))));
    }
    // libpq does not believe this in the clear either.
    for names in [&b"SCRAM-SHA-256-PLUS\0\0"[..], b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0"] {
        let end = login().answer(ServerAsks::Sasl { mechanisms: names }, &mut None);
        assert!(matches!(end, Err(LoginError::Binding(_))));
    }
    let end = login().answer(ServerAsks::Other(7), &mut None);
    assert!(matches!(end, Err(LoginError::Unsupported(7))));
}
