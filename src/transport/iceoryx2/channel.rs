//! The services that make up a channel, and calls into iceoryx2.

use core::hint;
use core::panic::AssertUnwindSafe;
use core::time::Duration;

use alloc::format;

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use ::iceoryx2::node::{Node, NodeBuilder, NodeState};
use ::iceoryx2::prelude::{
    Alignment, CallbackProgression, Config, FileName, Path as SystemPath, PortFactory as _,
    SemanticString, ServiceName, SignalHandlingMode, ipc_threadsafe,
};
use ::iceoryx2::service::port_factory::{event, publish_subscribe};

use super::error::DirectoryFault;
use super::{Error, MAX_DEPTH, MAX_SENDERS, unfinished};
use crate::bundle;

/// How many bytes one element of a sample has. It is aligned to as many.
pub(super) const BLOCK: usize = bundle::ALIGNMENT;

/// What one end holds of a channel, to be dropped after its ports.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) messages: publish_subscribe::PortFactory<ipc_threadsafe::Service, [[u8; BLOCK]], ()>,
    /// Wakes a receiver that sleeps.
    pub(super) wakes: event::PortFactory<ipc_threadsafe::Service>,
    node: Node<ipc_threadsafe::Service>,
}

impl Channel {
    /// Opens the channel `name`, and makes it if it is not there. What dead processes
    /// left in the directory is removed first.
    pub(super) fn open(name: &str, directory: Option<&Path>) -> Result<Self, Error> {
        let name = ServiceName::new(name).map_err(|_| Error::Name)?;
        let user = user()?;
        // All directories share a counter of nodes; users do not.
        let prefix = format!("tw_{user}_");
        let config = config(directory, user, &prefix)?;
        let folder = Path::new(unfinished::FOLDER);
        unfinished::mend_counter(folder, &prefix, user)?;
        unfinished::remove_old(folder, &prefix, user);
        guard(|| {
            let node = NodeBuilder::new()
                .signal_handling_mode(SignalHandlingMode::Disabled)
                .config(&config)
                .create()
                .map_err(|_| Error::Failed {
                    doing: "make a node",
                })?;
            unfinished::close_counter(folder, &prefix, user);
            Self::of_node(node, &name)
        })?
    }

    fn of_node(node: Node<ipc_threadsafe::Service>, name: &ServiceName) -> Result<Self, Error> {
        // Two that open it at a time, or one that opens it while the last other one
        // leaves, get in each other's way for a moment; and a process that was killed
        // while it did one or the other is in the way until it is cleaned up after.
        let messages = patiently(&node, || {
            let alignment = Alignment::new(BLOCK)?;
            node.service_builder(name)
                .publish_subscribe::<[[u8; BLOCK]]>()
                .payload_alignment(alignment)
                .enable_safe_overflow(false)
                .history_size(0)
                .max_publishers(MAX_SENDERS)
                .max_subscribers(1)
                .max_nodes(MAX_NODES)
                .subscriber_max_buffer_size(MAX_DEPTH)
                .subscriber_max_borrowed_samples(MAX_DEPTH)
                .open_or_create()
                .ok()
        })?;
        let wakes = patiently(&node, || {
            node.service_builder(name)
                .event()
                .max_listeners(1)
                .max_notifiers(MAX_SENDERS)
                .max_nodes(MAX_NODES)
                .event_id_max_value(0)
                .open_or_create()
                .ok()
        })?;
        Ok(Self {
            messages,
            wakes,
            node,
        })
    }

    /// Returns whether there is a receiver, as far as it is known.
    pub(super) fn has_receiver(&self) -> bool {
        self.messages.dynamic_config().number_of_subscribers() > 0
    }

    /// Returns whether one of these senders is on it.
    pub(super) fn has_sender(&self, senders: &[u128]) -> bool {
        if senders.is_empty() {
            return false;
        }
        let mut found = false;
        self.messages.dynamic_config().list_publishers(|sender| {
            found |= senders.contains(&sender.publisher_id.value());
            CallbackProgression::Continue
        });
        found
    }

    /// Makes a port; the place of one that was killed is free once that is cleaned up after.
    pub(super) fn port<T, E: PartialEq>(
        &self,
        full: (E, Error),
        doing: &'static str,
        mut make: impl FnMut() -> Result<T, E>,
    ) -> Result<T, Error> {
        let mut tries_left = 3_u8;
        loop {
            match guard(&mut make)? {
                Ok(port) => return Ok(port),
                Err(error) if error != full.0 => return Err(Error::Failed { doing }),
                Err(_) if tries_left == 0 => return Err(full.1),
                Err(_) => {}
            }
            tries_left = tries_left.saturating_sub(1);
            self.clean_up(Duration::from_secs(1), Duration::MAX)?;
            thread::sleep(RETRY_PAUSE);
        }
    }

    /// Removes what dead processes left behind, waiting for others who do so for up to `wait`
    /// each, and starts on no further one after `time`.
    pub(super) fn clean_up(&self, wait: Duration, time: Duration) -> Result<(), Error> {
        let start = Instant::now();
        guard(|| {
            Node::<ipc_threadsafe::Service>::list(self.node.config(), |node| {
                let NodeState::Dead(node) = node else {
                    return CallbackProgression::Continue;
                };
                // What one call cannot remove is left to the next.
                node.blocking_remove_stale_resources(wait).ok();
                match start.elapsed() < time {
                    true => CallbackProgression::Continue,
                    false => CallbackProgression::Stop,
                }
            })
            .ok();
        })
    }
}

/// Calls into iceoryx2, which panics where it finds its own state broken.
pub(super) fn guard<T>(call: impl FnOnce() -> T) -> Result<T, Error> {
    // Whoever sees the error does not call again: ends remember it.
    catch_unwind(AssertUnwindSafe(call)).map_err(|_| Error::Closed)
}

/// Passes a moment, awake, of a wait that has lasted for `waited`.
pub(super) fn pause(waited: Duration) {
    if waited < ALONE {
        hint::spin_loop();
    } else {
        // It may be this very core that the other side needs.
        thread::yield_now();
    }
}

/// Tries until it works, for as long as one may expect it to.
fn patiently<T>(
    node: &Node<ipc_threadsafe::Service>,
    mut open: impl FnMut() -> Option<T>,
) -> Result<T, Error> {
    let start = Instant::now();
    loop {
        if let Some(opened) = open() {
            return Ok(opened);
        }
        if start.elapsed() > OPEN_PATIENCE {
            return Err(Error::Failed {
                doing: "open the channel",
            });
        }
        thread::sleep(RETRY_PAUSE);
        node.try_cleanup_dead_nodes();
    }
}

/// Makes iceoryx2's configuration: ours alone, whatever files of its own lie about.
fn config(directory: Option<&Path>, user: u32, prefix: &str) -> Result<Config, Error> {
    let directory = secure(directory, user)?;
    let path = |_| Error::Directory(DirectoryFault::Path);
    let root = SystemPath::new(directory.as_os_str().as_bytes()).map_err(path)?;
    let mut config = Config::default();
    config.global.set_root_path(&root);
    config.global.prefix = FileName::new(prefix.as_bytes()).map_err(path)?;
    config.global.node.cleanup_dead_nodes_on_destruction = false;
    // A sender that left with messages unread counts as long as they are.
    config
        .defaults
        .publish_subscribe
        .subscriber_expired_connection_buffer = MAX_DEPTH;
    Ok(config)
}

/// Returns the directory, made if it was not there, if no other user can change what is in it.
fn secure(directory: Option<&Path>, user: u32) -> Result<PathBuf, Error> {
    let directory = match directory {
        // Without a slash or a dot at the end, which would follow a link.
        Some(directory) => directory.components().collect(),
        None => PathBuf::from(format!("/tmp/tensorwire-{user}")),
    };
    if directory.as_os_str().len() > LONGEST_DIRECTORY {
        return Err(Error::Directory(DirectoryFault::Path));
    }
    DirBuilder::new()
        .mode(0o700)
        .create(&directory)
        .or_else(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Ok(()),
            _ => Err(error),
        })
        .map_err(inaccessible)?;
    // Not what a link points to: a link can be turned.
    let found = fs::symlink_metadata(&directory).map_err(inaccessible)?;
    if !found.is_dir() || found.uid() != user || found.mode() & 0o022 != 0 {
        return Err(Error::Directory(DirectoryFault::Insecure));
    }
    Ok(directory)
}

/// Returns the number of the user.
fn user() -> Result<u32, Error> {
    let process = fs::metadata("/proc/self").map_err(inaccessible)?;
    Ok(process.uid())
}

fn inaccessible(_: io::Error) -> Error {
    Error::Directory(DirectoryFault::Inaccessible)
}

/// Each end is a node; some more are on their way in or out.
const MAX_NODES: usize = 128;

/// A path to a socket has 107 bytes, of which the names in the directory take 60.
const LONGEST_DIRECTORY: usize = 47;

/// How long opening a channel may be held up by others.
const OPEN_PATIENCE: Duration = Duration::from_secs(3);

/// How long a wait keeps its core to itself.
const ALONE: Duration = Duration::from_micros(3);

/// How long to wait before trying again what others are in the way of.
pub(super) const RETRY_PAUSE: Duration = Duration::from_millis(5);

/// A receiver that sleeps looks again after this: a sender may have died between sending
/// and waking.
pub(super) const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// How often a sender that waits looks for dead processes, which costs as much as
/// twenty naps.
pub(super) const CLEAN_UP_EVERY: Duration = Duration::from_millis(100);
