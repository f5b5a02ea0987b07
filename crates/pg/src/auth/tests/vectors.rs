//! Values from elsewhere: RFC 7677, and what PostgreSQL 15 has stored.

use crate::auth::scram::{ClientFinal, ClientFirst, ServerFinal, ServerFirst};
use crate::auth::verifier::{KeyPair, is_of, proof, recover, signature, verifier_of};

use super::*;

/// The exchange printed in RFC 7677, section 3.
const FIRST: &[u8] = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
const CHALLENGE: &[u8] = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
    s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
const FINAL: &[u8] = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
    p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
const SIGNATURE: &[u8] = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

#[test]
fn rfc_7677() {
    let first = ClientFirst::parse(FIRST).unwrap();
    let challenge = ServerFirst::parse(CHALLENGE).unwrap();
    let last = ClientFinal::parse(FINAL).unwrap();
    assert_eq!((first.gs2_header, last.bound_to), (&b"n,,"[..], &b"biws"[..]));
    assert_eq!(challenge.nonce, last.nonce);
    let said = [first.bare, CHALLENGE, last.signed].join(&b',');

    let keys = KeyPair::derive(&password("pencil"), &challenge.salt, challenge.iterations);
    assert_eq!(proof(&keys.client, &said), last.proof);

    let pencil = password("pencil");
    let verifier = verifier_of(&pencil, &challenge.salt, challenge.iterations);
    assert_eq!(recover(&verifier, &last.proof, &said), Some(keys.client));
    let ServerFinal::Signature(theirs) = ServerFinal::parse(SIGNATURE).unwrap() else {
        panic!("not a signature");
    };
    assert_eq!(signature(&verifier.server_key, &said), theirs);
}

#[test]
fn a_verifier_of_postgresql_is_read_written_and_made() {
    let verifier = ScramVerifier::parse(ALICE).unwrap();
    assert_eq!(verifier.to_string(), ALICE);
    assert_eq!(verifier_of(&password("pencil"), &verifier.salt, 4096), verifier);
    assert!(is_of(&verifier, &password("pencil")));
    assert!(!is_of(&verifier, &password("pencil ")));
}

/// Passwords that SASLprep changes, forbids or empties, each beside PostgreSQL's verifier.
#[test]
fn passwords_are_prepared_as_postgresql_does() {
    let cases = [
        // Mapped: feminine ordinal to `a`, no-break space to space, soft hyphen to nothing.
        (
            "\u{aa}\u{a0}x\u{ad}",
            "QnSMoRqmGp3Oe+AglJlk1g==$DtmNbafZiGYKMWk8zcLJ0uiNdJ/whuZUnmuRRZMpids=:\
             7oS4SDK1QEZktuOXgiImEqbUxBeb5Vq0E6IccIwYirI=",
        ),
        // Right to left and left to right mixed.
        (
            "\u{627}1",
            "CzXxVGwIQgjG+lX0EGsiEw==$9uIkh/6QM5PoDnrCYNaere0xq1Bd7Doaazf6UYR6bg4=:\
             JS3Kpy+Jop9Dpqyl1ik8X3QBI0LxHyaxWcC5Hc7Xg1s=",
        ),
        // Nothing would remain.
        (
            "\u{ad}",
            "KZYYLU6aucc7m44HwIeXyA==$oP+oFxpWu0GyG6VCx4Tw4zsEf72iBZBHy/C/8sz1cIQ=:\
             swAMRxjCQuj1LnZJYzKFSTswEBMYT1ZCRr29qqUl4L4=",
        ),
        // A control character.
        (
            "a\tb",
            "t2US8Ky6RMdNof+oTIHBmA==$NkLixhV3DgNQnuCWad+MuUg5DdRoUKwCfgW1jPYodv4=:\
             ByWOAR/PKFt+9AAVoTg3rZebPIvVObhcorJ4xZC9GRg=",
        ),
        // Not assigned in the Unicode 3.2 that SASLprep goes by.
        (
            "\u{200b}\u{2168}p\u{1f600}",
            "LZPVxznFJAQzI1WYIqoYwA==$5B81ZncyFWiPTND7MPwNSKQjYtnjSzSVTsN8iiyhwt4=:\
             6ZWXrx+zupErbwt7Gf70VnLrm7X57d9R81t2yNDxu5Q=",
        ),
    ];
    for (text, fields) in cases {
        let verifier = ScramVerifier::parse(&format!("SCRAM-SHA-256$4096:{fields}")).unwrap();
        assert!(is_of(&verifier, &password(text)), "{text:?}");
    }
}

/// A password that is not UTF-8 is hashed as it is. (PostgreSQL has no verifier to compare with: a
/// database in UTF-8 does not take such a password.)
#[test]
fn a_password_need_not_be_text() {
    assert_eq!(password(b"\xff\xfe").prepared().as_slice(), b"\xff\xfe");
}

#[test]
fn md5_of_postgresql() {
    let stored = "md5e4f70fb0b8f2745aa7a69557c80cbd0c";
    let hash = Md5Hash::of(&password("pencil"), "bob");
    assert_eq!(hash.bytes(), stored.as_bytes());
    // `SELECT 'md5' || md5('e4f70fb0b8f2745aa7a69557c80cbd0c' || 'salt')`
    assert_eq!(hash.salted(*b"salt").bytes(), b"md534f0d1ad5c9904e6a4eb1238afc3f1a0");
    assert!(matches!(StoredSecret::parse(stored), Some(StoredSecret::Md5(_))));
}

#[test]
fn the_forms_of_a_stored_secret_are_told_apart() {
    assert!(matches!(StoredSecret::parse(ALICE), Some(StoredSecret::Scram(_))));
    for plain in ["md5", "md5E4F70FB0B8F2745AA7A69557C80CBD0C", "SCRAM", "pencil", "crème"] {
        assert!(matches!(StoredSecret::parse(plain), Some(StoredSecret::Password(_))), "{plain}");
    }
    for unusable in ["", "a\0b", "SCRAM-SHA-256$", "SCRAM-SHA-256$4096:abc$def"] {
        assert!(StoredSecret::parse(unusable).is_none(), "{unusable}");
    }
}

#[test]
fn every_truncation_of_a_verifier_is_refused() {
    for end in 0..ALICE.len() {
        assert!(ScramVerifier::parse(&ALICE[..end]).is_none(), "{}", &ALICE[..end]);
    }
    for (from, to) in [("4096", "0"), ("4096", "+1"), ("4096", "4294967296"), ("$L", "$*")] {
        assert!(ScramVerifier::parse(&ALICE.replace(from, to)).is_none(), "{to}");
    }
    assert!(ScramVerifier::parse(&format!("{ALICE}:")).is_none());
    assert!(ScramVerifier::parse("SCRAM-SHA-256$4096:$a:b").is_none());
}

#[test]
fn nothing_secret_is_shown_by_debug() {
    for form in FORMS {
        let shown = format!("{:?} {:?}", alice(form), alice(form).secret());
        assert!(!shown.contains("pencil") && !shown.contains('['), "{shown}");
    }
    let login = Login::new("alice", Secret::Password(password("pencil")), &CLIENTS_RANDOM);
    let reply = login.answer(ServerAsks::CleartextPassword, &mut None).unwrap();
    let shown = format!("{reply:?}");
    assert!(!shown.contains("pencil") && !shown.contains("112"), "{shown}");
}
