//! A head node among such workers and clients.

use std::time::Duration;

use tensorwire::transfer::coordinator::{Coordinator, Event, Settings, Topology, Workers};
use tensorwire::transfer::{RequestId, Role};

use super::said::{IDS, Random, message};

const ROLES: [Role; 3] = [Role::Encoder, Role::Denoiser, Role::Decoder];

/// Takes what is to be sent and told; returns how much is sent, and how many requests ended.
fn take(head: &mut Coordinator) -> (usize, usize) {
    let mut buffer = Vec::new();
    let (mut sent, mut ended) = (0, 0);
    while head.poll_transmit(&mut buffer).is_some() {
        sent += 1;
    }
    while let Some(event) = head.poll_event() {
        let is_end = matches!(event, Event::Failed { .. } | Event::Finished { .. });
        ended += usize::from(is_end);
    }
    (sent, ended)
}

fn play(seed: u64) {
    let random = &mut Random::new(seed);
    let workers = |role: Role| Workers::new([0, 1].map(|index| format!("{role}{index}")), 2);
    let [encoder, denoiser, decoder] = ROLES.map(workers);
    let settings = Settings::new()
        .with_max_requests(6)
        .with_retries(random.below(3) as u32)
        .with_attempt_timeout(Duration::from_secs(random.below(5) as u64));
    let topology = Topology::new(encoder, denoiser, decoder);
    let mut head = Coordinator::new(topology, settings).unwrap();
    let (mut now, mut begun, mut ended) = (Duration::ZERO, 0, 0);
    for _ in 0..1000 {
        let id = RequestId::from(&*format!("r{}", random.below(IDS)));
        match random.below(64) {
            0 => now = Duration::ZERO,
            1 => now = now.saturating_add(Duration::from_secs(random.below(700) as u64)),
            2 if seed.is_multiple_of(8) => now = Duration::MAX,
            3 => head.handle_timeout(now),
            4 => drop(head.cancel(&id, now)),
            5..=12 => begun += usize::from(head.handle_request(&id, vec![1], now).is_ok()),
            _ => {
                let frames = message(random, (0, 0));
                let role = random.pick(Role::ALL);
                let before = format!("{head:?}");
                let refused = head.handle_frames(role, &frames, now).err();
                let after = format!("{head:?}");
                let (sent, more) = take(&mut head);
                ended += more;
                // A worker may be told to drop what nobody knows.
                assert!(
                    refused.is_none() || sent > 0 || before == after,
                    "{refused:?}"
                );
            }
        }
        ended += take(&mut head).1;
    }
    // An attempt, its last word, and so on.
    for _ in 0..10 {
        head.handle_timeout(Duration::MAX);
        ended += take(&mut head).1;
    }
    assert_eq!((begun, head.poll_timeout()), (ended, None), "seed {seed}");
    for role in ROLES {
        let statistics = head.role_statistics(role).unwrap();
        assert_eq!((statistics.queued, statistics.free_places), (0, 4));
        let slots = (statistics.lent_slots, statistics.quarantined_slots);
        assert_eq!(slots, (0, 0));
    }
    head.handle_request(&RequestId::from("one"), vec![1], Duration::ZERO)
        .unwrap();
    assert_eq!(take(&mut head).0, 1);
}

#[test]
fn requests_end_and_refused_messages_change_nothing() {
    (0..60).for_each(play);
}
