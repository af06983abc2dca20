//! What is to be sent, in order, written already.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::event::Outgoing;
use super::request::WorkerId;
use crate::transfer::message::{Abort, Control};
use crate::transfer::{RequestId, Role};

/// How many buffers wait to be used again: enough for the answers to one input.
const SPARE: usize = 16;

/// The messages to workers.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    queue: VecDeque<(WorkerId, Content)>,
    spare: Vec<Vec<u8>>,
    /// What [`poll`](Self::poll) lends.
    work: Option<Arc<Vec<u8>>>,
}

#[derive(Debug)]
enum Content {
    Control(Vec<u8>),
    Work(RequestId, Arc<Vec<u8>>),
}

impl Outbox {
    pub(super) fn put(&mut self, to: WorkerId, control: &Control<'_>) {
        let mut payload = self.buffer(control.encoded_len());
        // It has the length that was asked for.
        if control.encode_into(&mut payload).is_ok() {
            self.queue.push_back((to, Content::Control(payload)));
        }
    }

    pub(super) fn put_abort(&mut self, to: WorkerId, abort: &Abort<'_>) {
        let mut payload = self.buffer(abort.encoded_len());
        if abort.encode_into(&mut payload).is_ok() {
            self.queue.push_back((to, Content::Control(payload)));
        }
    }

    fn buffer(&mut self, len: usize) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.resize(len, 0);
        buffer
    }

    pub(super) fn put_work(&mut self, to: WorkerId, id: RequestId, work: Arc<Vec<u8>>) {
        self.queue.push_back((to, Content::Work(id, work)));
    }

    /// Drops what is for a worker that is gone.
    pub(super) fn forget(&mut self, worker: WorkerId) {
        self.queue.retain(|(to, _)| *to != worker);
    }

    pub(super) fn poll<'b>(
        &'b mut self,
        buffer: &'b mut Vec<u8>,
        role: impl Fn(usize) -> Role,
    ) -> Option<Outgoing<'b>> {
        // The work of the call before is sent by now.
        self.work = None;
        let (to, content) = self.queue.pop_front()?;
        let role = role(to.stage);
        match content {
            Content::Control(mut payload) => {
                core::mem::swap(buffer, &mut payload);
                if self.spare.len() < SPARE {
                    payload.clear();
                    self.spare.push(payload);
                }
                Some(Outgoing::control(role, to.worker, buffer))
            }
            Content::Work(id, work) => {
                buffer.clear();
                buffer.extend_from_slice(id.text().raw().as_bytes());
                let work = self.work.insert(work);
                Some(Outgoing::work(role, to.worker, buffer, work))
            }
        }
    }
}
