//! What sender and receiver have in common.

use alloc::borrow::Cow;
use alloc::collections::VecDeque;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::error::{ProtocolError, Step};
use super::job::{Ending, Event, Job};
use super::outbox::{Form, Outbox, Outgoing};
use super::requests::{Requests, check_len};
use super::settings::{Settings, Site};
use crate::json::Str;
use crate::message::{MessageKind, Options, classify};
use crate::transfer::{Control, RequestId, Role};

/// How a request ended that is remembered.
#[derive(Debug)]
pub(super) enum End<P> {
    /// The head node was told, one way or another.
    Answered,
    /// Its output was moved, to this place.
    Pushed(P),
    /// Aborted while the head node waited for no answer.
    Unasked,
}

/// Requests in states `S`, whose outputs go to a `P`, and all that a machine has to tell.
#[derive(Debug)]
pub(super) struct Half<S, P> {
    pub(super) role: Role,
    pub(super) site: Arc<Site>,
    pub(super) settings: Settings,
    pub(super) requests: Requests<S, End<P>>,
    pub(super) outbox: Outbox,
    pub(super) events: VecDeque<Event>,
    /// The latest time that was told.
    pub(super) now: Duration,
}

impl<S, P> Half<S, P> {
    pub(super) const fn new(role: Role, site: Arc<Site>, settings: Settings) -> Self {
        let limit = settings.max_requests();
        Self {
            role,
            site,
            settings,
            requests: Requests::new(limit),
            outbox: Outbox::new(role, limit),
            events: VecDeque::new(),
            now: Duration::ZERO,
        }
    }

    /// Time does not go back.
    pub(super) fn advance(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    pub(super) fn after(&self, timeout: Duration) -> Option<Duration> {
        self.now.checked_add(timeout)
    }

    /// Says whether another request could begin.
    ///
    /// What a request tells before it is over is bounded; so, with this, is all that waits to be told.
    pub(super) fn admit(&self, id: Str<'_>) -> Result<(), ProtocolError> {
        self.requests.admit(id)?;
        let limit = self.outbox.limit();
        if self.outbox.is_full() || self.events.len() >= limit {
            return Err(ProtocolError::Backlog { limit });
        }
        Ok(())
    }

    /// How the role tells of an error once it has the input of a request.
    pub(super) const fn form(&self) -> Form {
        match self.role {
            Role::Encoder | Role::PromptEncoder => Form::Tensors("_disagg_error"),
            Role::Denoiser | Role::ImageEncoder => Form::Done,
            Role::Decoder => Form::Tensors("error"),
        }
    }

    /// Takes a request out that fails, and tells the head node.
    pub(super) fn fail(&mut self, job: &Job, text: impl Into<Cow<'static, str>>, form: Form) {
        self.requests.remove(job.request());
        self.requests.end(job, End::Answered);
        self.outbox.failed(job.request().clone(), text, form);
    }

    /// Tells the head node of a request that it will not get.
    pub(super) fn refuse(
        &mut self,
        id: Str<'_>,
        error: ProtocolError,
        form: Form,
    ) -> ProtocolError {
        if check_len(id, RequestId::MAX_LEN).is_ok() {
            self.outbox.refused(id, error.to_string(), form);
        }
        error
    }

    /// Tells the local worker that a job of its is over.
    pub(super) fn over(&mut self, job: Job, ending: Ending) {
        self.events.push_back(Event::Over { job, ending });
    }

    /// How far a request is that is not under way.
    pub(super) fn end_step(&self, id: Str<'_>) -> Step {
        match self.requests.ended(&id) {
            Some(_) => Step::Ended,
            None => Step::Unknown,
        }
    }

    pub(super) fn poll_transmit(&mut self, buffer: &mut Vec<u8>) -> Option<Outgoing> {
        self.outbox.poll(&self.site, buffer)
    }
}

/// Reads the frames of a message that is no work; `None` is a tensor message.
pub(super) fn read<'f, F: AsRef<[u8]>>(
    frames: &'f [F],
    role: Role,
    options: &Options,
) -> Result<Option<Control<'f>>, ProtocolError> {
    match classify(frames) {
        MessageKind::Control { payload } => {
            let message = Control::decode_with(payload, options);
            message.map(Some).map_err(ProtocolError::Invalid)
        }
        MessageKind::Tensors => Ok(None),
        MessageKind::Other => Err(ProtocolError::NotOfRole { role }),
    }
}

/// Tells whether frames are work: for a first role, all that is no control message.
pub(super) fn is_work<F: AsRef<[u8]>>(frames: &[F], role: Role) -> bool {
    role.is_first() && !matches!(classify(frames), MessageKind::Control { .. })
}

pub(super) const ABORTED: &str = "aborted by the head node";
