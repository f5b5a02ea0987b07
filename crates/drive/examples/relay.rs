//! Relays TCP connections one to one, to see what a kernel costs without a proxy around it.
//!
//! ```text
//! cargo run --release -p refrain-drive --example relay -- uring 127.0.0.1:6000 127.0.0.1:5432
//! strace -c -f -p $(pgrep -x relay)
//! ```
//!
//! It stops reading from a peer whose bytes it cannot pass on. On an interrupt it ends; there is no
//! state to save.

use std::env;
use std::error::Error;

use refrain_drive::{Address, Driver, Event, Kernel, Kind, Listener, Sizing, Socket, Token, open};

/// The events of a turn, to be handled when it is over.
enum Todo {
    Accept(Socket),
    Relay(Token, Vec<u8>),
    Resume(Token, Vec<u8>),
    Close(Token),
}

/// Pairs of connections: the client has the even token, its server the odd one after it.
struct Relay {
    kernel: Kernel,
    server: Address,
    pairs: Vec<bool>,
    spare: Vec<Vec<u8>>,
}

fn other(token: Token) -> Token {
    Token(token.0 ^ 1)
}

impl Relay {
    fn turn(&mut self, todo: &mut Vec<Todo>) -> std::io::Result<()> {
        let spare = &mut self.spare;
        self.kernel.turn(None, &mut |event| match event {
            Event::Accepted { socket, .. } => todo.push(Todo::Accept(socket)),
            Event::Received { token, bytes } => {
                if let Some(Todo::Relay(last, buffer)) = todo.last_mut()
                    && *last == token
                {
                    return buffer.extend_from_slice(bytes);
                }
                let mut buffer = spare.pop().unwrap_or_default();
                buffer.extend_from_slice(bytes);
                todo.push(Todo::Relay(token, buffer));
            }
            Event::Sent { token, buffer } => todo.push(Todo::Resume(token, buffer)),
            Event::Failed { token, .. } | Event::Closed { token, .. } => {
                todo.push(Todo::Close(token));
            }
            Event::Connected { token, .. } => todo.push(Todo::Resume(token, Vec::new())),
            Event::Detached { .. } | Event::Woken => {}
        })?;
        for todo in todo.drain(..) {
            self.act(todo);
        }
        Ok(())
    }

    fn act(&mut self, todo: Todo) {
        match todo {
            Todo::Accept(socket) => {
                let free = self.pairs.iter().position(|used| !used);
                let pair = free.unwrap_or(self.pairs.len());
                self.pairs.resize(self.pairs.len().max(pair + 1), false);
                self.pairs[pair] = true;
                let client = Token(pair as u32 * 2);
                self.kernel.adopt(client, socket);
                self.kernel.pause(client);
                self.kernel.connect(other(client), &self.server);
            }
            Todo::Relay(from, buffer) => match self.kernel.send(other(from), buffer) {
                Some(spare) => self.spare.push(spare),
                None => self.kernel.pause(from),
            },
            Todo::Resume(to, buffer) => {
                self.spare.push(buffer);
                self.kernel.resume(other(to));
            }
            Todo::Close(token) => {
                self.kernel.close(token);
                self.kernel.close(other(token));
                self.pairs[token.0 as usize / 2] = false;
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [kind, listen, server] = arguments.as_slice() else {
        return Err("usage: relay auto|uring|epoll LISTEN SERVER".into());
    };
    let kind = match kind.as_str() {
        "uring" => Kind::Uring,
        "epoll" => Kind::Epoll,
        _ => Kind::Auto,
    };
    let mut kernel = open(kind, Sizing::default())?;
    kernel.listen(0, Listener::bind(&Address::Tcp(listen.parse()?), 1024)?)?;
    let server = Address::Tcp(server.parse()?);
    let mut relay = Relay { kernel, server, pairs: Vec::new(), spare: Vec::new() };
    let mut todo = Vec::new();
    loop {
        relay.turn(&mut todo)?;
    }
}
