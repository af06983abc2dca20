//! Ctrl-C: asked for once, it ends the work; asked for twice, the process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::exit::Failure;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Has SIGINT and SIGTERM noted from now on.
pub(crate) fn watch() -> Result<(), Failure> {
    let noted = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    });
    noted.map_err(|error| Failure::Could(format!("cannot watch for Ctrl-C: {error}")))
}

/// Whether one came.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// How long a call waits before it looks for one.
pub(crate) const GLANCE: Duration = Duration::from_millis(50);
