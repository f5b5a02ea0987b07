//! Every method with every form of secret, right and wrong.

use super::*;

const METHODS: [Method; 3] = [Method::Password, Method::Md5, Method::Scram];

/// Whether a client that knows the password gets in.
fn fits(method: Method, form: Form) -> bool {
    match form {
        Form::Password | Form::Scram => true,
        Form::Md5 => method != Method::Scram,
        Form::Unknown(_) => false,
    }
}

#[test]
fn the_right_password_lets_in_wherever_it_can_be_checked() {
    for method in METHODS {
        for form in FORMS {
            let met = meet(method, &alice(form), Secret::Password(password("pencil")));
            assert_eq!(met.is_in(), fits(method, form), "{method:?} {form:?} {met:?}");
        }
    }
}

#[test]
fn a_wrong_password_a_stranger_and_an_unfit_secret_hear_the_same() {
    for method in METHODS {
        for form in FORMS {
            let met = meet(method, &alice(form), Secret::Password(password("Pencil")));
            let End::Refused(refusal) = met.end else { panic!("{method:?} {form:?}") };
            assert_eq!(refusal.sqlstate(), "28P01");
            assert_eq!(refusal.to_string(), "password authentication failed for user \"alice\"");
        }
    }
}

/// A stranger gets the salt that a user with a plain password would get, each time the same.
#[test]
fn a_stranger_is_asked_what_a_user_is_asked() {
    let likes =
        [(Form::Password, Like::Password), (Form::Md5, Like::Md5), (Form::Scram, SCRAM_4096)];
    for method in METHODS {
        for (form, like) in likes {
            let said = |form| meet(method, &alice(form), Secret::Password(password("wrong"))).said;
            let [mut user, mut stranger] = [form, Form::Unknown(like)].map(said);
            assert_eq!(stranger, said(Form::Unknown(like)));
            if form == Form::Scram {
                blank_salt(&mut user);
                blank_salt(&mut stranger);
            }
            assert_eq!(user, stranger, "{method:?} {form:?}");
        }
    }
}

/// A verifier brings its own salt; of that, a stranger's can share only the length.
fn blank_salt(said: &mut [AuthRequest]) {
    for request in said {
        if let AuthRequest::SaslContinue(body) = request {
            let salt = body.windows(3).position(|bytes| bytes == b",s=").unwrap() + 3;
            body[salt..salt + 24].fill(b'.');
        }
    }
}

#[test]
fn trust_asks_nothing_and_yields_no_secret() {
    for form in FORMS {
        let met = meet(Method::Trust, &alice(form), Secret::None);
        assert_eq!(met.said, [AuthRequest::Ok]);
        let authenticated = met.authenticated();
        assert_eq!(authenticated.user(), "alice");
        assert!(matches!(authenticated.secret(), Secret::None));
    }
}

#[test]
fn md5_becomes_scram_for_a_user_with_a_verifier() {
    let met = meet(Method::Md5, &alice(Form::Scram), Secret::Password(password("pencil")));
    assert!(matches!(met.said[..], [AuthRequest::Sasl { .. }, .., AuthRequest::Ok]));
}

#[test]
fn the_keys_of_a_client_that_proved_itself_log_in_at_its_server() {
    let pencil = Secret::Password(password("pencil"));
    let credential = alice(Form::Scram);
    let keys = meet(Method::Scram, &credential, pencil).authenticated().secret().clone();
    let Secret::Scram(found) = &keys else { panic!("{keys:?}") };
    assert_eq!(found.salt, ScramVerifier::parse(ALICE).unwrap().salt);
    assert!(meet(Method::Scram, &credential, keys.clone()).is_in());

    // The server's signature is not checked for want of a key, and that is not held against it.
    let blind = ScramKeys { server_key: None, ..found.clone() };
    assert!(meet(Method::Scram, &credential, Secret::Scram(blind)).is_in());

    // The same password under another salt.
    let met = meet(Method::Scram, &alice(Form::Password), keys);
    assert!(matches!(met.end, End::GaveUp(LoginError::SaltMismatch)), "{met:?}");
}

/// A stranger has a secret, but no luck in guessing it helps.
#[test]
fn a_stranger_is_refused_even_with_the_secret_that_stands_in() {
    let key = seed().key("secret\0", "alice");
    let met = |method, like, secret| meet(method, &alice(Form::Unknown(like)), secret);
    let guessed = Secret::Password(Password::of_key(&key));
    for method in [Method::Password, Method::Md5] {
        assert!(!met(method, Like::Password, guessed.clone()).is_in());
    }
    let guessed = Secret::Md5(Md5Hash::digest(&[&key[..]]));
    assert!(!met(Method::Md5, Like::Md5, guessed).is_in());
}

/// Each exchange yields a secret for logins at servers: the password wherever it is known.
#[test]
fn an_exchange_yields_the_best_secret_there_is() {
    let yields = |method, form| {
        let met = meet(method, &alice(form), Secret::Password(password("pencil")));
        match met.authenticated().secret() {
            Secret::None => "none",
            Secret::Password(_) => "password",
            Secret::Md5(_) => "md5",
            Secret::Scram(_) => "scram",
        }
    };
    for form in [Form::Password, Form::Md5, Form::Scram] {
        assert_eq!(yields(Method::Password, form), "password");
    }
    assert_eq!(yields(Method::Md5, Form::Password), "password");
    assert_eq!(yields(Method::Md5, Form::Md5), "md5");
    assert_eq!(yields(Method::Scram, Form::Password), "password");
    assert_eq!(yields(Method::Scram, Form::Scram), "scram");
}

#[test]
fn a_secret_goes_only_where_it_fits() {
    let md5 = || Secret::Md5(Md5Hash::of(&password("pencil"), "alice"));
    let ends = |method, form, secret| match meet(method, &alice(form), secret).end {
        End::In(_) => None,
        End::Refused(_) => panic!("something was sent that does not fit"),
        End::GaveUp(error) => Some(error),
    };
    assert_eq!(ends(Method::Md5, Form::Md5, md5()), None);
    assert_eq!(ends(Method::Password, Form::Md5, md5()), Some(LoginError::SecretUnfit));
    assert_eq!(ends(Method::Scram, Form::Scram, md5()), Some(LoginError::SecretUnfit));
    for (method, form) in
        [(Method::Password, Form::Password), (Method::Md5, Form::Md5), (Method::Scram, Form::Scram)]
    {
        assert_eq!(ends(method, form, Secret::None), Some(LoginError::NoPassword));
    }
}

#[test]
fn what_was_salted_once_serves_until_salt_or_password_change() {
    let pencil = || Secret::Password(password("pencil"));
    let mut salted = Some(Salted::derive(&password("pencil"), b"elsewhere", 1));
    assert!(meet_again(Method::Scram, &alice(Form::Scram), pencil(), &mut salted).is_in());
    let before = format!("{salted:?}");
    assert!(before.contains("4096"), "made anew for the server's salt: {before}");
    assert!(meet_again(Method::Scram, &alice(Form::Scram), pencil(), &mut salted).is_in());
    assert!(meet_again(Method::Scram, &alice(Form::Password), pencil(), &mut salted).is_in());

    // Keys kept of another password do not stand in for a wrong one.
    let wrong = Secret::Password(password("wrong"));
    assert!(!meet_again(Method::Scram, &alice(Form::Password), wrong, &mut salted).is_in());
}

/// Server keys that are not the verifier's: someone who only passes for the server.
#[test]
fn a_server_that_does_not_know_the_verifier_is_found_out() {
    let mut verifier = ScramVerifier::parse(ALICE).unwrap();
    verifier.server_key[0] ^= 1;
    let imposter = Credential::prepare("alice", StoredSecret::Scram(verifier), &seed());
    let met = meet(Method::Scram, &imposter, Secret::Password(password("pencil")));
    assert!(matches!(met.end, End::GaveUp(LoginError::ServerProofWrong)), "{met:?}");
}
