//! What a send asks for in memory: nothing of the payload's size.
//!
//! Our side is counted by the allocator. libzmq has an allocator of its own, which that
//! does not see; so the sender is a process of its own too, and the most memory that it
//! ever had resident is what tells: a copy of the payload, wherever it was made and
//! however short it lived, has to be there when it is written. What the system copies
//! into its sockets is not in it.

use tensorwire::transport::zmq::Context;
use tensorwire::transport::{Frames, Part, RecvFrames, SendFrames, Wait};

use crate::alone::{self, SocketFile};
use crate::counting;

const PAYLOAD: usize = 64 << 20;

/// Far below a payload, far above what the rest needs.
const SLACK: u64 = 4 << 20;

/// (how it is sent, whether a copy is to be seen)
const WAYS: &[(&str, bool)] = &[("lent", false), ("pooled", false), ("copied", true)];

#[test]
fn over_tcp_and_ipc_nothing_of_the_payloads_size_is_allocated_or_copied() {
    if alone::memory().is_none() {
        println!("SKIP: this system does not tell how much memory a process had");
        return;
    }
    let file = SocketFile::new();
    for bind in ["tcp://127.0.0.1:*", &file.endpoint()] {
        for &(way, copies) in WAYS {
            let mut pull = Context::new().pull().bind(bind).unwrap();
            let sender = alone::spawn("memory::sender", &[pull.endpoint(), way]);
            let mut message = pull.recv().unwrap();
            assert_eq!(message.frame(0), Some(&b"connected"[..]));
            for _ in 0..2 {
                pull.recv_into(&mut message).unwrap();
                assert!(message.frame(1).unwrap().iter().all(|&byte| byte == 7));
                assert_eq!(message.byte_count(), PAYLOAD + 8);
            }
            let [largest, grown] = alone::finish(sender).try_into().unwrap();
            println!("{bind}, {way}: largest allocation {largest}, peak grown by {grown}");
            assert!(largest < 1 << 16, "{way}: {largest} bytes by us");
            if copies {
                assert!(grown >= PAYLOAD as u64, "{way}: {grown} bytes by all");
            } else {
                assert!(grown < SLACK, "{way}: {grown} bytes by all");
            }
        }
    }
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn sender() {
    let arguments = alone::arguments();
    let [endpoint, way] = arguments.as_slice() else {
        return;
    };
    let context = Context::new();
    let mut push = context.push().connect(endpoint).unwrap();
    push.send(&[b"connected"]).unwrap();
    let pool = tensorwire::transport::BufferPool::new(1, PAYLOAD);
    // As much memory as this process will ever need, written to.
    let payload = vec![7_u8; if way == "pooled" { 0 } else { PAYLOAD }];
    if way == "pooled" {
        let mut buffer = pool.take(PAYLOAD, Wait::Never).unwrap();
        buffer.as_mut().fill(7);
    }
    let (_, before) = alone::memory().unwrap();
    let (largest, ()) = counting::largest(|| {
        // Twice: the second one finds all that could be used again.
        let payload: std::sync::Arc<Vec<u8>> = payload.into();
        for _ in 0..2 {
            let metadata = &b"metadata"[..];
            if way == "copied" {
                push.send(&[metadata, &payload]).unwrap();
                continue;
            }
            let tensor = if way == "pooled" {
                Part::from(pool.take(PAYLOAD, Wait::Configured).unwrap())
            } else {
                Part::owned(Shared(payload.clone()))
            };
            let mut parts = vec![Part::from(metadata), tensor];
            push.send_parts(&mut parts, Wait::Configured).unwrap();
        }
        // Until all is sent.
        drop(push);
        drop(context);
    });
    let (_, after) = alone::memory().unwrap();
    alone::tell(&[largest as u64, after.saturating_sub(before)]);
}

struct Shared(std::sync::Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
