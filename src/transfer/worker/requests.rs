//! The requests of one machine: those under way with their deadlines, and the last ones that ended.

use alloc::collections::{BTreeMap, VecDeque};
use core::time::Duration;

use super::error::ProtocolError;
use super::job::Job;
use crate::json::Str;
use crate::transfer::RequestId;
use crate::transfer::request::Key;

/// Requests by id, each in a state `S`; `E` says how one ended.
///
/// Everything costs a logarithm. At most `limit` are under way, and as many ends are remembered.
#[derive(Debug)]
pub(super) struct Requests<S, E> {
    entries: BTreeMap<RequestId, Entry<S>>,
    deadlines: BTreeMap<(Duration, u64), RequestId>,
    ends: BTreeMap<RequestId, (u64, E)>,
    /// The ends in their order, those among them that were overtaken by another life of the request.
    order: VecDeque<(RequestId, u64)>,
    next: u64,
    limit: usize,
}

#[derive(Debug)]
struct Entry<S> {
    serial: u64,
    deadline: Option<Duration>,
    state: S,
}

impl<S, E> Requests<S, E> {
    pub(super) const fn new(limit: usize) -> Self {
        Self {
            entries: BTreeMap::new(),
            deadlines: BTreeMap::new(),
            ends: BTreeMap::new(),
            order: VecDeque::new(),
            next: 0,
            limit,
        }
    }

    /// Says whether another request could begin.
    pub(super) fn admit(&self, id: Str<'_>) -> Result<(), ProtocolError> {
        check_len(id, RequestId::MAX_LEN)?;
        if self.entries.len() >= self.limit {
            return Err(ProtocolError::Full { limit: self.limit });
        }
        Ok(())
    }

    /// Begins a life of a request, and forgets how the last one ended.
    pub(super) fn begin(&mut self, id: RequestId, state: S, deadline: Option<Duration>) -> Job {
        let serial = self.next;
        self.next = self.next.wrapping_add(1);
        let job = Job::new(id, serial);
        self.resume(&job, state, deadline);
        job
    }

    /// As [`begin`](Self::begin), of a life that has a job already; what the request had is dropped.
    pub(super) fn resume(&mut self, job: &Job, state: S, deadline: Option<Duration>) {
        let id = job.request();
        self.ends.remove(id);
        self.remove(id);
        if let Some(deadline) = deadline {
            self.deadlines.insert((deadline, job.serial()), id.clone());
        }
        let entry = Entry {
            serial: job.serial(),
            deadline,
            state,
        };
        self.entries.insert(id.clone(), entry);
    }

    /// Takes a request out, without a trace.
    pub(super) fn remove(&mut self, id: &dyn Key) -> Option<(Job, S)> {
        let (id, entry) = self.entries.remove_entry(id)?;
        if let Some(deadline) = entry.deadline {
            self.deadlines.remove(&(deadline, entry.serial));
        }
        Some((Job::new(id, entry.serial), entry.state))
    }

    /// Remembers how a request ended that was taken out.
    pub(super) fn end(&mut self, job: &Job, end: E) {
        let (id, serial) = (job.request(), self.next);
        self.next = self.next.wrapping_add(1);
        self.ends.insert(id.clone(), (serial, end));
        self.order.push_back((id.clone(), serial));
        while self.order.len() > self.limit {
            if let Some((id, serial)) = self.order.pop_front()
                && self.ends.get(&id).is_some_and(|(last, _)| *last == serial)
            {
                self.ends.remove(&id);
            }
        }
    }

    pub(super) fn get(&self, id: &dyn Key) -> Option<&S> {
        self.entries.get(id).map(|entry| &entry.state)
    }

    /// The state of this life of the request, none of another.
    pub(super) fn of(&self, job: &Job) -> Option<&S> {
        let entry = self.entries.get(job.request())?;
        (entry.serial == job.serial()).then_some(&entry.state)
    }

    pub(super) fn of_mut(&mut self, job: &Job) -> Option<&mut S> {
        let entry = self.entries.get_mut(job.request())?;
        (entry.serial == job.serial()).then_some(&mut entry.state)
    }

    pub(super) fn job(&self, id: &dyn Key) -> Option<Job> {
        let (id, entry) = self.entries.get_key_value(id)?;
        Some(Job::new(id.clone(), entry.serial))
    }

    pub(super) fn ended(&self, id: &dyn Key) -> Option<&E> {
        self.ends.get(id).map(|(_, end)| end)
    }

    /// A request whose deadline is not after `now`, the earliest first.
    pub(super) fn due(&self, now: Duration) -> Option<Job> {
        let (&(deadline, serial), id) = self.deadlines.first_key_value()?;
        (deadline <= now).then(|| Job::new(id.clone(), serial))
    }

    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.deadlines.first_key_value().map(|(key, _)| key.0)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) const fn limit(&self) -> usize {
        self.limit
    }
}

/// Refuses a name that would be kept.
pub(super) fn check_len(name: Str<'_>, limit: usize) -> Result<(), ProtocolError> {
    let len = name.raw().len();
    if len > limit {
        return Err(ProtocolError::TextTooLong { len, limit });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn id(text: &str) -> RequestId {
        RequestId::from(text)
    }

    #[test]
    fn deadlines_come_in_order_and_go_with_their_request() {
        let mut requests = Requests::<u8, ()>::new(4);
        let late = requests.begin(id("late"), 1, Some(3 * SECOND));
        let early = requests.begin(id("early"), 2, Some(SECOND));
        requests.begin(id("never"), 3, None);
        assert_eq!(requests.next_deadline(), Some(SECOND));
        assert_eq!(requests.due(SECOND / 2), None);
        assert_eq!(requests.due(SECOND), Some(early.clone()));
        let (job, state) = requests.remove(early.request()).unwrap();
        assert_eq!((job, state), (early.clone(), 2));
        assert_eq!(requests.next_deadline(), Some(3 * SECOND));
        requests.resume(&late, 4, None);
        assert_eq!((requests.next_deadline(), requests.len()), (None, 2));
        assert_eq!((requests.of(&late), requests.of(&early)), (Some(&4), None));
    }

    #[test]
    fn a_later_life_is_another_job() {
        let mut requests = Requests::<u8, u8>::new(4);
        let first = requests.begin(id("r"), 1, None);
        let (job, _) = requests.remove(&id("r")).unwrap();
        requests.end(&job, 7);
        assert_eq!(requests.ended(&id("r")), Some(&7));
        let second = requests.begin(id("r"), 2, None);
        assert_ne!(first, second);
        assert_eq!(requests.ended(&id("r")), None);
        assert_eq!(
            (requests.of(&first), requests.of(&second)),
            (None, Some(&2))
        );
    }

    #[test]
    fn as_many_ends_are_remembered_as_requests_are_taken() {
        let mut requests = Requests::<(), usize>::new(2);
        for (index, name) in ["a", "b", "a", "c", "d"].into_iter().enumerate() {
            let job = requests.begin(id(name), (), None);
            requests.remove(&id(name));
            requests.end(&job, index);
        }
        let ends = ["a", "b", "c", "d"].map(|name| requests.ended(&id(name)).copied());
        assert_eq!(ends, [None, None, Some(3), Some(4)]);
        assert_eq!((requests.ends.len(), requests.order.len()), (2, 2));
    }

    #[test]
    fn the_limit_and_long_names_are_refused() {
        let mut requests = Requests::<(), ()>::new(1);
        let long = "x".repeat(RequestId::MAX_LEN + 1);
        let too_long = ProtocolError::TextTooLong {
            len: 1025,
            limit: 1024,
        };
        assert_eq!(requests.admit(long[..].into()), Err(too_long));
        assert_eq!(requests.admit(long[1..].into()), Ok(()));
        requests.begin(id("r"), (), None);
        let full = ProtocolError::Full { limit: 1 };
        assert_eq!(requests.admit("s".into()), Err(full));
    }
}
