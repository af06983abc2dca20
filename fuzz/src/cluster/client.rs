//! The clients: what they asked for, and what came of it.

use std::time::Duration;

use tensorwire::transfer::RequestId;
use tensorwire::transfer::coordinator::{Event, FailureKind};

use super::node::result_of;
use super::{Cluster, REQUEST_TIMEOUT};

#[derive(Debug)]
pub struct Client {
    pub token: u32,
    pub has_image: bool,
    pub submitted: Duration,
    pub ended: Option<Duration>,
}

impl Cluster<'_> {
    /// A client asks for something.
    pub fn submit(&mut self) {
        let known = self
            .asks_again()
            .then(|| self.choices.below(self.clients.len() as u32));
        let id = known.unwrap_or(self.clients.len() as u32);
        let id = RequestId::from(format!("r{id}").as_str());
        if self
            .clients
            .get(&id)
            .is_some_and(|client| client.ended.is_none())
        {
            return;
        }
        let token = self.choices.below(0x1_0000) * 0x9e37 + 1;
        let has_image = self.choices.chance(128);
        let mut work = token.to_le_bytes().to_vec();
        work.push(u8::from(has_image));
        let accepted = self.head.handle_request(&id, work.clone(), self.now);
        self.note(|_| format!("client asks {id}: {accepted:?}"));
        if accepted.is_err() {
            return;
        }
        let again = self.head.handle_request(&id, work, self.now);
        assert!(again.is_err(), "{id} was taken twice");
        self.tally.requests += 1;
        self.tally.asked_again += u64::from(known.is_some());
        let client = Client {
            token,
            has_image,
            submitted: self.now,
            ended: None,
        };
        self.clients.insert(id, client);
        self.flush_head();
    }

    /// Whether a client takes the id of a request that is over.
    ///
    /// Only where every message comes, and once: nothing on the wire tells two requests of one
    /// id apart, so it is the head node that waits for the last word on the first.
    fn asks_again(&mut self) -> bool {
        self.config.is_whole && !self.clients.is_empty() && self.choices.chance(96)
    }

    /// A client that waits gives up, if there is one.
    pub fn cancel(&mut self) {
        let clients = self.clients.iter();
        let mut waiting = clients.filter(|(_, client)| client.ended.is_none());
        let Some((id, _)) = waiting.next() else {
            return;
        };
        let id = id.clone();
        self.note(|_| format!("client gives up {id}"));
        assert!(self.head.cancel(&id, self.now));
        self.flush_head();
    }

    /// The head node says something.
    pub fn told(&mut self, event: &Event) {
        self.note(|_| format!("head: {event:?}"));
        let request = match event {
            Event::Failed { request, failure } => {
                let is_echo = failure.text() == "aborted by the head node";
                assert!(
                    !is_echo || !self.config.is_whole,
                    "{request} ends as one before"
                );
                let count = match failure.kind() {
                    FailureKind::Cancelled => &mut self.tally.cancelled,
                    FailureKind::TimedOut { .. } => &mut self.tally.timed_out,
                    FailureKind::PushFailed { .. } => &mut self.tally.push_failed,
                    FailureKind::WorkerLost { .. } => &mut self.tally.worker_lost,
                    FailureKind::WorkerRestarted { .. } => &mut self.tally.worker_restarted,
                    _ => &mut self.tally.role_failed,
                };
                *count += 1;
                request
            }
            Event::Finished { request } => {
                self.tally.finished += 1;
                let client = &self.clients[request];
                let result = result_of(self.config.roles, client.token, client.has_image);
                let reply = self.reply.take();
                assert_eq!(reply, Some(result), "the client of {request} got another's");
                request
            }
            _ => return,
        };
        let client = self.clients.get_mut(request).unwrap();
        assert_eq!(client.ended, None, "{request} has ended twice");
        client.ended = Some(self.now);
        let took = self.now - client.submitted;
        assert!(took <= REQUEST_TIMEOUT, "{request} took {took:?}");
    }
}
