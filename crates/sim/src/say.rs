//! A writer of a client's messages.

use refrain_pg_wire::tag::{self, front};
use refrain_pg_wire::write;

/// Messages of a client: their bytes and the client's number. A text that clients do not share ends
/// in a comment with that number.
#[derive(Clone, Debug, Default)]
pub struct Say(pub Vec<u8>, pub usize);

impl Say {
    /// Writes a Query.
    pub fn query(&mut self, text: &str) -> &mut Self {
        let text = format!("{text} /*c{}-0*/", self.1);
        write::query(&mut self.0, text.as_bytes());
        self
    }

    /// Writes a Parse without parameter types.
    pub fn parse(&mut self, name: &str, text: &str) -> &mut Self {
        let shared = text.contains('$');
        let comment = if shared { String::new() } else { format!(" /*c{}-0*/", self.1) };
        let tail = [text.as_bytes(), comment.as_bytes(), &[0, 0, 0]].concat();
        write::parse(&mut self.0, name.as_bytes(), &tail);
        self
    }

    /// Writes a Bind with text parameters.
    pub fn bind(&mut self, portal: &str, statement: &str, parameters: &[&str]) -> &mut Self {
        write::message(&mut self.0, front::BIND, |out| {
            write::string(out, portal.as_bytes());
            write::string(out, statement.as_bytes());
            out.extend_from_slice(&[0, 0]);
            out.extend_from_slice(&u16::try_from(parameters.len()).unwrap_or(0).to_be_bytes());
            for parameter in parameters {
                out.extend_from_slice(&u32::try_from(parameter.len()).unwrap_or(0).to_be_bytes());
                out.extend_from_slice(parameter.as_bytes());
            }
            out.extend_from_slice(&[0, 0]);
        });
        self
    }

    /// Writes an Execute of at most `rows` rows; zero means all.
    pub fn execute(&mut self, portal: &str, rows: u32) -> &mut Self {
        write::message(&mut self.0, front::EXECUTE, |out| {
            write::string(out, portal.as_bytes());
            out.extend_from_slice(&rows.to_be_bytes());
        });
        self
    }

    /// Writes a Describe or Close of a statement or portal.
    pub fn about(&mut self, message: u8, target: u8, name: &str) -> &mut Self {
        write::message(&mut self.0, message, |out| {
            out.push(target);
            write::string(out, name.as_bytes());
        });
        self
    }

    /// Writes a Describe of a statement.
    pub fn describe(&mut self, name: &str) -> &mut Self {
        self.about(front::DESCRIBE, tag::STATEMENT, name)
    }

    /// Writes a Close of a statement.
    pub fn close(&mut self, name: &str) -> &mut Self {
        self.about(front::CLOSE, tag::STATEMENT, name)
    }

    /// Writes a Sync.
    pub fn sync(&mut self) -> &mut Self {
        write::sync(&mut self.0);
        self
    }

    /// Writes a Flush.
    pub fn flush(&mut self) -> &mut Self {
        write::bare(&mut self.0, front::FLUSH);
        self
    }

    /// Writes a CopyData with one line.
    pub fn copy_data(&mut self, line: &str) -> &mut Self {
        let data = line.as_bytes();
        write::message(&mut self.0, front::COPY_DATA, |out| out.extend_from_slice(data));
        self
    }

    /// Writes a CopyDone, or a CopyFail with a reason.
    pub fn copy_end(&mut self, failure: Option<&str>) -> &mut Self {
        match failure {
            None => write::bare(&mut self.0, front::COPY_DONE),
            Some(why) => write::message(&mut self.0, front::COPY_FAIL, |out| {
                write::string(out, why.as_bytes());
            }),
        }
        self
    }

    /// Writes a FunctionCall with one argument.
    pub fn call(&mut self, function: u32, argument: &str) -> &mut Self {
        write::message(&mut self.0, front::FUNCTION_CALL, |out| {
            out.extend_from_slice(&function.to_be_bytes());
            out.extend_from_slice(&[0, 0, 0, 1]);
            out.extend_from_slice(&u32::try_from(argument.len()).unwrap_or(0).to_be_bytes());
            out.extend_from_slice(argument.as_bytes());
            out.extend_from_slice(&[0, 0]);
        });
        self
    }

    /// Writes a Terminate.
    pub fn terminate(&mut self) -> &mut Self {
        write::terminate(&mut self.0);
        self
    }
}
