//! Logins over TLS, bound to the server's certificate or not, and what somebody in between can do.

use refrain_config::ChannelBinding::{Disable, Prefer, Require};
use refrain_pool::secured::Secured;

use super::*;

/// An encrypted connection on which the server's certificate has this hash.
fn tls(end_point: Option<&[u8]>) -> Secured {
    let end_point = end_point.map(Into::into);
    Secured { version: "TLSv1.3", cipher: "".into(), end_point, certificate: None }
}

fn login(secured: Option<&Secured>, wanted: refrain_config::ChannelBinding) -> Login {
    let secret = Secret::Password(password("pencil"));
    Login::new("alice", secret, &CLIENTS_RANDOM).over(secured, wanted)
}

fn proving(secured: Option<&Secured>) -> AuthStep {
    Proving::start_over(secured, Method::Scram, &alice(Form::Scram), &SERVERS_RANDOM)
}

/// Runs a login between a client and a server that see these connections, the server's first words
/// changed by `between`. Returns the client's messages and the outcome.
fn meet(
    mut login: Login,
    mut step: AuthStep,
    between: impl Fn(AuthRequest) -> AuthRequest,
) -> (Vec<String>, Result<(), String>) {
    let mut said = Vec::new();
    loop {
        let (request, proving) = match step {
            AuthStep::Send(request, proving) => (between(request), proving),
            AuthStep::Failed(refusal) => {
                return (said, Err(format!("{} {refusal}", refusal.sqlstate())));
            }
            AuthStep::Done(..) => return (said, Ok(())),
        };
        match answer(login, &request, &mut None) {
            Ok(Reply::Send(body, next)) => {
                said.push(String::from_utf8_lossy(&body).into_owned());
                login = next;
                step = proving.receive(&body);
            }
            Ok(other) => panic!("{other:?}"),
            Err(error) => return (said, Err(error.to_string())),
        }
    }
}

#[test]
fn a_login_over_tls_is_bound_unless_it_is_not_wanted() {
    let secured = tls(Some(b"hash"));
    for (wanted, mechanism, flag) in [
        (Disable, "SCRAM-SHA-256\0", "n,,"),
        (Prefer, "SCRAM-SHA-256-PLUS\0", "p=tls-server-end-point,,"),
        (Require, "SCRAM-SHA-256-PLUS\0", "p=tls-server-end-point,,"),
    ] {
        let (said, end) = meet(login(Some(&secured), wanted), proving(Some(&secured)), |it| it);
        assert_eq!(end, Ok(()), "{wanted:?}");
        assert!(said[0].starts_with(mechanism) && said[0].contains(flag), "{said:?}");
    }
}

#[test]
fn two_certificates_mean_that_somebody_is_between() {
    let (one, other) = (tls(Some(b"one")), tls(Some(b"other")));
    let (_, end) = meet(login(Some(&one), Prefer), proving(Some(&other)), |it| it);
    assert_eq!(end, Err("28000 SCRAM channel binding check failed".to_owned()));
}

/// Takes the offer of channel binding out of the server's list.
fn downgraded(request: AuthRequest) -> AuthRequest {
    match request {
        AuthRequest::Sasl { .. } => AuthRequest::Sasl { mechanisms: &["SCRAM-SHA-256"] },
        other => other,
    }
}

#[test]
fn a_downgrade_is_found_by_either_side() {
    let secured = tls(Some(b"hash"));
    let (said, end) = meet(login(Some(&secured), Prefer), proving(Some(&secured)), downgraded);
    assert!(said[0].contains("y,,"), "{said:?}");
    assert_eq!(end, Err("28000 SCRAM channel binding negotiation error".to_owned()));
    let (said, end) = meet(login(Some(&secured), Require), proving(Some(&secured)), downgraded);
    assert_eq!(said, [""; 0]);
    assert_eq!(
        end.unwrap_err(),
        "channel binding is required, and cannot be had on this connection"
    );
}

#[test]
fn a_server_without_it_is_logged_in_to_unless_it_is_required() {
    let secured = tls(Some(b"hash"));
    let (said, end) = meet(login(Some(&secured), Prefer), proving(None), |it| it);
    assert!(said[0].contains("y,,"), "{said:?}");
    assert_eq!(end, Ok(()));
    for secured in [None, Some(&secured)] {
        let (_, end) = meet(login(secured, Require), proving(None), |it| it);
        assert!(end.unwrap_err().starts_with("channel binding is required"));
    }
    for asks in [ServerAsks::Ok, ServerAsks::CleartextPassword, ServerAsks::Md5 { salt: [1; 4] }] {
        let end = login(Some(&secured), Require).answer(asks, &mut None).unwrap_err();
        assert_eq!(
            end.to_string(),
            "channel binding is required, and the server does without it",
            "{asks:?}"
        );
    }
}

#[test]
fn an_offer_in_the_clear_is_not_believed() {
    let (_, end) = meet(login(None, Prefer), proving(Some(&tls(Some(b"hash")))), |it| it);
    assert_eq!(end.unwrap_err(), "server offers SCRAM-SHA-256-PLUS over a connection in the clear");
}

#[test]
fn a_certificate_without_a_hash_is_not_bound_to() {
    let secured = tls(None);
    let (said, end) = meet(login(Some(&secured), Prefer), proving(Some(&secured)), |it| it);
    assert!(said[0].starts_with("SCRAM-SHA-256\0"), "{said:?}");
    assert_eq!(end, Ok(()));
}

#[test]
fn what_a_client_says_of_binding_has_to_fit_the_mechanism() {
    for (mechanism, header, expected) in [
        ("SCRAM-SHA-256-PLUS", "n,,", "08P01 client selected SCRAM-SHA-256-PLUS, but"),
        ("SCRAM-SHA-256-PLUS", "y,,", "08P01 client selected SCRAM-SHA-256-PLUS, but"),
        ("SCRAM-SHA-256-PLUS", "p=tls-unique,,", "08P01 unsupported SCRAM channel-binding type"),
        ("SCRAM-SHA-256", "p=tls-server-end-point,,", "08P01 client selected SCRAM-SHA-256, but"),
        ("SCRAM-SHA-256", "y,,", "28000 SCRAM channel binding negotiation error"),
        ("SCRAM-SHA-1", "n,,", "08P01 client selected an invalid SASL"),
    ] {
        let AuthStep::Send(_, exchange) = proving(Some(&tls(Some(b"hash")))) else { panic!() };
        let message = format!("{header}n=,r=abc");
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        let body = [mechanism.as_bytes(), &[0], &length, message.as_bytes()].concat();
        let AuthStep::Failed(refusal) = exchange.receive(&body) else { panic!("{header}") };
        let told = format!("{} {refusal}", refusal.sqlstate());
        assert!(told.starts_with(expected), "{mechanism} {header}: {told}");
    }
}
