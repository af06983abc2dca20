//! What a request costs the head node of the transfer protocol.

use std::time::Duration;

use tensorwire::json::{Object, Value};
use tensorwire::transfer::coordinator::{Coordinator, Settings, Topology, Workers};
use tensorwire::transfer::message::{Allocated, Done, Location, Pushed, Staged};
use tensorwire::transfer::{Control, RequestId, Role};

use super::counting::calls;

const NOW: Duration = Duration::ZERO;

/// Leads a request through all roles, by slots that are allocated, and takes what is to be sent.
fn serve(head: &mut Coordinator, id: &RequestId, buffer: &mut Vec<u8>) {
    let text = id.text();
    let scalars = Value::parse(br#"{"request_id":"r","seed":7,"prompt":"a cat"}"#).unwrap();
    let (manifest, scalars) = (Object::EMPTY, scalars.as_object().unwrap());
    let place = Location::new("session", 0x1000, 0);
    let mut handle = |role, control: Control<'_>| {
        head.handle_control(role, &control, NOW).unwrap();
        while head.poll_transmit(buffer).is_some() {}
    };
    let staged = Staged::new(text, 64, manifest, place, scalars);
    let allocated = || Control::Allocated(Allocated::new(text, place, 64));
    let pushed = || Control::Pushed(Pushed::new(text));
    handle(Role::Encoder, Control::Staged(staged));
    handle(Role::Denoiser, allocated());
    handle(Role::Encoder, pushed());
    handle(Role::Denoiser, Control::Done(Done::staged(staged)));
    handle(Role::Decoder, allocated());
    handle(Role::Denoiser, pushed());
    head.handle_reply(Role::Decoder, id, None, NOW).unwrap();
    assert!(head.poll_event().is_some());
}

#[test]
fn a_request_costs_the_head_node_what_its_docs_say() {
    let workers = |endpoint: &str| Workers::new([endpoint], 4);
    let topology = Topology::new(workers("e"), workers("n"), workers("d"));
    let mut head = Coordinator::new(topology, Settings::new()).unwrap();
    let mut buffer = Vec::new();
    for round in 0..50 {
        let id = RequestId::from(format!("request-{round}").as_str());
        let work = vec![7; 1000];
        let (count, ()) = calls(|| {
            head.handle_request(&id, work, NOW).unwrap();
            while head.poll_transmit(&mut buffer).is_some() {}
            serve(&mut head, &id, &mut buffer);
        });
        // One to share the work; then it is freed, and the work with it.
        if round > 4 {
            assert!(count <= 3, "{count} calls in round {round}");
        }
    }
}
