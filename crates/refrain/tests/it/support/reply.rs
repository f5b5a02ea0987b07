//! Replies, and short words for them.

use refrain_differ::reply::Frame;

/// The replies to a request, up to ReadyForQuery or to the end of the connection.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// All frames but ParameterStatus.
    pub(crate) frames: Vec<Frame>,
}

impl Reply {
    /// Returns one word per frame, such as `1 2 D(7) C(SELECT 1) Z(I)`.
    pub(crate) fn words(&self) -> String {
        words(&self.frames)
    }

    /// Returns the first ErrorResponse.
    pub(crate) fn error(&self) -> Option<&Frame> {
        self.frames.iter().find(|frame| frame.tag == b'E')
    }

    /// Returns the SQLSTATE of the first ErrorResponse, or an empty text.
    pub(crate) fn code(&self) -> String {
        self.error().map_or(String::new(), |frame| text(frame.field(b'C')))
    }

    /// Returns all rows.
    pub(crate) fn rows(&self) -> Vec<Vec<Option<String>>> {
        self.frames.iter().filter(|frame| frame.tag == b'D').map(columns).collect()
    }

    /// Returns the first column of the first row.
    pub(crate) fn value(&self) -> String {
        let row = self.rows().into_iter().next();
        let value = row.and_then(|row| row.into_iter().next());
        value.unwrap_or_else(|| panic!("no row: {}", self.words())).unwrap_or("NULL".to_owned())
    }

    /// Returns the transaction status of ReadyForQuery, if that came.
    pub(crate) fn status(&self) -> Option<char> {
        let last = self.frames.last().filter(|frame| frame.tag == b'Z');
        last.and_then(|frame| frame.body.first()).map(|status| char::from(*status))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}

/// Returns one word per frame.
pub(crate) fn words(frames: &[Frame]) -> String {
    frames.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Returns a word for a frame.
pub(crate) fn word(frame: &Frame) -> String {
    let inside = match frame.tag {
        b'E' | b'N' => text(frame.field(b'C')),
        b'C' | b'Z' => text(&frame.body),
        b'D' => {
            let shown = columns(frame).into_iter().map(|column| column.unwrap_or("NULL".into()));
            let shown = shown.collect::<Vec<_>>().join(",");
            if shown.len() > 200 { format!("{} bytes", shown.len()) } else { shown }
        }
        tag => return char::from(tag).to_string(),
    };
    format!("{}({inside})", char::from(frame.tag))
}

/// Returns the values of a DataRow.
fn columns(frame: &Frame) -> Vec<Option<String>> {
    let mut rest = &frame.body[2..];
    let mut columns = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = i32::from_be_bytes(*length);
        let (value, after) = after.split_at(usize::try_from(length).unwrap_or(0));
        columns.push((length >= 0).then(|| String::from_utf8_lossy(value).into_owned()));
        rest = after;
    }
    columns
}
