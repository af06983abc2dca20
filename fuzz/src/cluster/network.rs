//! The wires: in order on each, in any order between them; slow, forgetful, and given to repeating themselves.

use std::collections::VecDeque;
use std::time::Duration;

use super::choices::Choices;
use super::{Config, MESSAGE_TIMEOUT};

/// A message on its way.
#[derive(Clone, Debug)]
pub struct Packet {
    pub frames: Vec<Vec<u8>>,
    /// Not later than this it arrives.
    pub due: Duration,
    pub is_copy: bool,
}

/// One direction between the head node and a worker.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Wire {
    /// From the head node.
    Work,
    /// To it: what the worker's main thread sends.
    Results,
    /// To it: what its pushing thread sends.
    Pushes,
}

pub const WIRES: [Wire; 3] = [Wire::Work, Wire::Results, Wire::Pushes];

/// Three wires for each worker.
#[derive(Debug)]
pub struct Network {
    wires: Vec<VecDeque<Packet>>,
    /// Copies that go onto a wire later on.
    echoes: Vec<(usize, Packet)>,
    pub lost: u64,
    pub copied: u64,
}

impl Network {
    pub fn new(nodes: usize) -> Self {
        Self {
            wires: vec![VecDeque::new(); nodes * WIRES.len()],
            echoes: Vec::new(),
            lost: 0,
            copied: 0,
        }
    }

    pub fn send(
        &mut self,
        (node, wire): (usize, Wire),
        frames: Vec<Vec<u8>>,
        now: Duration,
        config: &Config,
        choices: &mut dyn Choices,
    ) {
        let index = node * WIRES.len() + wire as usize;
        if config.loss > 0 && choices.chance(config.loss) {
            self.lost += 1;
            return;
        }
        let packet = Packet {
            frames,
            due: now + MESSAGE_TIMEOUT,
            is_copy: false,
        };
        if config.copies > 0
            && config.copies_begin == (wire == Wire::Work && begins(&packet.frames))
            && choices.chance(config.copies)
        {
            self.copied += 1;
            let mut copy = packet.clone();
            copy.is_copy = true;
            if choices.chance(128) {
                self.wires[index].push_back(packet);
                self.wires[index].push_back(copy);
                return;
            }
            self.echoes.push((index, copy));
        }
        self.wires[index].push_back(packet);
    }

    /// Puts a copy that was held back onto its wire.
    pub fn echo(&mut self, at: usize) {
        let (index, mut packet) = self.echoes.swap_remove(at);
        packet.due += MESSAGE_TIMEOUT;
        self.wires[index].push_back(packet);
    }

    pub fn echoes(&self) -> usize {
        self.echoes.len()
    }

    /// Wires with something on them.
    pub fn busy(&self) -> impl Iterator<Item = usize> {
        let wires = self.wires.iter().enumerate();
        wires
            .filter(|(_, wire)| !wire.is_empty())
            .map(|(index, _)| index)
    }

    pub fn first_busy(&self) -> Option<usize> {
        self.busy().next()
    }

    pub fn take(&mut self, index: usize) -> Option<(usize, Wire, Packet)> {
        let packet = self.wires[index].pop_front()?;
        Some((index / WIRES.len(), WIRES[index % WIRES.len()], packet))
    }

    /// When the next message has to have arrived, and on which wire it is.
    pub fn next_due(&self) -> Option<(Duration, usize)> {
        let firsts = self.wires.iter().enumerate();
        let due = firsts.filter_map(|(index, wire)| Some((wire.front()?.due, index)));
        due.min()
    }

    /// When the next copy goes onto its wire at the latest, and which it is.
    pub fn next_echo(&self) -> Option<(Duration, usize)> {
        let echoes = self.echoes.iter().enumerate();
        echoes.map(|(at, (_, packet))| (packet.due, at)).min()
    }

    /// What is on the wires of a worker that dies.
    pub fn forget(&mut self, node: usize, wire: Wire) {
        self.wires[node * WIRES.len() + wire as usize].clear();
    }
}

/// Whether a request begins with it at a worker: its work, or READY.
fn begins(frames: &[Vec<u8>]) -> bool {
    let is_control = frames[0] == b"__transfer__";
    !is_control || frames[1].starts_with(br#"{"msg_type":"transfer_ready"#)
}
