//! What is known of each block, and the lists that run through the blocks.

use core::iter;

use alloc::vec::Vec;

use super::PoolError;

/// No block: the end of a list.
pub(super) const NONE: usize = usize::MAX;

/// A list of blocks, by the index of their first smallest block.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    pub(super) head: usize,
    tail: usize,
    pub(super) len: usize,
}

impl List {
    pub(super) const EMPTY: Self = Self {
        head: NONE,
        tail: NONE,
        len: 0,
    };
}

/// What is known of a block, at the smallest block with which it starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) state: State,
    /// Its neighbours in the list that it is in: of its order, or the quarantine.
    prev: usize,
    pub(super) next: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum State {
    Allocated(u32),
    Free(u32),
    /// No block starts here.
    Inner,
    Quarantined(u32),
}

impl Node {
    const INNER: Self = Self {
        state: State::Inner,
        prev: NONE,
        next: NONE,
    };
}

/// The nodes, and the lists that run through them.
pub(super) struct Nodes {
    nodes: Vec<Node>,
}

impl Nodes {
    pub(super) fn new(count: usize) -> Result<Self, PoolError> {
        let mut nodes = Vec::new();
        let reserved = nodes.try_reserve_exact(count);
        reserved.map_err(|_| PoolError::OutOfMemory)?;
        nodes.extend(iter::repeat_n(Node::INNER, count));
        Ok(Self { nodes })
    }

    /// Returns the node at `index`; past the last one, one where no block starts.
    pub(super) fn at(&self, index: usize) -> Node {
        self.nodes.get(index).copied().unwrap_or(Node::INNER)
    }

    /// Makes the node at `index` one of no list.
    pub(super) fn set(&mut self, index: usize, state: State) {
        if let Some(node) = self.nodes.get_mut(index) {
            *node = Node {
                state,
                ..Node::INNER
            };
        }
    }

    /// Appends the node at `index`, which is in no list, to `list`.
    pub(super) fn push(&mut self, list: &mut List, index: usize, state: State) {
        let prev = list.tail;
        self.set(index, state);
        if let Some(node) = self.nodes.get_mut(index) {
            node.prev = prev;
        }
        match self.nodes.get_mut(prev) {
            Some(node) => node.next = index,
            None => list.head = index,
        }
        list.tail = index;
        list.len = list.len.saturating_add(1);
    }

    /// Takes the node at `index` out of `list`, which it is in.
    pub(super) fn unlink(&mut self, list: &mut List, index: usize) {
        let Node { prev, next, .. } = self.at(index);
        match self.nodes.get_mut(prev) {
            Some(node) => node.next = next,
            None => list.head = next,
        }
        match self.nodes.get_mut(next) {
            Some(node) => node.prev = prev,
            None => list.tail = prev,
        }
        self.set(index, State::Inner);
        list.len = list.len.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_takes_the_room_that_is_told() {
        assert_eq!(size_of::<Node>(), 8 + 2 * size_of::<usize>());
    }
}
