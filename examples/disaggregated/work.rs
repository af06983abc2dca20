//! What a role does with a request: the part to replace by your own.
//!
//! A worker is [`worker::run`](crate::worker::run) with a value that implements
//! [`Work`]; everything else, messages, slots and failures, is taken care of:
//!
//! ```text
//! struct Upscaler { model: Model }
//!
//! impl Work for Upscaler {
//!     fn run(&mut self, input: &Input<'_>, output: &mut Output<'_>) -> Result<()> {
//!         let latents = input.tensor("latents")?;               // read where it lies, in shared memory
//!         let shape: Vec<_> = latents.dims().map(|dim| 2 * dim).collect();
//!         let upscaled = Descriptor::new("latents", DType::Float32, &shape)?;
//!         let places = output.begin(&[upscaled], &input.scalars)?;
//!         self.model.run(latents.as_slice()?, places);          // written where it is sent from
//!         Ok(())
//!     }
//! }
//! ```

use std::thread;
use std::time::{Duration, Instant};

use tensorwire::json::{Object, Value};
use tensorwire::message::{NO_TENSORS, ScalarFields, encode_to_vec};
use tensorwire::plane::Region;
use tensorwire::transfer::manifest::Plan;
use tensorwire::transfer::pool::{PoolError, Slot};
use tensorwire::transfer::worker::Output as Staged;
use tensorwire::{Descriptor, TensorView};

use crate::Result;

/// How long an output waits for room in the pool, which comes as others go.
const ROOM: Duration = Duration::from_secs(20);

/// The work of a role; called for one request after the other, on a thread of its own.
pub(crate) trait Work: Send {
    /// Computes the output of a request, which it begins once.
    ///
    /// # Errors
    ///
    /// The request fails with this text, which its client gets to see; the next is not affected.
    fn run(&mut self, input: &Input<'_>, output: &mut Output<'_>) -> Result<()>;
}

/// What there is of a request.
pub(crate) struct Input<'a> {
    pub(crate) request_id: &'a str,
    /// What the client sent, for the first role. From Python it is a pickle: never load
    /// one of somebody else's.
    pub(crate) payload: &'a [u8],
    /// What the role before made, where it lies; none for the first role.
    pub(crate) tensors: &'a [TensorView<'a>],
    /// What the role before said; nothing for the first role.
    pub(crate) scalars: Object<'a>,
}

impl<'a> Input<'a> {
    /// The tensor of this name, which is no list.
    pub(crate) fn tensor(&self, name: &str) -> Result<TensorView<'a>> {
        self.find(name, None)
    }

    /// A member of the list of this name.
    pub(crate) fn list_member(&self, name: &str, index: u32) -> Result<TensorView<'a>> {
        self.find(name, Some(index))
    }

    fn find(&self, name: &str, index: Option<u32>) -> Result<TensorView<'a>> {
        let mut tensors = self.tensors.iter();
        let found = tensors.find(|tensor| tensor.name() == *name && tensor.list_index() == index);
        let missing = || match index {
            None => format!("no tensor {name}"),
            Some(index) => format!("no tensor {name} {index}"),
        };
        Ok(*found.ok_or_else(missing)?)
    }
}

/// Where the output of a request goes.
pub(crate) struct Output<'a> {
    /// Where slots come from; the last role sends a message instead.
    region: Option<&'a Region>,
    begun: Option<Begun>,
}

enum Begun {
    Message {
        metadata: Vec<u8>,
        payloads: Vec<Vec<u8>>,
    },
    Slot {
        slot: Slot,
        used: usize,
        manifest: Vec<u8>,
        scalars: Vec<u8>,
    },
}

/// An output that is there.
pub(crate) enum Made {
    /// In a message, for the head node.
    Message {
        metadata: Vec<u8>,
        payloads: Vec<Vec<u8>>,
    },
    /// In a slot, for the next role; the scalars are JSON, an object.
    Staged { output: Staged, scalars: Vec<u8> },
}

impl<'a> Output<'a> {
    pub(crate) const fn new(region: Option<&'a Region>) -> Self {
        Self {
            region,
            begun: None,
        }
    }

    /// Says what the output is, and returns the places to write the tensors to, in their order.
    ///
    /// They are in the slot that is pushed from, each at a multiple of 512 bytes; for the
    /// last role they are the buffers that are sent. They hold whatever was there before.
    ///
    /// # Errors
    ///
    /// There is no room in the pool, and none came for a while; or the descriptors and scalars
    /// make no message.
    pub(crate) fn begin<S: ScalarFields + ?Sized>(
        &mut self,
        tensors: &[Descriptor<'_>],
        scalars: &S,
    ) -> Result<Vec<&mut [u8]>> {
        let begun = match self.region {
            Some(region) => lay_out(region, tensors, scalars)?,
            None => Begun::Message {
                metadata: encode_to_vec(tensors, scalars)?,
                payloads: tensors
                    .iter()
                    .map(|tensor| vec![0; tensor.byte_len()])
                    .collect(),
            },
        };
        match (self.begun.insert(begun), self.region) {
            (Begun::Slot { slot, .. }, Some(region)) => split(region.bytes_mut(slot)?, tensors),
            (Begun::Slot { .. }, None) => Err("a slot without a region".into()),
            (Begun::Message { payloads, .. }, _) => {
                Ok(payloads.iter_mut().map(Vec::as_mut_slice).collect())
            }
        }
    }

    /// What was begun, all of it written.
    pub(crate) fn finish(self) -> Result<Made> {
        Ok(match self.begun.ok_or("the work has no output")? {
            Begun::Message { metadata, payloads } => Made::Message { metadata, payloads },
            Begun::Slot {
                slot,
                used,
                manifest,
                scalars,
            } => {
                let manifest = Value::parse(&manifest)?.as_object()?;
                let output = Staged::new(slot, used, manifest).map_err(|(_slot, error)| error)?;
                Made::Staged { output, scalars }
            }
        })
    }
}

/// Takes a slot for these tensors.
fn lay_out<S: ScalarFields + ?Sized>(
    region: &Region,
    tensors: &[Descriptor<'_>],
    scalars: &S,
) -> Result<Begun> {
    let plan = Plan::new(tensors)?;
    let mut manifest = vec![0; plan.encoded_len()];
    plan.encode_into(&mut manifest)?;
    // The scalars of a message are an object too.
    let metadata = encode_to_vec(NO_TENSORS, scalars)?;
    let scalars = Value::parse(&metadata)?
        .as_object()?
        .field("scalar_fields")?;
    Ok(Begun::Slot {
        slot: allocate(region, plan.slot_len())?,
        used: plan.slot_len(),
        manifest,
        scalars: scalars.raw().into(),
    })
}

/// Takes a slot, and waits for one if the pool is full.
fn allocate(region: &Region, len: usize) -> Result<Slot> {
    let deadline = Instant::now() + ROOM;
    loop {
        match region.pool().allocate(len.max(1)) {
            Err(PoolError::Full { .. }) if Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(1));
            }
            allocated => return Ok(allocated?),
        }
    }
}

/// The bytes of each tensor, of those of the slot.
fn split<'s>(mut rest: &'s mut [u8], tensors: &[Descriptor<'_>]) -> Result<Vec<&'s mut [u8]>> {
    let mut places = Vec::with_capacity(tensors.len());
    let mut start = 0;
    for entry in Plan::new(tensors)?.entries() {
        let short = "the slot is shorter than the plan";
        let range = entry.range();
        let (gap, from) = rest
            .split_at_mut_checked(range.start - start)
            .ok_or(short)?;
        let (place, after) = from.split_at_mut_checked(range.len()).ok_or(short)?;
        // What another request left there is nobody's business.
        gap.fill(0);
        places.push(place);
        (rest, start) = (after, range.end);
    }
    Ok(places)
}
