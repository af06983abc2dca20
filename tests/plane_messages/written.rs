//! Whatever comes in, nothing is written outside an open window: held against a model.

use proptest::collection::vec;
use proptest::prelude::*;

use tensorwire::DType;
use tensorwire::message::{Decoder, Scalar, encode_to_vec};
use tensorwire::tensor::Descriptor;
use tensorwire::transfer::pool::{Landing, Slot};
use tensorwire::transport::SendFrames;
use tensorwire::transport::loopback;

use super::{BLOCK, World};

/// One of the 16 blocks of the region.
#[derive(Debug)]
enum Block {
    Held(Slot),
    Open(Landing),
    Taken,
}

#[derive(Clone, Debug)]
enum Step {
    /// Opens a block, or closes it if it is open.
    Toggle(usize),
    Push(Push),
}

#[derive(Clone, Debug)]
struct Push {
    /// Where each piece goes, from the start of the region, and how long it is.
    pieces: Vec<(i64, usize)>,
    origin: u64,
    id: u64,
    is_for_us: bool,
    dtype: DType,
    /// An address is left out.
    drops_address: bool,
    /// A byte of the metadata is changed: which, and to what.
    flips: Option<(usize, u8)>,
    /// So many bytes of the last frame are lost.
    cut: usize,
}

fn push() -> impl Strategy<Value = Push> {
    let len = prop_oneof![0..64_usize, 4090..4100_usize, 0..9000_usize];
    let block = 0..17_i64;
    let within = prop_oneof![Just(0), -4..4_i64, 4000..4096_i64, 0..4096_i64];
    let place = (block, within).prop_map(|(block, within)| block * BLOCK as i64 + within);
    let place = prop_oneof![9 => place, 1 => any::<i64>()];
    let pieces = vec((place, len), 0..4);
    let odd = |weight: u32| prop::bool::weighted(f64::from(weight) / 100.0);
    let dtype = prop_oneof![19 => Just(DType::UInt8), 1 => Just(DType::Int8)];
    let flips = prop::option::weighted(0.2, (any::<usize>(), any::<u8>()));
    let cut = prop_oneof![19 => Just(0), 1 => 1..100_usize];
    (
        pieces,
        0..3_u64,
        0..40_u64,
        odd(95),
        dtype,
        odd(5),
        flips,
        cut,
    )
        .prop_map(
            |(pieces, origin, id, is_for_us, dtype, drops_address, flips, cut)| Push {
                pieces,
                origin,
                id,
                is_for_us,
                dtype,
                drops_address,
                flips,
                cut,
            },
        )
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let toggle = (0..16_usize).prop_map(Step::Toggle);
    vec(
        prop_oneof![2 => toggle, 3 => push().prop_map(Step::Push)],
        1..60,
    )
}

/// The frames of a push, with what is wrong with it.
fn frames(push: &Push, base: u64, fill: u8) -> Vec<Vec<u8>> {
    let shapes: Vec<_> = push.pieces.iter().map(|(_, len)| [*len]).collect();
    let tensors = (0..).zip(&shapes).map(|(index, shape)| {
        let piece = Descriptor::new("pieces", push.dtype, shape).unwrap();
        piece.with_list_index(index)
    });
    let tensors: Vec<_> = tensors.collect();
    let addresses = push.pieces.iter();
    let addresses = addresses.map(|(place, _)| base.wrapping_add_signed(*place).into());
    let mut addresses: Vec<Scalar<'_>> = addresses.collect();
    if push.drops_address {
        addresses.pop();
    }
    let session = if push.is_for_us {
        super::SESSION
    } else {
        "else"
    };
    let scalars = [
        ("_plane", Scalar::from("push")),
        ("session", session.into()),
        ("origin", push.origin.into()),
        ("push", push.id.into()),
        ("addresses", Scalar::List(&addresses)),
    ];
    let mut metadata = encode_to_vec(&tensors, &scalars).unwrap();
    if let Some((at, byte)) = push.flips {
        let at = at % metadata.len();
        metadata[at] = byte;
    }
    let payloads = shapes.iter().map(|[len]| vec![fill; *len]);
    let mut frames: Vec<_> = std::iter::once(metadata).chain(payloads).collect();
    let last = frames.last_mut().unwrap();
    last.truncate(last.len().saturating_sub(push.cut));
    frames
}

/// Does to the model what a message says that was written, as the codec reads it; every
/// byte has to be in an open window.
fn apply(model: &mut [u8], open: &[bool], frames: &[Vec<u8>], base: u64) -> u64 {
    let mut decoder = Decoder::new();
    let message = decoder.decode(frames).unwrap();
    let addresses = message.scalars().field("addresses").unwrap();
    let addresses = addresses.as_array().unwrap();
    assert_eq!(addresses.iter().count(), message.len());
    let mut written = 0;
    for (address, tensor) in addresses.iter().zip(message.tensors()) {
        let start = usize::try_from(address.as_u64().unwrap() - base).unwrap();
        let place = start..start + tensor.byte_len();
        let blocks = place.start / BLOCK..place.end.div_ceil(BLOCK);
        assert!(blocks.len() <= 1, "{place:?} is in one window");
        assert!(blocks.clone().all(|block| open[block]), "{place:?} is open");
        model[place].copy_from_slice(tensor.bytes());
        written += tensor.byte_len() as u64;
    }
    written
}

fn run(steps: Vec<Step>) {
    let mut world = World::new();
    let (mut link, far) = loopback::pair();
    world.adder.add(far);
    let base = world.received.base();
    let slots = (0..16).map(|_| world.received.pool().allocate(BLOCK).unwrap());
    let mut slots: Vec<_> = slots.collect();
    slots.sort_by_key(Slot::offset);
    let mut blocks: Vec<_> = slots.into_iter().map(Block::Held).collect();
    let mut model = vec![0; 16 * BLOCK];
    for (fill, step) in (1..).zip(steps) {
        match step {
            Step::Toggle(index) => {
                let block = std::mem::replace(&mut blocks[index], Block::Taken);
                blocks[index] = match block {
                    Block::Held(slot) => Block::Open(slot.open()),
                    Block::Open(landing) => Block::Held(landing.close().unwrap()),
                    Block::Taken => unreachable!(),
                };
            }
            Step::Push(push) => {
                let frames = frames(&push, base, fill);
                let borrowed: Vec<_> = frames.iter().map(Vec::as_slice).collect();
                link.send(&borrowed).unwrap();
                let open = blocks.iter().map(|block| matches!(block, Block::Open(_)));
                let open: Vec<_> = open.collect();
                if let Ok(written) = world.inlet.poll().unwrap() {
                    let expected = apply(&mut model, &open, &frames, base);
                    assert_eq!(written.bytes(), expected);
                }
            }
        }
    }
    for (block, expected) in blocks.into_iter().zip(model.chunks(BLOCK)) {
        let slot = match block {
            Block::Held(slot) => slot,
            Block::Open(landing) => landing.close().unwrap(),
            Block::Taken => unreachable!(),
        };
        assert!(world.received.bytes(&slot).unwrap() == expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn pushes_of_any_kind_write_what_they_say_into_open_windows_alone(steps in steps()) {
        run(steps);
    }
}

#[test]
fn pushes_that_are_right_are_among_those_that_are_made_up() {
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let mut world = World::new();
    let (mut link, far) = loopback::pair();
    world.adder.add(far);
    let landings: Vec<_> = (0..16)
        .map(|_| world.received.pool().allocate(BLOCK).unwrap().open())
        .collect();
    let base = world.received.base();
    let (mut written, mut bytes) = (0, 0);
    for id in 100..1100 {
        let mut made = push().new_tree(&mut runner).unwrap().current();
        made.id = id;
        let frames = frames(&made, base, 1);
        let borrowed: Vec<_> = frames.iter().map(Vec::as_slice).collect();
        link.send(&borrowed).unwrap();
        if let Ok(push) = world.inlet.poll().unwrap() {
            written += 1;
            bytes += push.bytes();
        }
    }
    assert!((200..900).contains(&written), "{written} of 1000");
    assert!(bytes > 10_000, "{bytes}");
    drop(landings);
}
