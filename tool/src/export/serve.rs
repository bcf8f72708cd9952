//! Metrics over a Unix socket: who connects gets an exposition, as an answer to HTTP if that was asked.
//!
//! The socket is one that systemd hands over (socket activation, sd_listen_fds(3): descriptor 3, listening or, with
//! Accept=yes, connected), or one that is made here. One connection at a time: an exposition takes milliseconds, and who
//! neither asks nor reads within a second each is left, however little it does of it now and then.

use std::env;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{absolute, Path};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};
use signal_hook::flag;
use signal_hook::low_level::{emulate_default_handler, pipe};

use crate::halts::is_ignored;
use crate::output;

const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The first descriptor that systemd hands over.
const HANDED: i32 = 3;
/// Who does not ask within this time gets the exposition as it is, and who does not read for so long is left. On a busy
/// machine a third of it was too short for some who do ask, and they lost the answer.
const SLOW: Duration = Duration::from_secs(1);
const REQUEST_MOST: usize = 8192;

pub enum Socket {
    Listening(UnixListener),
    Connected(UnixStream),
}

/// The socket that was handed over, if there is one: for this process, and one only.
pub fn handed() -> Result<Option<Socket>> {
    let number = |name| env::var(name).ok().and_then(|value| value.parse::<u32>().ok());
    if number("LISTEN_PID") != Some(std::process::id()) {
        return Ok(None);
    }
    match number("LISTEN_FDS") {
        Some(1) => {}
        other => bail!("one socket is wanted, and {} were handed over", other.unwrap_or(0)),
    }
    let (mut listens, mut size) = (0i32, size_of::<i32>() as libc::socklen_t);
    // SAFETY: getsockopt writes an int and its size; the descriptor was handed over to be owned by this process.
    unsafe {
        let asked = (&raw mut listens).cast();
        if libc::getsockopt(HANDED, libc::SOL_SOCKET, libc::SO_ACCEPTCONN, asked, &mut size) != 0 {
            bail!("descriptor {HANDED} is no socket: {}", std::io::Error::last_os_error());
        }
        let descriptor = OwnedFd::from_raw_fd(HANDED);
        Ok(Some(match listens {
            0 => Socket::Connected(descriptor.into()),
            _ => Socket::Listening(descriptor.into()),
        }))
    }
}

/// A socket at `path`. One that an ended process left behind is replaced; one that somebody listens on is not.
pub fn bind(path: &Path) -> Result<Socket> {
    let shown = path.display();
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
        fs::remove_file(path).with_context(|| format!("cannot replace {shown}"))?;
    }
    let listener = UnixListener::bind(path).with_context(|| format!("cannot listen at {shown}"))?;
    remove_at_the_end(path).context("cannot handle signals")?;
    Ok(Socket::Listening(listener))
}

/// Nothing else than a signal ends it. What somebody else has made there meanwhile stays.
fn remove_at_the_end(path: &Path) -> io::Result<()> {
    let identity = |path: &Path| fs::symlink_metadata(path).map(|found| (found.dev(), found.ino())).ok();
    let (path, made) = (absolute(path)?, identity(path));
    let wanted = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM].into_iter().filter(|&signal| !is_ignored(signal));
    let (mut waiting, told) = UnixStream::pair()?;
    let came = Arc::new(AtomicUsize::new(0));
    for signal in wanted {
        flag::register_usize(signal, Arc::clone(&came), signal as usize)?;
        pipe::register(signal, told.try_clone()?)?;
    }
    thread::spawn(move || {
        if !waiting.read(&mut [0]).is_ok_and(|count| count > 0) {
            return; // all of them are ignored
        }
        if identity(&path) == made {
            let _ = fs::remove_file(&path);
        }
        let _ = emulate_default_handler(came.load(Ordering::Relaxed) as i32);
    });
    Ok(())
}

/// Answers all who come, for ever, or the one who is connected.
pub fn serve(socket: Socket, exposition: &dyn Fn() -> Result<String>) -> Result<()> {
    // Who hangs up before the answer would end this process: Rust 1.85 writes to a socket as to a file.
    // SAFETY: the action is valid for SIGPIPE.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    match socket {
        Socket::Connected(stream) => answer(stream, exposition),
        Socket::Listening(listener) => {
            for stream in listener.incoming() {
                // Who has gone meanwhile is no reason to end.
                if let Err(error) = answer(stream?, exposition) {
                    eprintln!("snug: a reader was not answered: {}", output::told(&error));
                }
            }
            Ok(())
        }
    }
}

fn answer(mut stream: UnixStream, exposition: &dyn Fn() -> Result<String>) -> Result<()> {
    let request = request_of(&mut stream);
    let mut words = request.split_ascii_whitespace();
    let reply = match (words.next(), words.next()) {
        (None, _) => exposition()?,
        (Some("GET"), Some("/" | "/metrics")) => with_head("200 OK", &exposition()?),
        (Some("GET"), _) => with_head("404 Not Found", "there is only /metrics\n"),
        _ => with_head("405 Method Not Allowed", "there is only GET /metrics\n"),
    };
    write_by(&mut stream, reply.as_bytes(), Instant::now() + SLOW)
}

/// What is left until then; nothing: it is over.
fn left(end: Instant) -> Option<Duration> {
    Some(end.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
}

fn write_by(stream: &mut UnixStream, mut bytes: &[u8], end: Instant) -> Result<()> {
    while !bytes.is_empty() {
        let left = left(end).context("it reads too slowly")?;
        stream.set_write_timeout(Some(left))?;
        match stream.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            // What it has not read when the time is over is told above.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn with_head(status: &str, body: &str) -> String {
    let kind = if status.starts_with("200") { TYPE } else { "text/plain" };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// What was asked: to the empty line that ends a head, or what came in time.
fn request_of(stream: &mut UnixStream) -> String {
    let (mut request, mut part) = (Vec::new(), [0; 1024]);
    let end = Instant::now() + SLOW;
    while request.len() < REQUEST_MOST && !request.windows(4).any(|end| end == b"\r\n\r\n") {
        if left(end).and_then(|left| stream.set_read_timeout(Some(left)).ok()).is_none() {
            break;
        }
        match stream.read(&mut part) {
            Ok(count) if count > 0 => request.extend_from_slice(&part[..count]),
            _ => break,
        }
    }
    String::from_utf8_lossy(&request).into_owned()
}
