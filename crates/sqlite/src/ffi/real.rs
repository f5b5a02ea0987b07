//! The texts of floating-point numbers.

use std::ffi::CStr;

use rusqlite::ffi as sqlite;

/// The most bytes of such a text, with the zero behind it: sign, 17 digits, point and exponent.
const TEXT_MAX: usize = 64;

/// Returns the text that SQLite's functions of JSON write for a number: infinity is `9.0e+999`.
pub fn real_text(number: f64) -> String {
    let mut text = [0_u8; TEXT_MAX];
    let room = i32::try_from(TEXT_MAX).unwrap_or(0);
    // SAFETY: the format takes one double, and SQLite writes at most `room` bytes, zero included.
    unsafe {
        sqlite::sqlite3_snprintf(room, text.as_mut_ptr().cast(), c"%!0.17g".as_ptr(), number);
    }
    let text = CStr::from_bytes_until_nul(&text).unwrap_or_default();
    text.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Database, OpenOptions, Step, Value};

    #[test]
    fn it_is_the_text_in_json() {
        let connection = Database::new(":memory:", OpenOptions::default()).connect().unwrap();
        let hard = [0.0, -0.0, 5e-5, 1e16, 0.1, 1.0 / 3.0, 5e-324, f64::MAX, 123_456_789.125];
        // The bits of a generator of random numbers: all exponents, and long digits.
        let mut bits = 1_u64;
        let random = (0..1000).map(|_| {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            f64::from_bits(bits)
        });
        let all = hard.into_iter().chain([f64::INFINITY, f64::NEG_INFINITY]).chain(random);
        for number in all.filter(|number| !number.is_nan()) {
            let mut run = connection.statement("SELECT json_array(?1)").unwrap().start();
            run.bind(1, Value::Real(number)).unwrap();
            assert_eq!(run.step().unwrap(), Step::Row);
            let expected = format!("[{}]", real_text(number));
            assert_eq!(run.column(0), Value::Text(expected.as_bytes()), "{number:?}");
        }
    }
}
