//! Setting an end of a channel up.

use core::time::Duration;

use alloc::borrow::ToOwned;
use alloc::string::String;

use std::path::{Path, PathBuf};

use super::{
    DEFAULT_DEPTH, DEFAULT_MESSAGE_BYTES, DEFAULT_SPIN, DEFAULT_TIMEOUT, Error, MAX_DEPTH,
    Receiver, Sender,
};
use crate::transport::Caps;

/// Sets an end of a channel up.
///
/// Both ends name the channel, and the directory if any; nothing else has to agree.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use tensorwire::transport::{Caps, RecvFrames, TransportError, iceoryx2};
///
/// # let name = &format!("doc/builder/{}", std::process::id());
/// # let _ = r#"
/// let name = "denoiser/latents";
/// # "#;
/// let mut receiver = iceoryx2::Builder::new(name)
///     .caps(Caps::new().with_frames(9))
///     .recv_timeout(Some(Duration::from_millis(1)))
///     .receiver()?;
/// assert!(receiver.recv().is_err_and(|error| error.kind().is_wait()));
/// # Ok::<(), iceoryx2::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    name: String,
    pub(super) options: Options,
}

impl Builder {
    /// Starts to set up an end of the channel `name`: 1 to 255 characters of ASCII other
    /// than NUL, not starting with `iox2://`. Slashes, spaces and the like are lawful.
    ///
    /// Another name is [`Error::Name`] when the end is opened.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            options: Options::default(),
        }
    }

    /// Opens a sender.
    ///
    /// # Errors
    ///
    /// [`Error::Name`], [`Error::Directory`], [`Error::TooManySenders`],
    /// [`Error::TooLarge`] for a pool of more than all memory, or [`Error::Failed`] for
    /// what else the system says.
    pub fn sender(self) -> Result<Sender, Error> {
        Sender::open(&self.name, self.options)
    }

    /// Opens the receiver.
    ///
    /// # Errors
    ///
    /// As [`Builder::sender`]; [`Error::ReceiverExists`] in place of `TooManySenders`.
    pub fn receiver(self) -> Result<Receiver, Error> {
        Receiver::open(&self.name, self.options)
    }

    /// Sets the caps on received messages; [`Caps::new`] unless set.
    pub fn caps(mut self, caps: Caps) -> Self {
        self.options.caps = caps;
        self
    }

    /// Sets how many messages of this sender may be under way or kept by the receiver;
    /// [`DEFAULT_DEPTH`] unless set. 0 is taken as 1, and more than [`MAX_DEPTH`] as
    /// that.
    pub fn depth(mut self, messages: usize) -> Self {
        self.options.depth = messages.clamp(1, MAX_DEPTH);
        self
    }

    /// Sets the directory where channels are found.
    ///
    /// Unless set it is `/tmp/tensorwire-` and the number of the user. It has to be the
    /// user's own, and nobody else may write to it; one that is not there is made, with
    /// mode 0700. Short, please: a path to a socket has 107 bytes, of which the names in
    /// the directory take 60.
    pub fn directory(mut self, directory: impl AsRef<Path>) -> Self {
        self.options.directory = Some(directory.as_ref().to_owned());
        self
    }

    /// Sets how large a message of this sender may be;
    /// [`DEFAULT_MESSAGE_BYTES`] unless set.
    ///
    /// It counts as a [bundle](crate::bundle): 24 bytes, 16 for each frame, and up to 63
    /// before each frame, beside the frames.
    pub fn message_bytes(mut self, bytes: usize) -> Self {
        self.options.message_bytes = bytes;
        self
    }

    /// Sets how long a receive waits, unless the call says otherwise.
    ///
    /// `None` waits forever. The default is [`DEFAULT_TIMEOUT`].
    pub fn recv_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.options.recv_timeout = timeout;
        self
    }

    /// Sets how long a send waits for room, unless the call says otherwise.
    ///
    /// `None` waits forever. The default is [`DEFAULT_TIMEOUT`].
    pub fn send_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.options.send_timeout = timeout;
        self
    }

    /// Sets how long a call that has to wait polls before it sleeps; [`DEFAULT_SPIN`]
    /// unless set.
    ///
    /// While it polls a message arrives in about a microsecond, and a core is busy. To be
    /// woken takes ten times as long.
    pub fn spin(mut self, time: Duration) -> Self {
        self.options.spin = time;
        self
    }
}

/// What an end was set up with.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) caps: Caps,
    pub(super) depth: usize,
    pub(super) directory: Option<PathBuf>,
    pub(super) message_bytes: usize,
    pub(super) recv_timeout: Option<Duration>,
    pub(super) send_timeout: Option<Duration>,
    pub(super) spin: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            caps: Caps::new(),
            depth: DEFAULT_DEPTH,
            directory: None,
            message_bytes: DEFAULT_MESSAGE_BYTES,
            recv_timeout: Some(DEFAULT_TIMEOUT),
            send_timeout: Some(DEFAULT_TIMEOUT),
            spin: DEFAULT_SPIN,
        }
    }
}
