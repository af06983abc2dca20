//! The tool `tensorwire`, run as people run it: on files, on sockets, and on terminals.

mod bench;
#[path = "../common/mod.rs"]
mod common;
mod convert;
#[cfg(unix)]
mod endpoints;
mod golden;
mod hostile;
#[cfg(unix)]
mod limited;
mod live;
#[cfg(unix)]
mod losses;
mod patterns;
#[path = "../common/processes.rs"]
mod processes;
mod reencode;
#[cfg(unix)]
mod screens;
mod support;
#[cfg(unix)]
mod svg;
#[cfg(unix)]
mod terminal;
mod usage;
