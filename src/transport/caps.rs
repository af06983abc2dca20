//! How large a received message may be.

use core::fmt;

/// The size caps on a received message.
///
/// The defaults admit what an image or video pipeline sends and bound the rest;
/// lower them to what your messages need, above all where peers are not
/// trusted. An envelope (the identity that a ROUTER socket puts before a
/// message) is not part of the message and does not count.
///
/// A larger message is drained and refused, as
/// [`ErrorKind::CapExceeded`](super::ErrorKind::CapExceeded); or the connection it came on is
/// dropped before it is read, which costs what was under way there and is no
/// error here: see [the exception](super#the-contract).
///
/// # Examples
///
/// ```
/// use tensorwire::transport::Caps;
///
/// let caps = Caps::new().with_frames(9).with_frame_bytes(64 << 20);
/// let mut meter = caps.meter();
/// assert!(meter.admit(200));
/// assert!(!meter.admit(65 << 20));
/// let refused = meter.finish().unwrap_err();
/// assert_eq!((refused.limit(), refused.actual()), (64 << 20, 65 << 20));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Caps {
    frame_bytes: usize,
    frames: usize,
    message_bytes: usize,
}

impl Caps {
    /// Makes the default caps.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            // A decoded video of 81 frames at 1280 x 720 in float32 is 0.83 GiB.
            frame_bytes: 1 << 30,
            // The metadata frame and one frame for each of at most 4096 descriptors.
            frames: 4097,
            // One byte less than two GiB, so that it is an `isize` on every target.
            message_bytes: (1 << 31) - 1,
        }
    }

    /// Sets the most bytes in one frame; 1 GiB unless set.
    #[must_use]
    pub const fn with_frame_bytes(mut self, bytes: usize) -> Self {
        self.frame_bytes = bytes;
        self
    }

    /// Sets the most frames in one message; 4097 unless set.
    #[must_use]
    pub const fn with_frames(mut self, frames: usize) -> Self {
        self.frames = frames;
        self
    }

    /// Sets the most bytes in all frames of one message together; 2 GiB less one
    /// byte unless set.
    #[must_use]
    pub const fn with_message_bytes(mut self, bytes: usize) -> Self {
        self.message_bytes = bytes;
        self
    }

    /// Returns the most bytes in one frame.
    #[must_use]
    pub const fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    /// Returns the most frames in one message.
    #[must_use]
    pub const fn frames(&self) -> usize {
        self.frames
    }

    /// Returns the most bytes in all frames of one message together.
    #[must_use]
    pub const fn message_bytes(&self) -> usize {
        self.message_bytes
    }

    /// Starts to measure one message against the caps.
    #[must_use]
    pub const fn meter(self) -> CapMeter {
        CapMeter {
            caps: self,
            frames: 0,
            bytes: 0,
            broken: None,
        }
    }
}

impl Default for Caps {
    fn default() -> Self {
        Self::new()
    }
}

/// Measures one message against its [`Caps`], frame by frame.
///
/// It keeps counting after a cap is broken, so that the error can say how large
/// the message was that had to be drained.
#[derive(Clone, Copy, Debug)]
pub struct CapMeter {
    caps: Caps,
    frames: usize,
    bytes: usize,
    /// The first cap broken, with the length of the frame that did it.
    broken: Option<(Cap, usize)>,
}

impl CapMeter {
    /// Counts a frame of `len` bytes; returns `false` if the message is over a cap,
    /// with this frame or since an earlier one.
    #[inline]
    pub fn admit(&mut self, len: usize) -> bool {
        self.frames = self.frames.saturating_add(1);
        self.bytes = self.bytes.saturating_add(len);
        if self.broken.is_none() {
            let cap = if len > self.caps.frame_bytes {
                Some(Cap::FrameBytes)
            } else if self.frames > self.caps.frames {
                Some(Cap::Frames)
            } else if self.bytes > self.caps.message_bytes {
                Some(Cap::MessageBytes)
            } else {
                None
            };
            self.broken = cap.map(|cap| (cap, len));
        }
        self.broken.is_none()
    }

    /// Returns how many bytes were counted so far, in all frames together.
    #[must_use]
    #[inline]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the verdict, once the last frame is counted.
    ///
    /// # Errors
    ///
    /// The first cap that was broken, with the numbers of the whole message.
    #[inline]
    pub fn finish(self) -> Result<(), CapExceeded> {
        let Some((cap, len)) = self.broken else {
            return Ok(());
        };
        let (limit, actual) = match cap {
            Cap::FrameBytes => (self.caps.frame_bytes, len),
            Cap::Frames => (self.caps.frames, self.frames),
            Cap::MessageBytes => (self.caps.message_bytes, self.bytes),
        };
        Err(CapExceeded { cap, limit, actual })
    }
}

/// Which cap a message broke.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Cap {
    /// [`Caps::frame_bytes`].
    FrameBytes,
    /// [`Caps::frames`].
    Frames,
    /// [`Caps::message_bytes`].
    MessageBytes,
}

/// A received message was larger than its [`Caps`] allow, and was drained.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CapExceeded {
    cap: Cap,
    limit: usize,
    actual: usize,
}

impl CapExceeded {
    /// Returns which cap was broken.
    #[must_use]
    pub const fn cap(&self) -> Cap {
        self.cap
    }

    /// Returns what the cap allows.
    #[must_use]
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// Returns what came: the bytes of the offending frame, or the frames or bytes of
    /// the whole message.
    #[must_use]
    pub const fn actual(&self) -> usize {
        self.actual
    }
}

impl fmt::Display for CapExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cap, limit, actual } = self;
        match cap {
            Cap::FrameBytes => write!(f, "frame of {actual} bytes, at most {limit} allowed"),
            Cap::Frames => write!(f, "message of {actual} frames, at most {limit} allowed"),
            Cap::MessageBytes => write!(f, "message of {actual} bytes, at most {limit} allowed"),
        }
    }
}

impl core::error::Error for CapExceeded {}

#[cfg(test)]
mod tests {
    use super::*;

    /// (name, frame lengths, which cap, limit, actual)
    const REFUSED: &[(&str, &[usize], Cap, usize, usize)] = &[
        ("frame", &[4, 11, 1], Cap::FrameBytes, 10, 11),
        ("frames", &[0, 0, 0, 0, 0], Cap::Frames, 3, 5),
        ("bytes", &[10, 10, 1], Cap::MessageBytes, 20, 21),
        (
            "first broken wins",
            &[10, 11, 10, 10],
            Cap::FrameBytes,
            10,
            11,
        ),
        (
            "no overflow",
            &[10, usize::MAX],
            Cap::FrameBytes,
            10,
            usize::MAX,
        ),
    ];

    fn measure(caps: Caps, lengths: &[usize]) -> Result<(), CapExceeded> {
        let mut meter = caps.meter();
        for &len in lengths {
            meter.admit(len);
        }
        meter.finish()
    }

    #[test]
    fn the_first_broken_cap_is_told_with_the_whole_message_counted() {
        let caps = Caps::new()
            .with_frame_bytes(10)
            .with_frames(3)
            .with_message_bytes(20);
        for &(name, lengths, cap, limit, actual) in REFUSED {
            let expected = CapExceeded { cap, limit, actual };
            assert_eq!(measure(caps, lengths), Err(expected), "{name}");
        }
        for lengths in [&[][..], &[10, 10, 0], &[0, 0, 0]] {
            assert_eq!(measure(caps, lengths), Ok(()), "{lengths:?}");
        }
    }
}
