//! Answers, the slots that they wait for, and the room that those leave.

use alloc::string::String;
use alloc::sync::Arc;
use core::mem;
use core::time::Duration;

use super::{Answer, Held, Receiver, Released, State};
use crate::json::Str;
use crate::transfer::worker::error::CallError;
use crate::transfer::worker::half::{ABORTED, End};
use crate::transfer::worker::job::{Ending, Job};
use crate::transfer::worker::outbox::Form;
use crate::transfer::worker::output::Output;
use crate::transfer::worker::text::Text;

impl Receiver {
    pub(in crate::transfer::worker) fn handle_abort(&mut self, id: Str<'_>) {
        let Some(job) = self.half.requests.job(&id) else {
            return;
        };
        match self.half.requests.get(&id) {
            Some(State::Waiting { .. }) => self.fail_waiting(&job, ABORTED),
            Some(State::Allocated { .. }) => {
                self.half.requests.remove(&id);
                self.half.requests.end(&job, End::Unasked);
            }
            Some(State::Working { .. } | State::Closing { .. }) => {
                self.withdraw(&job, Ending::Aborted, ABORTED);
            }
            None => {}
        }
    }

    fn fail_waiting(&mut self, job: &Job, text: &'static str) {
        self.waiting.remove(&job.serial());
        // A decoder's place at the sender is free only when the head node gets this form.
        self.half.fail(job, text, Form::Done);
    }

    /// Ends a job that the local worker has, and tells it so.
    fn withdraw(&mut self, job: &Job, ending: Ending, text: &'static str) {
        let has_failed = matches!(
            self.half.requests.of(job),
            Some(State::Closing {
                answer: Answer::Failed(_),
                ..
            })
        );
        if has_failed {
            return;
        }
        self.answer(job, Answer::Failed(text.into()));
        self.half.over(job.clone(), ending);
    }

    /// Answers a job that the local worker has, as soon as no slot of the head node's depends on it.
    fn answer(&mut self, job: &Job, answer: Answer) {
        let Some((job, state)) = self.half.requests.remove(job.request()) else {
            return;
        };
        match state {
            State::Working {
                held: Some(held @ Held::Preallocated { .. }),
            }
            | State::Closing { held, .. } => {
                let state = State::Closing { held, answer };
                self.half.requests.resume(&job, state, None);
            }
            _ => self.finish_with(job, answer),
        }
    }

    /// Answers a job that was taken out.
    fn finish_with(&mut self, job: Job, answer: Answer) {
        self.half.requests.end(&job, End::Answered);
        match answer {
            Answer::Failed(text) => {
                let form = self.half.form();
                self.half.outbox.failed(job.request().clone(), text, form);
            }
            Answer::Staged(output, scalars) => self.released.push_back(Released {
                job,
                output,
                scalars,
            }),
        }
    }

    /// Ends what has waited for too long.
    pub fn handle_timeout(&mut self, now: Duration) {
        self.advance(now);
        while let Some(job) = self.half.requests.due(self.half.now) {
            match self.half.requests.of(&job) {
                Some(State::Waiting { .. }) => {
                    self.fail_waiting(&job, "no room in the pool in time");
                }
                Some(State::Allocated { .. }) => {
                    self.half
                        .fail(&job, "the slot was not filled in time", Form::Done);
                }
                _ => self.withdraw(&job, Ending::Expired, "the worker took too long"),
            }
        }
        self.serve();
    }

    /// Ends a job whose output goes to the client: send it after this has returned `Ok`.
    ///
    /// # Errors
    ///
    /// - [`CallError::NotOfRole`] for all roles but the decoder, which [stage](crate::transfer::Instance::stage) theirs.
    /// - [`CallError::Over`].
    /// - [`CallError::NotGivenBack`] if the received slot is still held: the head
    ///   node would give it away as soon as it had the output.
    pub fn finish(&mut self, job: &Job, now: Duration) -> Result<(), CallError> {
        self.advance(now);
        let role = self.half.role;
        if !role.is_last() {
            return Err(CallError::NotOfRole { role });
        }
        match self.half.requests.of(job) {
            Some(State::Working { held: None }) => {
                self.half.requests.remove(job.request());
                self.half.requests.end(job, End::Answered);
                Ok(())
            }
            Some(State::Working { held: Some(_) }) => Err(CallError::NotGivenBack),
            _ => Err(CallError::Over),
        }
    }

    /// Ends a job with an error, which the client gets to read.
    ///
    /// If a preallocated slot is still held, it is told when that is given back.
    ///
    /// # Errors
    ///
    /// [`CallError::Over`].
    pub fn fail(&mut self, job: &Job, text: &str, now: Duration) -> Result<(), CallError> {
        self.advance(now);
        match self.half.requests.of(job) {
            Some(
                State::Working { .. }
                | State::Closing {
                    answer: Answer::Staged(..),
                    ..
                },
            ) => {}
            _ => return Err(CallError::Over),
        }
        self.answer(job, Answer::Failed(String::from(text).into()));
        Ok(())
    }

    /// Whether the local worker has this job, and has not answered it.
    pub(in crate::transfer::worker) fn is_working(&mut self, job: &Job, now: Duration) -> bool {
        self.advance(now);
        matches!(self.half.requests.of(job), Some(State::Working { .. }))
    }

    /// Whether an output of this job waits for the received slot.
    pub(in crate::transfer::worker) fn is_closing(&self, job: &Job) -> bool {
        let state = self.half.requests.of(job);
        let staged = |state: &State| match state {
            State::Closing { answer, .. } => matches!(answer, Answer::Staged(..)),
            _ => false,
        };
        state.is_some_and(staged)
    }

    /// Passes an output on to the sending half, by way of [`poll_released`](Self::poll_released).
    pub(in crate::transfer::worker) fn stage(&mut self, job: &Job, output: Output, scalars: Text) {
        self.answer(job, Answer::Staged(output, scalars));
    }

    pub(in crate::transfer::worker) fn poll_released(&mut self) -> Option<Released> {
        self.released.pop_front()
    }

    /// Takes back what is free by now, and gives it to those who wait.
    pub(super) fn settle(&mut self) {
        let mut returned = mem::take(&mut self.returned);
        self.returns.take(&mut returned);
        for job in returned.drain(..) {
            self.take_back(&job);
        }
        self.returned = returned;
        while let Some(request) = self.preallocated.poll_drained(self.half.now) {
            let form = self.half.form();
            let text = "somebody was still writing to the filled slot";
            self.half.outbox.failed(request, text, form);
        }
        self.serve();
    }

    /// The local worker has dropped what it received.
    fn take_back(&mut self, job: &Job) {
        let Some(state) = self.half.requests.of_mut(job) else {
            return;
        };
        match state {
            State::Working { held } => {
                let held = mem::take(held);
                self.reopen(held);
            }
            State::Closing { .. } => {
                let removed = self.half.requests.remove(job.request());
                if let Some((job, State::Closing { held, answer })) = removed {
                    // Before the head node hears that it may give it away.
                    self.reopen(Some(held));
                    self.finish_with(job, answer);
                }
            }
            _ => {}
        }
    }

    fn reopen(&mut self, held: Option<Held>) {
        if let Some(Held::Preallocated { index, slot }) = held {
            self.preallocated.reopen(index, Arc::into_inner(slot));
        }
    }

    /// Gives room to those who wait for it, in their order.
    pub(super) fn serve(&mut self) {
        while let Some(entry) = self.waiting.first_entry() {
            let id = entry.get();
            let Some(State::Waiting { len }) = self.half.requests.get(id) else {
                entry.remove();
                continue;
            };
            let Ok(slot) = self.half.site.pool().allocate(*len) else {
                return;
            };
            let id = entry.remove();
            let Some((job, _)) = self.half.requests.remove(&id) else {
                continue;
            };
            let landing = slot.open();
            self.half
                .outbox
                .allocated(id, landing.offset(), landing.len());
            let deadline = self.half.after(self.half.settings.fill_timeout());
            let state = State::Allocated { landing };
            self.half.requests.resume(&job, state, deadline);
        }
    }
}
