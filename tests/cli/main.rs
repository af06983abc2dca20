//! The tool `tensorwire`, run as people run it: on files, on sockets, and on terminals.

mod bench;
#[path = "../common/mod.rs"]
mod common;
mod convert;
#[cfg(unix)]
mod endpoints;
mod golden;
mod hostile;
mod live;
#[cfg(unix)]
mod losses;
mod patterns;
#[path = "../common/processes.rs"]
mod processes;
mod support;
#[cfg(unix)]
mod terminal;
mod usage;
