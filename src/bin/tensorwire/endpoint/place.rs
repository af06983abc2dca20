//! Where a socket is, and what is said of an endpoint that is no good.

use std::path::Path;

use tensorwire::transport::{ErrorKind, TransportError};

use crate::args::{At, Transport};
use crate::exit::Failure;

/// Where a socket is, and which end it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) transport: Transport,
    pub(crate) endpoint: &'a str,
    pub(crate) bind: bool,
}

impl At {
    pub(crate) fn place(&self) -> Place<'_> {
        // One of the two is given, and not both.
        let endpoint = self.bind.as_deref().or(self.connect.as_deref());
        Place {
            transport: self.transport,
            endpoint: endpoint.unwrap_or_default(),
            bind: self.bind.is_some(),
        }
    }
}

impl Transport {
    /// What it is called on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Nng => "nng",
            Self::Zmq => "zmq",
        }
    }
}

impl<'a> Place<'a> {
    /// Refuses what would never meet a peer, or would harm what is there.
    ///
    /// To bind an ipc endpoint the libraries remove whatever has that name, be it somebody's file
    /// or, with ZeroMQ, the socket of a process that is at work.
    ///
    /// # Errors
    ///
    /// Why it is refused.
    pub(super) fn check(self) -> Result<(), Failure> {
        let endpoint = self.endpoint;
        if endpoint.starts_with("inproc:") {
            return Err(Failure::Usage(format!(
                "{endpoint} stays within one process, where no peer can be; {EXAMPLES}"
            )));
        }
        #[cfg(unix)]
        if let Some(path) = self.file() {
            use std::os::unix::fs::FileTypeExt as _;

            let Ok(metadata) = std::fs::symlink_metadata(path) else {
                return Ok(());
            };
            if !metadata.file_type().is_socket() {
                return Err(Failure::Could(format!(
                    "cannot bind {endpoint}: {} is there and is no socket; take another name, or remove it",
                    path.display()
                )));
            }
            if is_in_use(path) {
                return Err(Failure::Could(format!(
                    "cannot bind {endpoint}: it is in use; {IN_USE}"
                )));
            }
        }
        Ok(())
    }

    /// The file that binding makes, if it makes one.
    pub(super) fn file(self) -> Option<&'a Path> {
        let name = self.endpoint.strip_prefix("ipc://")?;
        // Linux has names that are no files; and any name, where the library chooses one.
        (self.bind && !name.starts_with('@') && name != "*").then(|| Path::new(name))
    }

    /// Says why a socket is not where it was to be.
    pub(super) fn not_there(self, error: &impl TransportError) -> Failure {
        let endpoint = self.endpoint;
        let doing = if self.bind { "bind" } else { "connect to" };
        let text = error.to_string();
        let folder = self.file().and_then(Path::parent);
        let hint = match error.kind() {
            ErrorKind::InvalidInput if self.bind => {
                return Failure::Could(format!(
                    "cannot bind {endpoint}: {text}; {EXAMPLES}; what is bound is an address, no host name"
                ));
            }
            ErrorKind::InvalidInput => EXAMPLES,
            _ if text.contains("in use") => IN_USE,
            _ if folder.is_some_and(|folder| !folder.is_dir()) => {
                "its folder is not there: make that first"
            }
            ErrorKind::Other if self.file().is_some() => {
                "may you write to its folder, and is its name short enough?"
            }
            _ if self.bind => "does the address belong to this machine, and may you use it?",
            _ => "is the endpoint right?",
        };
        Failure::Could(format!("cannot {doing} {endpoint}: {text}; {hint}"))
    }
}

const EXAMPLES: &str = "endpoints look like tcp://127.0.0.1:5555 or ipc:///tmp/peer.sock";

const IN_USE: &str = "another process is there: end it, or take another endpoint";

/// Whether a process is there, and not just the socket of one that is gone.
#[cfg(unix)]
fn is_in_use(path: &Path) -> bool {
    // Who listens is listed. To connect is the way that works everywhere, but NNG accepts nobody
    // any more once a connection to it ended as early as this one (nanomsg/nng issue 1518): it
    // is left for those that are not listed, being in another container.
    let listed = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let name = path.to_string_lossy();
    listed.lines().any(|line| listens_at(line, &name))
        || std::os::unix::net::UnixStream::connect(path).is_ok()
}

/// Whether a line of `/proc/net/unix` is a socket of this name, as it was bound, that listens.
#[cfg(unix)]
fn listens_at(line: &str, name: &str) -> bool {
    // Number, references, protocol, flags, type, state, inode, and the name, which may hold spaces.
    let flags = line.split_whitespace().nth(3);
    let named = line.ends_with(name) && {
        let before = line.len().saturating_sub(name.len());
        line.get(..before).is_some_and(|rest| rest.ends_with(' '))
    };
    named && flags == Some("00010000")
}

/// The file of a socket that is bound, which ZeroMQ leaves behind; gone with this.
#[cfg(unix)]
#[derive(Debug)]
pub(super) struct SocketFile {
    path: std::path::PathBuf,
    identity: Identity,
}

#[cfg(unix)]
impl SocketFile {
    /// Takes note of the file that a socket was just bound to, if there is one.
    pub(super) fn of(place: Place<'_>) -> Option<Self> {
        let path = place.file()?;
        let identity = identity(path)?;
        // Wherever this process goes meanwhile.
        let path = std::path::absolute(path).ok()?;
        Some(Self { path, identity })
    }
}

#[cfg(unix)]
impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another process may have put its own there.
        if identity(&self.path) == Some(self.identity) {
            // What cannot be removed does no harm: whoever binds it next replaces it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// What tells a socket's file from another of the same name: device and inode, which is soon given
/// again, and when it was made, in seconds and nanoseconds.
#[cfg(unix)]
type Identity = (u64, u64, i64, i64);

#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

    let metadata = std::fs::symlink_metadata(path).ok()?;
    let is_socket = metadata.file_type().is_socket();
    is_socket.then(|| {
        let made = (metadata.mtime(), metadata.mtime_nsec());
        (metadata.dev(), metadata.ino(), made.0, made.1)
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn who_listens_is_told_from_who_is_connected_and_from_other_names() {
        let listens = "000000003a5f3c6d: 00000002 00000000 00010000 0001 01 28342 /tmp/a b.sock";
        let connected = "000000003a5f3c6d: 00000003 00000000 00000000 0001 03 28343 /tmp/a b.sock";
        let nameless = "000000003a5f3c6d: 00000002 00000000 00010000 0001 01 28342";
        assert!(listens_at(listens, "/tmp/a b.sock"));
        assert!(!listens_at(listens, "b.soc"));
        assert!(!listens_at(listens, "p/a b.sock"));
        assert!(!listens_at(connected, "/tmp/a b.sock"));
        assert!(!listens_at(nameless, "/tmp/a b.sock"));
        assert!(!listens_at("", "/tmp/a b.sock"));
    }
}
