//! Time passes, and what cannot wait for longer happens; workers die.

use std::time::Duration;

use super::network::Wire;
use super::node::Node;
use super::{Cluster, FILL_TIMEOUT, PUSH_TIMEOUT, READ_TIMEOUT, REQUEST_TIMEOUT};

impl Cluster<'_> {
    pub fn restart(&mut self, node: usize) {
        self.tally.restarts += 1;
        for wire in [Wire::Work, Wire::Results, Wire::Pushes] {
            if self.choices.chance(128) {
                self.network.forget(node, wire);
            }
        }
        let dead = &self.nodes[node];
        let (role, index) = (dead.role, dead.index);
        let mut next = Node::new(role, node, index, dead.life + 1, &self.config);
        self.note(|cluster| format!("{} dies", cluster.nodes[node].session));
        if self.choices.chance(128) {
            self.tally.absences += 1;
            next.dead = true;
            let seconds = [1, 10, 50, 200, 0][self.choices.below(5) as usize];
            // Or it never comes back.
            next.back = (seconds > 0).then(|| self.now + Duration::from_secs(seconds));
        }
        self.nodes[node] = next;
        if self.choices.chance(128) {
            let news = self.head.handle_lost(role, index, self.now);
            self.note(|_| format!("head is told that {role} {index} is gone: {news}"));
            self.tally.losses += u64::from(news);
            assert!(!self.head.handle_lost(role, index, self.now));
            self.flush_head();
        }
        if !self.nodes[node].dead {
            self.start(node);
        }
    }

    /// The next life of a worker begins.
    fn start(&mut self, node: usize) {
        self.note(|cluster| format!("{} starts", cluster.nodes[node].session));
        self.nodes[node].dead = false;
        self.nodes[node].back = None;
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
            [node.due(), reads, flights, node.back]
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
            if self.nodes[node].back.is_some_and(|back| back <= now) {
                self.start(node);
            }
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
    pub fn due(&self) -> Option<Duration> {
        let due = self.machine.poll_timeout().filter(|_| !self.dead)?;
        Some(due.max(self.asked + Duration::from_millis(500)))
    }
}
