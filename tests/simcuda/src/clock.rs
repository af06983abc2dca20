//! What is known to have happened: vector clocks over streams.

/// For each stream, by its number, how many of its operations are over for who holds this.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock(Vec<u64>);

/// The operation `tick` of the stream `stream`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Moment {
    pub(crate) stream: usize,
    pub(crate) tick: u64,
}

impl Clock {
    /// The next operation of `stream`, whose clock this is.
    pub(crate) fn tick(&mut self, stream: usize) -> Moment {
        if self.0.len() <= stream {
            self.0.resize(stream + 1, 0);
        }
        self.0[stream] += 1;
        Moment {
            stream,
            tick: self.0[stream],
        }
    }

    /// From now on, what is over for `other` is over here.
    pub(crate) fn join(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = (*mine).max(*theirs);
        }
    }

    pub(crate) fn knows(&self, moment: Moment) -> bool {
        self.0
            .get(moment.stream)
            .is_some_and(|tick| *tick >= moment.tick)
    }
}
