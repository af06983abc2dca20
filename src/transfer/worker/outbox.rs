//! What a machine has to send, written when it is asked for.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Deref;

use super::output::Output;
use super::settings::Site;
use super::text::Text;
use crate::convert::to_u64;
use crate::json::Str;
use crate::message::{self, CONTROL_MARKER, NO_TENSORS, Scalar};
use crate::transfer::message::{
    Allocated, Control, Done, Location, PreallocatedSlot, PreallocatedSlots, Pushed, Register,
    Staged,
};
use crate::transfer::pool::Slot;
use crate::transfer::{RequestId, Role};

/// What a message for the head node is, whose bytes lie in a buffer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Outgoing {
    /// The payload of a control message.
    Control,
    /// The metadata of a tensor message without tensors: a role's error.
    Tensors,
}

impl Outgoing {
    /// Returns the frames to send, of which the last is `buffer`.
    ///
    /// # Examples
    ///
    /// ```
    /// use tensorwire::transfer::worker::Outgoing;
    ///
    /// assert_eq!(*Outgoing::Control.frames(b"{}"), [&b"__transfer__"[..], b"{}"]);
    /// assert_eq!(*Outgoing::Tensors.frames(b"{}"), [b"{}"]);
    /// ```
    #[must_use]
    pub const fn frames(self, buffer: &[u8]) -> OutgoingFrames<'_> {
        OutgoingFrames {
            frames: [CONTROL_MARKER, buffer],
            has_marker: matches!(self, Self::Control),
        }
    }
}

/// The frames of an outgoing message, one or two: a slice of them.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingFrames<'b> {
    frames: [&'b [u8]; 2],
    has_marker: bool,
}

impl<'b> Deref for OutgoingFrames<'b> {
    type Target = [&'b [u8]];

    fn deref(&self) -> &[&'b [u8]] {
        let [_, payload] = &self.frames;
        if self.has_marker {
            &self.frames
        } else {
            core::slice::from_ref(payload)
        }
    }
}

/// How a role tells of an error.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Form {
    /// `transfer_done`.
    Done,
    /// A tensor message, with the text under this key.
    Tensors(&'static str),
}

#[derive(Debug)]
enum Message {
    Allocated {
        request: RequestId,
        offset: u64,
        len: u64,
    },
    Failed {
        request: RequestId,
        text: Cow<'static, str>,
        form: Form,
    },
    Pushed {
        request: RequestId,
    },
    Register {
        slots: Box<[PreallocatedSlot]>,
    },
    Staged {
        request: RequestId,
        offset: u64,
        len: u64,
        manifest: Text,
        scalars: Text,
    },
}

/// Messages for the head node, in their order.
#[derive(Debug)]
pub(super) struct Outbox {
    role: Role,
    messages: VecDeque<Message>,
    /// How many messages may wait before no request is begun and no refusal told.
    limit: usize,
}

impl Outbox {
    pub(super) const fn new(role: Role, max_requests: usize) -> Self {
        Self {
            role,
            messages: VecDeque::new(),
            // A request under way has two messages at a time, at the most.
            limit: max_requests.saturating_mul(4).saturating_add(64),
        }
    }

    pub(super) const fn limit(&self) -> usize {
        self.limit
    }

    /// Whether so much waits to be sent that nothing is to be begun, and no refusal told.
    pub(super) fn is_full(&self) -> bool {
        self.messages.len() >= self.limit
    }

    pub(super) fn register(&mut self, slots: Box<[PreallocatedSlot]>) {
        self.messages.push_back(Message::Register { slots });
    }

    pub(super) fn allocated(&mut self, request: RequestId, offset: usize, len: usize) {
        self.messages.push_back(Message::Allocated {
            request,
            offset: to_u64(offset),
            len: to_u64(len),
        });
    }

    pub(super) fn pushed(&mut self, request: RequestId) {
        self.messages.push_back(Message::Pushed { request });
    }

    /// Announces `output`, and returns its slot and how much of it is used.
    pub(super) fn staged(
        &mut self,
        request: RequestId,
        output: Output,
        scalars: Text,
    ) -> (Option<Slot>, usize) {
        let (slot, used, manifest) = output.into_parts();
        let place = slot.as_ref().map(|slot| (slot.offset(), slot.len()));
        let (offset, len) = place.unwrap_or_default();
        self.messages.push_back(Message::Staged {
            request,
            offset: to_u64(offset),
            len: to_u64(len),
            manifest,
            scalars,
        });
        (slot, used)
    }

    /// Tells that a request has failed that was under way.
    pub(super) fn failed(
        &mut self,
        request: RequestId,
        text: impl Into<Cow<'static, str>>,
        form: Form,
    ) {
        let text = cut(text.into());
        let message = Message::Failed {
            request,
            text,
            form,
        };
        self.messages.push_back(message);
    }

    /// Tells that there is no such request, unless the driver lets too much of this pile up.
    pub(super) fn refused(
        &mut self,
        request: Str<'_>,
        text: impl Into<Cow<'static, str>>,
        form: Form,
    ) {
        if !self.is_full() {
            self.failed(request.into(), text, form);
        }
    }

    /// Writes the next message into `buffer`, in place of what it holds.
    pub(super) fn poll(&mut self, site: &Site, buffer: &mut Vec<u8>) -> Option<Outgoing> {
        loop {
            let message = self.messages.pop_front()?;
            // Never fails: each is a message that can be written.
            if let Some(outgoing) = self.write(&message, site, buffer) {
                return Some(outgoing);
            }
        }
    }

    fn write(&self, message: &Message, site: &Site, buffer: &mut Vec<u8>) -> Option<Outgoing> {
        match message {
            Message::Allocated {
                request,
                offset,
                len,
            } => {
                let location = location(site, *offset);
                put(Allocated::new(request.text(), location, *len), buffer)
            }
            Message::Failed {
                request,
                text,
                form,
            } => match form {
                Form::Done => put(Done::failed(request.text(), &**text), buffer),
                Form::Tensors(key) => put_error(request, text, key, buffer),
            },
            Message::Pushed { request } => put(Pushed::new(request.text()), buffer),
            Message::Register { slots } => {
                let register = Register::new(
                    self.role,
                    site.session_id(),
                    site.pool_ptr(),
                    to_u64(site.pool().len()),
                    site.work_endpoint(),
                    PreallocatedSlots::from(&**slots),
                );
                put(register, buffer)
            }
            Message::Staged {
                request,
                offset,
                len,
                manifest,
                scalars,
            } => {
                let location = location(site, *offset);
                let staged = Staged::new(
                    request.text(),
                    *len,
                    manifest.object(),
                    location,
                    scalars.object(),
                );
                match self.role {
                    Role::Denoiser => put(Done::staged(staged), buffer),
                    Role::ImageEncoder => put(staged.with_staged_for_decoder(false), buffer),
                    _ => put(staged, buffer),
                }
            }
        }
    }
}

fn location(site: &Site, offset: u64) -> Location<'_> {
    Location::new(site.session_id(), site.pool_ptr(), offset)
}

fn put<'a>(message: impl Into<Control<'a>>, buffer: &mut Vec<u8>) -> Option<Outgoing> {
    let message = message.into();
    buffer.clear();
    buffer.resize(message.encoded_len(), 0);
    message.encode_into(buffer).ok()?;
    Some(Outgoing::Control)
}

fn put_error(request: &RequestId, text: &str, key: &str, buffer: &mut Vec<u8>) -> Option<Outgoing> {
    let id = Scalar::from(request.text());
    let scalars = [("request_id", id), (key, Scalar::from(text))];
    buffer.clear();
    buffer.resize(message::encoded_len(NO_TENSORS, &scalars).ok()?, 0);
    message::encode_into(NO_TENSORS, &scalars, buffer).ok()?;
    Some(Outgoing::Tensors)
}

/// An error's text is a line, not a document.
fn cut(text: Cow<'static, str>) -> Cow<'static, str> {
    const MAX_LEN: usize = 4096;
    if text.len() <= MAX_LEN {
        return text;
    }
    let mut ends = text.char_indices().map(|(at, _)| at);
    let end = ends.rfind(|&at| at <= MAX_LEN).unwrap_or_default();
    let mut text = text.into_owned();
    text.truncate(end);
    Cow::Owned(text)
}
