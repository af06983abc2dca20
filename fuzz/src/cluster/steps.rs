//! What can happen next.

use std::time::Duration;

use super::Cluster;
use super::node::Node;

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
}
