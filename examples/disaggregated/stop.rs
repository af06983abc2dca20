//! When to end: it is told by a signal, or to a worker by whoever started it.

use std::io::{Read, stdin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tokio::signal::unix::{SignalKind, signal};

use crate::Result;

/// Whether a signal has come. What is under way then ends as on any error, so that nothing is left.
#[derive(Clone)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn on_signal() -> Result<Self> {
        let stop = Self(Arc::default());
        let told = stop.clone();
        when_told(false, move || told.0.store(true, Ordering::Relaxed))?;
        Ok(stop)
    }

    pub(crate) fn is_told(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Fails once a signal has come.
    pub(crate) fn check(&self) -> Result<()> {
        match self.is_told() {
            true => Err("stopped by a signal".into()),
            false => Ok(()),
        }
    }
}

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
