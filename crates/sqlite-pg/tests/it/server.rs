//! Sessions on sockets, a thread for each: enough for psql and drivers, but for nothing else.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use refrain_sqlite_pg::{Pool, Progress, Session};

/// An event for the thread of a session.
enum Heard {
    Bytes(Vec<u8>),
    Woken,
    Gone,
}

/// Serves a database on a socket, for as long as the process lives.
pub(crate) fn serve(pool: &Arc<Pool>, listener: TcpListener) {
    for socket in listener.incoming().flatten() {
        let pool = pool.clone();
        std::thread::spawn(move || talk(pool, socket));
    }
}

fn talk(pool: Arc<Pool>, socket: TcpStream) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let (tell, heard) = channel();
    let woken = tell.clone();
    let waker = Arc::new(move || drop(woken.send(Heard::Woken)));
    let mut session = Session::new(pool, waker);
    let reader = socket.try_clone()?;
    std::thread::spawn(move || listen(reader, &tell));
    let mut socket = socket;
    let mut out = Vec::new();
    while let Ok(event) = heard.recv() {
        let mut progress = match event {
            Heard::Bytes(bytes) => session.receive(bytes, &mut out),
            Heard::Woken => session.resume(&mut out),
            Heard::Gone => break,
        };
        loop {
            socket.write_all(&out)?;
            out.clear();
            match progress {
                Progress::More => progress = session.resume(&mut out),
                Progress::Closed => return socket.shutdown(std::net::Shutdown::Both),
                Progress::Idle | Progress::Waiting => break,
            }
        }
    }
    Ok(())
}

fn listen(mut socket: TcpStream, tell: &Sender<Heard>) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let heard = match socket.read(&mut buffer) {
            Ok(0) | Err(_) => Heard::Gone,
            Ok(length) => Heard::Bytes(buffer[..length].to_vec()),
        };
        let gone = matches!(heard, Heard::Gone);
        if tell.send(heard).is_err() || gone {
            return;
        }
    }
}
