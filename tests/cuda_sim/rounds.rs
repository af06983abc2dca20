//! A thousand rounds of random sizes, every way to the device, many under way at once.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr as _};
use tensorwire::cuda::{Cuda, Options, Tensor};
use tensorwire::device::{Device as _, Landing as _};
use tensorwire::message::{Decoder, NO_SCALARS, encode_to_vec};
use tensorwire::tensor::Descriptor;
use tensorwire::transport::Wait;
use tensorwire::{DType, TensorView};

use crate::given::{Random, device_bytes, noise, open_with, read, read_at};
use crate::simulated;

const ROUNDS: usize = 1000;
const LARGEST: usize = 64 << 20;

/// (slots, bytes of each, the largest tensor): a large one takes many turns of each ring but the first.
const RINGS: &[(usize, usize, usize)] = &[
    (4, 8 << 20, LARGEST),
    (3, 1 << 20, LARGEST),
    (2, 64 << 10, 4 << 20),
    (1, 4096, 64 << 10),
    (5, 256, 8 << 10),
];

/// What is on its way, and what it is to be: a range of the noise.
enum Sent {
    Tensor(Tensor, Range<usize>),
    Slice(CudaSlice<u8>, Range<usize>),
}

impl Sent {
    fn verify(self, noise: &[u8]) {
        let (bytes, range) = match self {
            Self::Slice(slice, range) => {
                let (address, _read) = slice.device_ptr(slice.stream());
                (read_at(slice.stream(), address, slice.len()), range)
            }
            Self::Tensor(tensor, range) => (read(&tensor), range),
        };
        assert!(bytes == noise[range.clone()], "{range:?}");
    }
}

/// Few are large, most are small.
fn size(random: &mut Random, largest: usize) -> usize {
    let most = match random.below(100) {
        0 => largest,
        1..16 => largest.min(2 << 20),
        16..60 => 64 << 10,
        60..70 => 1,
        _ => 2000,
    };
    random.below(most.min(largest) + 1)
}

fn sizes(random: &mut Random, largest: usize) -> Vec<usize> {
    let count = random.below(12);
    let first = size(random, largest);
    let more = (1..count).map(|_| size(random, 5000.min(largest)));
    std::iter::once(first)
        .chain(more.collect::<Vec<_>>())
        .collect()
}

fn metadata(lens: &[usize]) -> Vec<u8> {
    let names: Vec<_> = (0..lens.len()).map(|index| index.to_string()).collect();
    let shapes: Vec<_> = lens.iter().map(|&len| [len]).collect();
    let described = names
        .iter()
        .zip(&shapes)
        .map(|(name, shape)| Descriptor::new(name.as_str(), DType::UInt8, &shape[..]).unwrap());
    encode_to_vec(described.collect::<Vec<_>>(), &NO_SCALARS).unwrap()
}

struct Rounds {
    noise: Vec<u8>,
    random: Random,
    under_way: VecDeque<Sent>,
    bytes: usize,
}

impl Rounds {
    /// One round: something goes on its way, and something else may have to have arrived.
    fn round(&mut self, cuda: &Cuda, streams: &[Arc<CudaStream>], largest: usize, round: usize) {
        let stream = &streams[self.random.below(streams.len())];
        let lens = match round {
            // For certain.
            0 => vec![LARGEST],
            1 => vec![0],
            _ => sizes(&mut self.random, largest),
        };
        let ranges: Vec<_> = lens.iter().map(|&len| self.range(len)).collect();
        self.bytes += lens.iter().sum::<usize>();
        match self.random.below(5) {
            0 => self.upload(cuda, stream, &ranges),
            1 => self.upload_message(cuda, stream, &ranges),
            2 => self.land(cuda, stream, &ranges),
            3 => self.upload_into(cuda, stream, &ranges),
            _ => self.upload_pinned(cuda, stream, &ranges),
        }
        while self.under_way.len() > 24 || self.random.below(8) == 0 {
            let Some(sent) = self.under_way.pop_front() else {
                return;
            };
            sent.verify(&self.noise);
        }
    }

    fn range(&mut self, len: usize) -> Range<usize> {
        let start = self.random.below(self.noise.len() - len);
        start..start + len
    }

    /// Frames that are gone when the round is over.
    fn frames(&self, ranges: &[Range<usize>]) -> Vec<Vec<u8>> {
        let lens: Vec<_> = ranges.iter().map(Range::len).collect();
        let payloads = ranges
            .iter()
            .map(|range| self.noise[range.clone()].to_vec());
        std::iter::once(metadata(&lens)).chain(payloads).collect()
    }

    fn sent(&mut self, tensors: impl IntoIterator<Item = Tensor>, ranges: &[Range<usize>]) {
        let sent = tensors.into_iter().zip(ranges.iter().cloned());
        let sent = sent.map(|(tensor, range)| Sent::Tensor(tensor, range));
        self.under_way.extend(sent);
    }

    fn upload(&mut self, cuda: &Cuda, stream: &Arc<CudaStream>, ranges: &[Range<usize>]) {
        for range in ranges {
            let mut frame = self.noise[range.clone()].to_vec();
            let shape = [range.len()];
            let view = TensorView::from_bytes("0", DType::UInt8, &shape, &frame).unwrap();
            let tensor = cuda.upload(&view, stream, Wait::Forever).unwrap();
            // The next message comes in the same place.
            frame.fill(0xee);
            self.under_way
                .push_back(Sent::Tensor(tensor, range.clone()));
        }
    }

    fn upload_message(&mut self, cuda: &Cuda, stream: &Arc<CudaStream>, ranges: &[Range<usize>]) {
        let frames = self.frames(ranges);
        let mut decoder = Decoder::new();
        let message = decoder.decode(&frames).unwrap();
        let tensors = cuda
            .upload_message(&message, stream, Wait::Forever)
            .unwrap();
        self.sent(tensors, ranges);
    }

    fn land(&mut self, cuda: &Cuda, stream: &Arc<CudaStream>, ranges: &[Range<usize>]) {
        let frames = self.frames(ranges);
        let mut decoder = Decoder::new();
        let metadata = decoder.decode_metadata(&frames[0]).unwrap();
        let mut landing = cuda.land(&metadata, stream).unwrap();
        for frame in &frames[1..] {
            let mut rest = &frame[..];
            while !rest.is_empty() {
                let len = (1 + self.random.below(100_000)).min(rest.len());
                let (now, later) = rest.split_at(len);
                landing.copy_from(now, Wait::Forever).unwrap();
                rest = later;
            }
        }
        self.sent(landing.finish().unwrap(), ranges);
    }

    fn upload_into(&mut self, cuda: &Cuda, stream: &Arc<CudaStream>, ranges: &[Range<usize>]) {
        for range in ranges {
            if range.is_empty() {
                continue;
            }
            let bytes = &self.noise[range.clone()];
            let shape = [range.len()];
            let view = TensorView::from_bytes("0", DType::UInt8, &shape, bytes).unwrap();
            let mut slice: CudaSlice<u8> = stream.alloc_zeros(bytes.len()).unwrap();
            cuda.upload_into(&view, &mut slice, Wait::Forever).unwrap();
            self.under_way.push_back(Sent::Slice(slice, range.clone()));
        }
    }

    fn upload_pinned(&mut self, cuda: &Cuda, stream: &Arc<CudaStream>, ranges: &[Range<usize>]) {
        let frames = self.frames(ranges).into_iter().map(|frame| {
            let pinned = cuda.register(frame.into());
            pinned.map_err(|(_, error)| error).unwrap().share()
        });
        let frames: Vec<_> = frames.collect();
        let mut decoder = Decoder::new();
        let message = decoder.decode(&frames).unwrap();
        let tensors = cuda.upload_pinned_message(&message, stream).unwrap();
        self.sent(tensors, ranges);
    }
}

#[test]
fn a_thousand_rounds_of_all_sizes_arrive_as_they_were_sent() {
    simulated::test(
        "rounds::a_thousand_rounds_of_all_sizes_arrive_as_they_were_sent",
        || {
            let mut rounds = Rounds {
                noise: noise(5, LARGEST + 1_000_003),
                random: Random(5),
                under_way: VecDeque::new(),
                bytes: 0,
            };
            let per_ring = ROUNDS / RINGS.len();
            for &(slots, slot_bytes, largest) in RINGS {
                let options = Options::new().with_ring(slots, slot_bytes);
                let (cuda, stream) = open_with(options.with_batch_bytes(2000));
                let streams = [
                    stream,
                    cuda.context().new_stream().unwrap(),
                    cuda.context().default_stream(),
                ];
                for round in 0..per_ring {
                    let fixed = if largest == LARGEST {
                        round
                    } else {
                        usize::MAX
                    };
                    rounds.round(&cuda, &streams, largest, fixed);
                }
                for sent in std::mem::take(&mut rounds.under_way) {
                    sent.verify(&rounds.noise);
                }
                streams
                    .iter()
                    .for_each(|stream| stream.synchronize().unwrap());
                cuda.poll().unwrap();
                let statistics = cuda.statistics();
                assert_eq!((statistics.in_use, statistics.lost), (0, 0));
                assert!(statistics.high_water <= slots);
            }
            assert_eq!(device_bytes(), 0);
            println!("{} MiB", rounds.bytes >> 20);
        },
    );
}
