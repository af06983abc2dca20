//! When a process is to end: it is told to by a signal, or by whoever started it.

use std::io::{Read, stdin};
use std::thread;

use tokio::signal::unix::{SignalKind, signal};

use crate::Result;

/// Calls `stop` when the process gets SIGTERM or SIGINT; and, with `orphaned`, when its
/// stdin is closed, which the system does however the process at the other end goes.
///
/// Once this has returned, neither signal ends the process by itself.
pub(crate) fn when_told(orphaned: bool, stop: impl Fn() + Clone + Send + 'static) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let entered = runtime.enter();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    drop(entered);
    let signalled = stop.clone();
    thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        });
        signalled();
    });
    if orphaned {
        thread::spawn(move || {
            // Nothing ever comes: the read ends with the pipe.
            let _ = stdin().read(&mut [0]);
            stop();
        });
    }
    Ok(())
}
