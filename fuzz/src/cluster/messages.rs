//! Messages: from a machine onto a wire, and from a wire to a machine.

use tensorwire::message::{Message, Storage};
use tensorwire::transfer::worker::{Ending, Event, Input, Outgoing};
use tensorwire::transfer::{Control, RequestId, Role};

use super::Cluster;
use super::network::Wire;
use super::node::{Flight, Stage, Task, request_of};

impl Cluster<'_> {
    pub fn deliver(&mut self, index: usize) {
        let Some((node, wire, packet)) = self.network.take(index) else {
            return;
        };
        let copy = if packet.is_copy { " (a copy)" } else { "" };
        self.note(|cluster| {
            let session = &cluster.nodes[node].session;
            let text = packet.frames.last().map(|frame| frame.escape_ascii());
            let text = text.map(|text| text.to_string()).unwrap_or_default();
            format!("{wire:?} of {session}{copy}: {text}")
        });
        if wire != Wire::Work {
            self.hear(node, &packet.frames);
            return;
        }
        if self.nodes[node].dead {
            return;
        }
        let now = self.now;
        let machine = &mut self.nodes[node].machine;
        match machine.handle_frames(&packet.frames, now) {
            Ok(Input::Work { job, payload }) => {
                let (token, image) = payload.split_at(4);
                let task = Task {
                    job,
                    since: now,
                    token: u32::from_le_bytes(token.try_into().unwrap()),
                    has_image: image[0] != 0,
                    received: None,
                    is_copy: packet.is_copy,
                };
                self.nodes[node].tasks.push(task);
            }
            Ok(_) => {}
            Err(error) => {
                self.tally.refused_by_workers += 1;
                self.note(|_| format!("    refused: {error}"));
            }
        }
        self.flush_with(node, packet.is_copy);
    }

    /// The head node gets a message.
    fn hear(&mut self, node: usize, frames: &[Vec<u8>]) {
        let role = self.nodes[node].role;
        self.reply = reply_of(role, frames);
        if let Err(error) = self.head.handle_frames(role, frames, self.now) {
            self.tally.refused_by_head += 1;
            self.note(|_| format!("    refused: {error}"));
        }
        self.flush_head();
        self.reply = None;
    }

    pub fn flush_head(&mut self) {
        loop {
            let mut buffer = std::mem::take(&mut self.buffer);
            let outgoing = self.head.poll_transmit(&mut buffer);
            let sent = outgoing.map(|outgoing| {
                let node = self.nodes.iter().position(|node| {
                    (node.role, node.index) == (outgoing.role(), outgoing.worker())
                });
                let frames = outgoing.frames().map(<[u8]>::to_vec).to_vec();
                (node.unwrap(), frames)
            });
            self.buffer = buffer;
            let Some((node, frames)) = sent else {
                break;
            };
            self.check_given_away(&frames);
            let (config, now) = (&self.config, self.now);
            let to = (node, Wire::Work);
            self.network.send(to, frames, now, config, self.choices);
        }
        while let Some(event) = self.head.poll_event() {
            self.told(&event);
        }
        let quarantined = self.config.roles.iter().map(|&role| {
            let statistics = self.head.role_statistics(role).unwrap();
            statistics.quarantined_slots as u64
        });
        self.tally.quarantined = self.tally.quarantined.max(quarantined.sum());
    }

    /// Whoever is told where to push has the place for himself.
    fn check_given_away(&mut self, frames: &[Vec<u8>]) {
        const PUSH: &[u8] = br#"{"msg_type":"transfer_push","#;
        if !frames[1].starts_with(PUSH) {
            return;
        }
        let Ok(Control::Push(push)) = Control::decode(&frames[1]) else {
            panic!("a push that does not decode");
        };
        let id = RequestId::from(push.request_id);
        let (address, session) = (push.dest_addr, push.dest_session_id.to_string());
        // A registration that comes late speaks of a pool that is gone: nothing is written there.
        let is_alive = self.nodes.iter().any(|node| node.session == session);
        for node in &self.nodes {
            for flight in node.flights.iter().filter(|_| is_alive) {
                let same = *flight.order.session_id == *session && flight.order.address == address;
                let writer = request_of(flight);
                assert!(
                    !same || *writer == id,
                    "{address:#x} goes to {id} while {writer} writes to it"
                );
            }
            if node.session == session {
                for (received, is_copy) in node.read_slots() {
                    let same = node.base + received.slot().offset() as u64 == address;
                    let reader = received.request();
                    assert!(
                        is_copy || !same || *reader == id,
                        "{address:#x} goes to {id} while {reader} reads it"
                    );
                }
            }
        }
        self.assigned.insert((session, address), id);
    }

    pub fn flush(&mut self, node: usize) {
        self.flush_with(node, false);
    }

    fn flush_with(&mut self, node: usize, is_copy: bool) {
        if self.nodes[node].dead {
            return;
        }
        loop {
            let mut idle = true;
            let mut buffer = std::mem::take(&mut self.buffer);
            while let Some(outgoing) = self.nodes[node].machine.poll_transmit(&mut buffer) {
                idle = false;
                let frames: Vec<_> = outgoing
                    .frames(&buffer)
                    .iter()
                    .map(|frame| frame.to_vec())
                    .collect();
                let pushed = outgoing == Outgoing::Control
                    && buffer.starts_with(br#"{"msg_type":"transfer_pushed"#);
                let wire = if pushed { Wire::Pushes } else { Wire::Results };
                let (config, now) = (&self.config, self.now);
                self.network
                    .send((node, wire), frames, now, config, self.choices);
            }
            self.buffer = buffer;
            while let Some(order) = self.nodes[node].machine.poll_push() {
                idle = false;
                let here = &mut self.nodes[node];
                let start = order.slot.offset();
                let bytes = here.memory[start..start + order.len].to_vec();
                let since = self.now;
                here.flights.push(Flight {
                    order,
                    since,
                    bytes,
                    stage: Stage::Begun,
                });
            }
            while let Some(event) = self.nodes[node].machine.poll_event() {
                idle = false;
                match event {
                    Event::Ready(received) => self.ready(node, received, is_copy),
                    Event::Over { job, ending } => {
                        self.note(|_| format!("    {job} is over: {ending:?}"));
                        let mut tasks = self.nodes[node].tasks.iter();
                        let is_staged = tasks.all(|task| task.job != job);
                        assert!(
                            ending != Ending::Expired || !is_staged || !self.is_reliable,
                            "nobody told that the output of {job} is not wanted"
                        );
                        self.let_go(node, &job);
                    }
                    other => panic!("{other:?}"),
                }
            }
            if idle {
                return;
            }
        }
    }
}

/// What the decoder's result says.
fn reply_of(role: Role, frames: &[Vec<u8>]) -> Option<u32> {
    if !role.is_last() || !frames[0].starts_with(b"{") {
        return None;
    }
    let mut storage = Storage::<4>::new();
    let message = Message::decode(frames, &mut storage).unwrap();
    let output = message.tensor("output")?;
    Some(u32::from_le_bytes(output.bytes().try_into().unwrap()))
}
