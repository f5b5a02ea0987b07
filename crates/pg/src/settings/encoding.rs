//! Encodings, as far as they decide whether a parameter means the same as the literal in its place.
//!
//! An escape in `E'…'` is a byte in the server's encoding, and the server reads a parameter in the
//! client's. The text is the same for certain if the two encodings are.

/// An encoding that PostgreSQL knows and in which a byte below 0x80 is always what it looks like;
/// `None` for any other, or one that is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Encoding(Option<u8>);

/// Names of encodings as PostgreSQL has them (`pg_encname_tbl` in `encnames.c`), letters and digits
/// alone: each row is one encoding.
const NAMES: &[&[&str]] = &[
    &["utf8", "unicode"],
    &["sqlascii"],
    &["latin1", "iso88591"],
    &["latin2", "iso88592"],
    &["latin3", "iso88593"],
    &["latin4", "iso88594"],
    &["latin5", "iso88599"],
    &["latin6", "iso885910"],
    &["latin7", "iso885913"],
    &["latin8", "iso885914"],
    &["latin9", "iso885915"],
    &["latin10", "iso885916"],
    &["iso88595"],
    &["iso88596"],
    &["iso88597"],
    &["iso88598"],
    &["koi8r", "koi8"],
    &["koi8u"],
    &["win", "win1251", "windows1251"],
    &["win1250", "windows1250"],
    &["win1252", "windows1252"],
    &["win1253", "windows1253"],
    &["win1254", "windows1254"],
    &["win1255", "windows1255"],
    &["win1256", "windows1256"],
    &["win1257", "windows1257"],
    &["win1258", "windows1258", "abc", "tcvn", "tcvn5712", "vscii"],
    &["win866", "windows866", "alt"],
    &["win874", "windows874"],
    &["eucjp"],
    &["eucjis2004"],
    &["euccn"],
    &["euckr"],
    &["euctw"],
];

impl Encoding {
    /// Returns the encoding of this name, in any spelling.
    pub(crate) fn named(name: &[u8]) -> Self {
        let plain: Vec<u8> = name.iter().filter(|b| b.is_ascii_alphanumeric()).copied().collect();
        let is = |known: &&str| plain.eq_ignore_ascii_case(known.as_bytes());
        let row = NAMES.iter().position(|names| names.iter().any(is));
        Self(row.and_then(|row| u8::try_from(row).ok()))
    }

    /// True if both are known and the same.
    #[inline]
    pub(crate) fn is_same(self, other: Self) -> bool {
        self.0.is_some() && self.0 == other.0
    }

    /// True if PostgreSQL takes a text in this encoding for one of the database's as it is.
    pub(crate) fn converts_nothing(self, database: Self) -> bool {
        self.is_same(database) || self.is_bytes() || database.is_bytes()
    }

    /// True for SQL_ASCII, which is any bytes.
    fn is_bytes(self) -> bool {
        self.0 == Some(1)
    }

    /// True for UTF-8.
    pub(crate) fn is_utf8(self) -> bool {
        self.0 == Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_encoding_are_the_same() {
        let same = |one: &str, other: &str| {
            Encoding::named(one.as_bytes()).is_same(Encoding::named(other.as_bytes()))
        };
        assert!(same("UTF8", "utf-8") && same("unicode", "UTF8") && same("ISO-8859-1", "latin1"));
        assert!(!same("UTF8", "LATIN1") && !same("SJIS", "SJIS") && !same("", ""));
    }
}
