//! What the transports over sockets have in common.

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

/// Where the ends meet.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Place {
    Inproc,
    Ipc,
    Tcp,
}

/// Opens a receiver, as soon as its endpoint is free: a socket that was dropped is
/// closed in the background.
pub(crate) fn once_free<S, E: Error + Send + Sync + 'static>(
    mut open: impl FnMut() -> Result<S, E>,
) -> Result<S, Box<dyn Error + Send + Sync>> {
    let start = Instant::now();
    loop {
        match open() {
            Ok(socket) => return Ok(socket),
            Err(error) if start.elapsed() > Duration::from_secs(10) => return Err(error.into()),
            Err(_) => thread::sleep(Duration::from_millis(2)),
        }
    }
}
