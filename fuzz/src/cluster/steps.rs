//! What can happen next.

use std::time::Duration;

use tensorwire::json::Value;
use tensorwire::message::{Message, Scalar, Storage, encode_to_vec};
use tensorwire::tensor::TensorView;
use tensorwire::transfer::pool::WindowError;
use tensorwire::transfer::worker::{Event, Input, Job, Outgoing, Output, Received};
use tensorwire::transfer::{Control, RequestId, Role};

use super::network::Wire;
use super::node::{Flight, Node, Stage, Task, pattern, request_of, work};
use super::{Cluster, FILL_TIMEOUT, PUSH_TIMEOUT, READ_TIMEOUT, REQUEST_TIMEOUT};

impl Cluster<'_> {
    pub fn step(&mut self) {
        self.tally.steps += 1;
        if self.config.restarts > 0 && self.choices.below(1024) < self.config.restarts {
            let node = self.choices.below(self.nodes.len() as u32) as usize;
            self.restart(node);
            return;
        }
        match self.choices.below(16) {
            0 | 1 => self.submit(),
            2 if self.choices.chance(self.config.cancels) => self.cancel(),
            2 | 3 => {
                let milliseconds = [1, 50, 500, 4_000][self.choices.below(4) as usize];
                self.pass(Duration::from_millis(milliseconds));
            }
            4..=6 => self.any_task(),
            7..=9 => self.any_flight(),
            _ => self.any_message(),
        }
    }

    fn any_message(&mut self) {
        let echoes = self.network.echoes();
        if echoes > 0 && self.choices.chance(64) {
            self.network
                .echo(self.choices.below(echoes as u32) as usize);
            return;
        }
        let busy = self.network.busy().count() as u32;
        if busy > 0 {
            let chosen = self.choices.below(busy) as usize;
            let index = self.network.busy().nth(chosen).unwrap();
            self.deliver(index);
        }
    }

    fn any_task(&mut self) {
        let count = |node: &Node| node.tasks.len() + node.kept.len();
        let total: usize = self.nodes.iter().map(count).sum();
        if total == 0 {
            return;
        }
        let mut chosen = self.choices.below(total as u32) as usize;
        for node in 0..self.nodes.len() {
            let here = count(&self.nodes[node]);
            if chosen < here {
                let tasks = self.nodes[node].tasks.len();
                if chosen < tasks {
                    self.do_task(node, chosen, false);
                } else {
                    self.give_back(node, chosen - tasks);
                }
                return;
            }
            chosen -= here;
        }
    }

    fn any_flight(&mut self) {
        let total: usize = self.nodes.iter().map(|node| node.flights.len()).sum();
        if total == 0 {
            return;
        }
        let mut chosen = self.choices.below(total as u32) as usize;
        for node in 0..self.nodes.len() {
            let here = self.nodes[node].flights.len();
            if chosen < here {
                self.fly(node, chosen);
                return;
            }
            chosen -= here;
        }
    }

    // ---- messages ----

    fn deliver(&mut self, index: usize) {
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
        for node in &self.nodes {
            for flight in &node.flights {
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

    // ---- local workers ----

    fn ready(&mut self, node: usize, received: Received, is_copy: bool) {
        let scalars = received.scalars();
        assert!(scalars.get("_prealloc_slot_id").is_none());
        let token = scalars.field("token").unwrap().as_u64().unwrap() as u32;
        let image = scalars.get("image_path");
        let has_image = image.is_some_and(|image| image.raw() != "\"\"");
        let task = Task {
            job: received.job().clone(),
            since: self.now,
            token,
            has_image,
            received: Some(received),
            is_copy,
        };
        self.nodes[node].check_read(&task);
        self.nodes[node].tasks.push(task);
    }

    /// A job is over: its worker drops what it has, at once or later.
    fn let_go(&mut self, node: usize, job: &Job) {
        let tasks = &mut self.nodes[node].tasks;
        let Some(at) = tasks.iter().position(|task| task.job == *job) else {
            return;
        };
        let task = tasks.swap_remove(at);
        if let Some(received) = task.received
            && self.choices.chance(128)
        {
            self.nodes[node].kept.push((received, task.since));
        }
    }

    fn give_back(&mut self, node: usize, at: usize) {
        let (received, _) = self.nodes[node].kept.swap_remove(at);
        self.note(|_| format!("{} gives back its slot", received.job()));
        drop(received);
        self.flush(node);
    }

    /// The local worker takes a job one step further; to its end if it has to.
    fn do_task(&mut self, node: usize, at: usize, to_its_end: bool) {
        self.nodes[node].check_read(&self.nodes[node].tasks[at]);
        let role = self.nodes[node].role;
        let has_slot = self.nodes[node].tasks[at].received.is_some();
        if has_slot && (role.is_last() || to_its_end || self.choices.chance(160)) {
            let received = self.nodes[node].tasks[at].received.take();
            self.note(|cluster| format!("{} has read", cluster.nodes[node].tasks[at].job));
            drop(received);
            self.flush(node);
            if !to_its_end {
                return;
            }
        }
        // Giving back may have ended it.
        let Some(task) = self.nodes[node].tasks.get(at) else {
            return;
        };
        let job = task.job.clone();
        if self.config.bad_jobs > 0 && self.choices.chance(self.config.bad_jobs) {
            self.fail(node, &job, "it went wrong");
        } else if role.is_last() {
            self.finish(node, at);
        } else {
            self.stage(node, at, to_its_end);
        }
        self.flush(node);
    }

    fn fail(&mut self, node: usize, job: &Job, text: &str) {
        let failed = self.nodes[node].machine.fail(job, text, self.now);
        self.note(|_| format!("{job} fails: {failed:?}"));
        self.let_go(node, job);
    }

    fn finish(&mut self, node: usize, at: usize) {
        let task = self.nodes[node].tasks.swap_remove(at);
        let finished = self.nodes[node].machine.finish(&task.job, self.now);
        self.note(|_| format!("{} finishes: {finished:?}", task.job));
        if finished.is_err() {
            return;
        }
        let result = work(Role::Decoder, task.token).to_le_bytes();
        let output = TensorView::from_slice("output", &[4], &result[..]).unwrap();
        let scalars = [("request_id", Scalar::from(task.job.request().text()))];
        let metadata = encode_to_vec([output.descriptor()], &scalars).unwrap();
        let frames = vec![metadata, result.to_vec()];
        // What the machine has to say goes before.
        self.flush(node);
        let (config, now) = (&self.config, self.now);
        let from = (node, Wire::Results);
        self.network.send(from, frames, now, config, self.choices);
    }

    fn stage(&mut self, node: usize, at: usize, to_its_end: bool) {
        let here = &mut self.nodes[node];
        let task = &here.tasks[at];
        let job = task.job.clone();
        let role = here.role;
        let used = [0, 1, 60, 64, 65, 100, 200, 256][self.choices.below(8) as usize];
        let token = work(role, task.token);
        let output = if used == 0 {
            Output::empty()
        } else {
            let Ok(slot) = here.pool.allocate(used) else {
                self.tally.pools_full += 1;
                if to_its_end || self.choices.chance(64) {
                    self.fail(node, &job, "no room");
                }
                return;
            };
            let start = slot.offset();
            here.memory[start..start + used].copy_from_slice(&pattern(token, used));
            let manifest = format!(r#"{{"x":[{{"offset":0,"shape":[{used}],"dtype":"uint8"}}]}}"#);
            let manifest = Value::parse(manifest.as_bytes()).unwrap();
            Output::new(slot, used, manifest.as_object().unwrap()).unwrap()
        };
        let image = if task.has_image { "image.png" } else { "" };
        let scalars = [
            ("token", Scalar::from(token)),
            ("image_path", Scalar::from(image)),
        ];
        let staged = here.machine.stage(&job, output, &scalars, self.now);
        let staged = staged.map_err(|(_, error)| error);
        let task = here.tasks.swap_remove(at);
        self.note(|_| format!("{job} stages {used} bytes: {staged:?}"));
        if let Some(received) = task.received {
            self.nodes[node].kept.push((received, task.since));
        }
    }

    // ---- pushes ----

    /// Takes a push one step further.
    fn fly(&mut self, node: usize, at: usize) {
        let mut flight = self.nodes[node].flights.swap_remove(at);
        let bad = self.config.bad_pushes > 0 && self.choices.chance(self.config.bad_pushes);
        let result = if bad {
            self.tally.bad_pushes += 1;
            Some(Err("the wire is cut".to_string()))
        } else {
            self.fly_on(&mut flight)
        };
        let request = request_of(&flight).clone();
        self.note(|_| format!("push of {request} {:?}: {result:?}", flight.stage));
        let Some(result) = result else {
            self.nodes[node].flights.push(flight);
            return;
        };
        // The write is over before anybody hears of it.
        flight.stage = Stage::Begun;
        let (order, now) = (flight.order, self.now);
        let machine = &mut self.nodes[node].machine;
        machine.handle_pushed(&order.job, order.slot, result, now);
        self.flush(node);
    }

    /// `None` while it goes on.
    fn fly_on(&mut self, flight: &mut Flight) -> Option<Result<u64, String>> {
        let (session, address) = (&*flight.order.session_id, flight.order.address);
        let mut nodes = self.nodes.iter_mut();
        let Some(target) = nodes.find(|node| node.session == *session) else {
            return Some(Err("the peer is gone".to_string()));
        };
        let len = flight.bytes.len();
        let Some(offset) = target.offset_of(address, len) else {
            return Some(Err("outside of the pool".to_string()));
        };
        let owner = self.assigned.get(&(session.to_string(), address));
        let writer = request_of(flight);
        assert_eq!(owner, Some(writer), "{writer} writes to what is another's");
        let half = len / 2;
        match std::mem::replace(&mut flight.stage, Stage::Begun) {
            Stage::Begun => match target.table.begin_write(offset, len) {
                Ok(writing) => {
                    target.memory[offset..offset + half].copy_from_slice(&flight.bytes[..half]);
                    flight.stage = Stage::Half(writing);
                    None
                }
                Err(error) => {
                    let busy = matches!(error, WindowError::Busy { .. });
                    assert!(!busy, "two write to one place");
                    Some(Err(error.to_string()))
                }
            },
            Stage::Half(writing) => {
                target.memory[offset + half..offset + len].copy_from_slice(&flight.bytes[half..]);
                flight.stage = Stage::Whole(writing);
                None
            }
            Stage::Whole(writing) => {
                drop(writing);
                Some(Ok(len as u64))
            }
        }
    }

    // ---- time and accidents ----

    fn restart(&mut self, node: usize) {
        self.tally.restarts += 1;
        for wire in [Wire::Work, Wire::Results, Wire::Pushes] {
            if self.choices.chance(128) {
                self.network.forget(node, wire);
            }
        }
        let dead = &self.nodes[node];
        let next = Node::new(dead.role, node, dead.index, dead.life + 1, &self.config);
        self.note(|_| format!("{} starts", next.session));
        self.nodes[node] = next;
        self.flush(node);
    }

    /// Lets time pass, and everything happen that cannot wait for longer.
    pub fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            let at = self.next_event().filter(|&at| at < until);
            self.now = self.now.max(at.unwrap_or(until));
            self.happen();
            if at.is_none() {
                return;
            }
        }
    }

    /// When something has to happen next.
    fn next_event(&self) -> Option<Duration> {
        let head = self.head.poll_timeout();
        let wires = self.network.next_due().map(|(due, _)| due);
        let echoes = self.network.next_echo().map(|(due, _)| due);
        let nodes = self.nodes.iter().flat_map(|node| {
            let reads = node.tasks.iter().map(|task| task.since);
            let reads = reads.chain(node.kept.iter().map(|(_, since)| *since));
            let reads = reads.min().map(|since| since + READ_TIMEOUT);
            let flights = node.flights.iter().map(|flight| flight.since);
            let flights = flights.min().map(|since| since + PUSH_TIMEOUT);
            [node.due(), reads, flights]
        });
        [head, wires, echoes]
            .into_iter()
            .chain(nodes)
            .flatten()
            .min()
    }

    /// All that has to happen by now.
    fn happen(&mut self) {
        let now = self.now;
        while let Some((_, at)) = self.network.next_echo().filter(|(due, _)| *due <= now) {
            self.network.echo(at);
        }
        while let Some((_, index)) = self.network.next_due().filter(|(due, _)| *due <= now) {
            self.deliver(index);
        }
        for node in 0..self.nodes.len() {
            let late = |since: Duration, timeout: Duration| since + timeout <= now;
            while let Some(at) = {
                let mut flights = self.nodes[node].flights.iter();
                flights.position(|flight| late(flight.since, PUSH_TIMEOUT))
            } {
                self.fly(node, at);
            }
            while let Some(at) = {
                let mut tasks = self.nodes[node].tasks.iter();
                tasks.position(|task| late(task.since, READ_TIMEOUT))
            } {
                self.do_task(node, at, true);
            }
            while let Some(at) = {
                let mut kept = self.nodes[node].kept.iter();
                kept.position(|(_, since)| late(*since, READ_TIMEOUT))
            } {
                self.give_back(node, at);
            }
            if self.nodes[node].due().is_some_and(|due| due <= now) {
                self.nodes[node].asked = now;
                self.nodes[node].machine.handle_timeout(now);
                self.flush(node);
            }
        }
        if self.head.poll_timeout().is_some_and(|due| due <= now) {
            self.head.handle_timeout(now);
            self.flush_head();
        }
    }

    /// Nothing goes wrong any more, and time passes until nothing is left.
    pub fn wind_down(&mut self) {
        self.config.loss = 0;
        self.config.copies = 0;
        self.config.bad_pushes = 0;
        self.config.bad_jobs = 0;
        self.note(|_| "winding down".to_string());
        // The longest that anybody waits for anything, and again for what that sets off.
        let last = self.now + 2 * (REQUEST_TIMEOUT + FILL_TIMEOUT);
        self.settle();
        while let Some(at) = self.next_event() {
            assert!(at <= last, "at {at:?} something still goes on");
            self.pass(at.saturating_sub(self.now));
            self.settle();
        }
    }

    /// Does all there is to do without that time passes.
    fn settle(&mut self) {
        let mut idle = false;
        while !idle {
            idle = true;
            while let Some(index) = self.network.first_busy() {
                idle = false;
                self.deliver(index);
            }
            for node in 0..self.nodes.len() {
                while !self.nodes[node].flights.is_empty() {
                    idle = false;
                    self.fly(node, 0);
                }
                while !self.nodes[node].kept.is_empty() {
                    idle = false;
                    self.give_back(node, 0);
                }
                if !self.nodes[node].tasks.is_empty() {
                    idle = false;
                    self.do_task(node, 0, true);
                }
            }
        }
    }
}

impl Node {
    /// When its machine is to be asked what has waited too long; not too often, as
    /// it wants to be asked again and again while it waits for room.
    fn due(&self) -> Option<Duration> {
        let due = self.machine.poll_timeout()?;
        Some(due.max(self.asked + Duration::from_millis(500)))
    }

    /// What is read is what was written.
    fn check_read(&self, task: &Task) {
        let Some(received) = task.received.as_ref().filter(|_| !task.is_copy) else {
            return;
        };
        let Some(tensors) = received.manifest().get("x") else {
            return;
        };
        let tensor = tensors.as_array().unwrap().get(0).unwrap();
        let shape = tensor.as_object().unwrap().field("shape").unwrap();
        let len = shape.as_array().unwrap().get(0).unwrap().as_u64().unwrap() as usize;
        let start = received.slot().offset();
        let found = &self.memory[start..start + len];
        let expected = pattern(task.token, len);
        assert!(found == expected, "{} reads what is not its own", task.job);
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
