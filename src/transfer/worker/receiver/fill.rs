//! Slots that are asked for, and slots that are filled.

use alloc::string::ToString;
use alloc::sync::Arc;
use core::time::Duration;

use super::{Held, Receiver, State};
use crate::convert::to_u64;
use crate::json::Object;
use crate::transfer::message::{Alloc, Ready, SLOT_ID};
use crate::transfer::pool::Slot;
use crate::transfer::worker::error::{ProtocolError, Step};
use crate::transfer::worker::half::End;
use crate::transfer::worker::job::{Event, Job};
use crate::transfer::worker::outbox::Form;
use crate::transfer::worker::received::Received;
use crate::transfer::worker::text::Text;

impl Receiver {
    pub(super) fn handle_alloc(&mut self, alloc: &Alloc<'_>) -> Result<(), ProtocolError> {
        let id = alloc.request_id;
        let step = match self.half.requests.get(&id) {
            Some(State::Allocated { landing }) if to_u64(landing.len()) >= alloc.data_size => {
                // The same answer again: the first may be lost, unless it is not even sent.
                let (offset, len) = (landing.offset(), landing.len());
                if !self.half.outbox.is_full() {
                    self.half.outbox.allocated(id.into(), offset, len);
                }
                return Ok(());
            }
            Some(state) => Some(state.step()),
            None => None,
        };
        if let Some(step) = step {
            return Err(ProtocolError::Duplicate { step });
        }
        let needed = alloc.data_size;
        // What never fits would keep all from it that come after.
        let pool = self.preallocated.room();
        let fits = usize::try_from(needed).ok().filter(|&len| len <= pool);
        let too_small = ProtocolError::PoolTooSmall { needed, pool };
        let admitted = self.half.admit(id);
        let len = admitted.and_then(|()| fits.ok_or(too_small));
        // No tensors at all are put into the smallest slot.
        let len = len
            .map_err(|error| self.half.refuse(id, error, Form::Done))?
            .max(1);
        let deadline = self.half.after(self.half.settings.alloc_timeout());
        let job = self
            .half
            .requests
            .begin(id.into(), State::Waiting { len }, deadline);
        self.waiting.insert(job.serial(), job.request().clone());
        Ok(())
    }

    pub(super) fn handle_ready(&mut self, ready: &Ready<'_>) -> Result<(), ProtocolError> {
        match self.half.requests.get(&ready.request_id) {
            Some(State::Allocated { .. }) => self.fill_allocated(ready),
            Some(State::Waiting { .. }) => {
                let step = Step::Waiting;
                Err(ProtocolError::Unexpected { step })
            }
            Some(state) => {
                let step = state.step();
                Err(ProtocolError::Duplicate { step })
            }
            None => self.fill_preallocated(ready),
        }
    }

    /// The slow path: the request was asked for a slot, and has one.
    fn fill_allocated(&mut self, ready: &Ready<'_>) -> Result<(), ProtocolError> {
        let id = ready.request_id;
        let Some(State::Allocated { landing }) = self.half.requests.get(&id) else {
            return Ok(());
        };
        let (expected, len) = (landing.offset(), landing.len());
        let found = ready.slot_offset;
        if to_u64(expected) != found {
            return Err(ProtocolError::WrongOffset { expected, found });
        }
        let checked = self.check(ready.manifest, len);
        let Some((job, State::Allocated { landing })) = self.half.requests.remove(&id) else {
            return Ok(());
        };
        // A landing that is dropped is freed.
        let closed = checked.and_then(|()| {
            let busy = ProtocolError::Busy {
                slot_offset: expected,
            };
            landing.close().map_err(|_| busy)
        });
        match closed {
            Ok(slot) => {
                self.hand_out(&job, Held::Allocated, Arc::new(slot), ready);
                Ok(())
            }
            Err(error) => {
                let form = self.half.form();
                self.half.fail(&job, error.to_string(), form);
                Err(error)
            }
        }
    }

    /// The fast path: the head node has given a preallocated slot away.
    fn fill_preallocated(&mut self, ready: &Ready<'_>) -> Result<(), ProtocolError> {
        let id = ready.request_id;
        let form = self.half.form();
        let slot_id = match slot_id(ready) {
            Ok(None) => {
                let step = match self.half.requests.ended(&id) {
                    Some(End::Answered | End::Pushed(())) => {
                        let step = Step::Ended;
                        return Err(ProtocolError::Unexpected { step });
                    }
                    Some(End::Unasked) => Step::Ended,
                    None => Step::Unknown,
                };
                Err(ProtocolError::Unexpected { step })
            }
            Ok(Some(slot_id)) => Ok(slot_id),
            Err(error) => Err(error),
        };
        let place = slot_id.and_then(|slot_id| {
            self.half.admit(id)?;
            let (index, len) = self.preallocated.find(slot_id, ready.slot_offset)?;
            self.check(ready.manifest, len)?;
            Ok(index)
        });
        let index = place.map_err(|error| self.half.refuse(id, error, form))?;
        let deadline = self.half.after(DRAIN_TIMEOUT);
        let closed = self.preallocated.close(index, || id.into(), deadline);
        let Some(slot) = closed else {
            // The request is told of it when the slot is open again.
            let slot_offset = usize::try_from(ready.slot_offset).unwrap_or(usize::MAX);
            return Err(ProtocolError::Busy { slot_offset });
        };
        let slot = Arc::new(slot);
        let held = Held::Preallocated {
            index,
            slot: Arc::clone(&slot),
        };
        let state = State::Working { held: None };
        let job = self.half.requests.begin(id.into(), state, None);
        self.hand_out(&job, held, slot, ready);
        Ok(())
    }

    /// Gives a filled slot to the local worker.
    fn hand_out(&mut self, job: &Job, held: Held, slot: Arc<Slot>, ready: &Ready<'_>) {
        let held = Some(held);
        let deadline = self.half.after(self.half.settings.work_timeout());
        self.half
            .requests
            .resume(job, State::Working { held }, deadline);
        let manifest = Text::new(ready.manifest);
        let scalars = Text::without_slot_id(ready.scalar_fields);
        let received = Received::new(job.clone(), slot, manifest, scalars, &self.returns);
        self.half.events.push_back(Event::Ready(received));
    }

    /// Whether the tensors of `manifest` lie in a slot of this length.
    fn check(&mut self, manifest: Object<'_>, len: usize) -> Result<(), ProtocolError> {
        let checked = self.manifests.decode(manifest, len);
        checked.map(drop).map_err(ProtocolError::Manifest)
    }
}

/// The number of the preallocated slot; `None` on the slow path.
fn slot_id(ready: &Ready<'_>) -> Result<Option<u64>, ProtocolError> {
    if ready.preallocated_slot.is_some() {
        return Ok(ready.preallocated_slot);
    }
    match ready.scalar_fields.get(SLOT_ID) {
        Some(value) if !value.is_null() => {
            let id = value.as_u64().map_err(|_| ProtocolError::BadSlotId)?;
            Ok(Some(id))
        }
        _ => Ok(None),
    }
}

/// How long a slot is waited for whose writer is still there when it ought to be done.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);
