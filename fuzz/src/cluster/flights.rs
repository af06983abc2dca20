//! Pushes: bytes on their way, half of them first.

use tensorwire::transfer::pool::WindowError;

use super::Cluster;
use super::node::{Flight, Stage, request_of};

impl Cluster<'_> {
    /// Takes a push one step further.
    pub fn fly(&mut self, node: usize, at: usize) {
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
}
