//! The rules of the ring against a naive model, by chance and by all there is.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

const fn run(first: usize, len: usize) -> Run {
    Run { first, len }
}

/// What can be done with a run.
#[derive(Clone, Copy, Debug)]
enum Act {
    Complete,
    Doubt,
    Finish,
    LetGo,
    Recorded,
    Submit,
}

const ACTS: [Act; 6] = [
    Act::Complete,
    Act::Doubt,
    Act::Finish,
    Act::LetGo,
    Act::Recorded,
    Act::Submit,
];

fn act(state: &mut State<u8>, act: Act, run: Run) -> bool {
    match act {
        Act::Complete => state.complete(run),
        Act::Doubt => state.doubt(run, &7),
        Act::Finish => state.finish(run),
        Act::LetGo => state.let_go(run),
        Act::Recorded => state.recorded(run),
        Act::Submit => state.submit(run),
    }
}

/// (the letter of a state, what is done, the letter of the next one): all that there is, as the drawing at the
/// top has it
const ARROWS: &[(char, Act, char)] = &[
    ('D', Act::Finish, 'H'),
    ('D', Act::LetGo, 'R'),
    ('H', Act::Doubt, '?'),
    ('H', Act::LetGo, '.'),
    ('H', Act::Submit, 'D'),
    ('R', Act::Complete, '.'),
    ('?', Act::Recorded, 'R'),
];

/// The naive model: a list of runs, and what is free is what is in none of them.
#[derive(Clone, Debug)]
struct Model {
    slots: usize,
    runs: Vec<(Run, char)>,
    high_water: usize,
}

impl Model {
    fn used(&self, letters: &str) -> usize {
        let runs = self.runs.iter();
        let runs = runs.filter(|(_, letter)| letters.contains(*letter));
        runs.map(|(run, _)| run.len).sum()
    }

    fn is_free(&self, slot: usize) -> bool {
        let mut runs = self.runs.iter();
        !runs.any(|(run, _)| (run.first..run.first + run.len).contains(&slot))
    }

    fn take(&mut self, len: usize) -> Option<Run> {
        let mut starts = 0..(self.slots + 1).saturating_sub(len);
        let first = starts.find(|&first| (first..first + len).all(|slot| self.is_free(slot)))?;
        self.runs.push((run(first, len), 'H'));
        self.high_water = self.high_water.max(self.used("DHR?"));
        Some(run(first, len))
    }

    fn act(&mut self, act: Act, run: Run) -> bool {
        let Some(at) = self.runs.iter().position(|(other, _)| *other == run) else {
            return false;
        };
        let (_, letter) = self.runs[at];
        let act = format!("{act:?}");
        let mut arrows = ARROWS.iter();
        let arrow = arrows.find(|(from, by, _)| *from == letter && format!("{by:?}") == act);
        match arrow {
            None => return false,
            Some((_, _, '.')) => drop(self.runs.remove(at)),
            Some((_, _, next)) => self.runs[at].1 = *next,
        }
        true
    }

    /// The first run from `from` on that is the ring's.
    fn pending(&self, from: usize) -> Option<Pending<u8>> {
        let runs = self.runs.iter();
        let runs = runs.filter(|(run, letter)| run.first >= from && "R?".contains(*letter));
        let (run, letter) = runs.min_by_key(|(run, _)| run.first)?;
        Some(match letter {
            'R' => Pending::Fire(*run),
            _ => Pending::Record(*run, 7),
        })
    }
}

/// A letter for each slot, as the model has them.
fn letters(state: &State<u8>) -> String {
    let slots = state.slots.iter();
    slots
        .map(|slot| match slot.owner {
            Owner::Device => 'D',
            Owner::Free => '.',
            Owner::Host => 'H',
            Owner::InDoubt(_) => '?',
            Owner::Returning => 'R',
        })
        .collect()
}

fn agree(state: &State<u8>, model: &Model) {
    let mut expected = vec!['.'; model.slots];
    for (run, letter) in &model.runs {
        expected[run.first..run.first + run.len].fill(*letter);
    }
    assert_eq!(letters(state), expected.iter().collect::<String>());
    let statistics = state.statistics(256);
    assert_eq!(statistics.slots, model.slots);
    assert_eq!(statistics.in_use, model.used("DHR?"));
    assert_eq!(statistics.lost, model.used("?"));
    assert_eq!(statistics.high_water, model.high_water);
    assert_eq!(state.free(), model.slots - model.used("DHR?"));
    for from in 0..=model.slots {
        assert_eq!(state.pending(from), model.pending(from));
    }
}

proptest! {
    #[test]
    fn it_does_what_a_list_of_runs_does(
        slots in 1_usize..9,
        steps in prop::collection::vec((0_usize..8, 0_usize..9, 1_usize..5), 1..80),
    ) {
        let mut state = State::<u8>::new(slots);
        let mut model = Model { slots, runs: Vec::new(), high_water: 0 };
        let mut taken = 0;
        for (what, at, len) in steps {
            // Every second step takes, so that there is something to act on.
            if let Some(&what) = ACTS.get(what) {
                let mut runs = vec![run(at, len)];
                runs.extend(model.runs.get(at % model.runs.len().max(1)).map(|(run, _)| *run));
                for run in runs {
                    prop_assert_eq!(act(&mut state, what, run), model.act(what, run));
                    agree(&state, &model);
                }
            } else {
                let got = state.take(len, 10, None);
                prop_assert_eq!(got, model.take(len));
                taken += u64::from(got.is_some());
            }
            agree(&state, &model);
        }
        let statistics = state.statistics(256);
        prop_assert_eq!((statistics.taken, statistics.bytes), (taken, taken * 10));
    }
}

/// Every state of four slots that can be reached, and every act on every run there, also where there is no such run.
#[test]
fn no_order_of_acts_leaves_the_drawing() {
    let mut seen = BTreeSet::new();
    let empty = Model {
        slots: 4,
        runs: Vec::new(),
        high_water: 0,
    };
    let mut open: Vec<(State<u8>, Model)> = vec![(State::new(4), empty)];
    while let Some((state, model)) = open.pop() {
        let mut next = |mut state: State<u8>, mut model: Model| {
            state.high_water = 0;
            model.high_water = 0;
            model.runs.sort_by_key(|(run, _)| run.first);
            if seen.insert(format!("{:?}", model.runs)) {
                open.push((state, model));
            }
        };
        let copy = |state: &State<u8>| State {
            slots: state.slots.clone(),
            in_use: state.in_use,
            ..State::new(0)
        };
        for len in 1..=5 {
            let (mut state, mut model) = (copy(&state), model.clone());
            assert_eq!(state.take(len, 0, None), model.take(len));
            agree(&state, &model);
            next(state, model);
        }
        for first in 0..5 {
            for len in 0..=5 {
                for what in ACTS {
                    let (mut state, mut model) = (copy(&state), model.clone());
                    let run = run(first, len);
                    assert_eq!(act(&mut state, what, run), model.act(what, run));
                    state.high_water = model.high_water;
                    agree(&state, &model);
                    next(state, model);
                }
            }
        }
    }
    // Compositions of 4 into runs of 4 owners or single free slots: a(n) = a(n - 1) + 4 (a(0) + .. + a(n - 1)).
    assert_eq!(seen.len(), 985);
}

#[test]
fn those_that_wait_are_served_in_turn() {
    let mut state = State::<u8>::new(4);
    let small = state.take(1, 1, None).unwrap();
    let first = state.line_up();
    let second = state.line_up();
    assert!(state.is_awaited() && state.is_next(first) && !state.is_next(second));
    assert_eq!(state.take(4, 1, Some(first)), None, "one is in use");
    assert_eq!(state.take(1, 1, Some(second)), None, "not its turn");
    assert_eq!(state.take(1, 1, None), Some(run(1, 1)), "does not wait");
    assert!(state.let_go(run(1, 1)) && state.let_go(small));
    assert_eq!(state.take(4, 1, Some(first)), Some(run(0, 4)));
    state.leave(first);
    assert!(state.is_next(second));
    state.leave(second);
    assert!(!state.is_awaited());
    assert_eq!(state.statistics(256).stalls, 2);
}

#[test]
fn slots_apart_do_not_make_a_run() {
    let mut state = State::<u8>::new(5);
    let runs: Vec<Run> = (0..5).map(|_| state.take(1, 1, None).unwrap()).collect();
    for at in [0, 2, 4] {
        assert!(state.let_go(runs[at]));
    }
    assert_eq!(state.free(), 3);
    assert_eq!(state.take(2, 1, None), None);
    assert!(state.let_go(runs[3]));
    assert_eq!(state.take(3, 1, None), Some(run(2, 3)));
    assert_eq!(state.take(2, 1, None), None);
    assert_eq!(state.take(1, 1, None), Some(run(0, 1)));
}
