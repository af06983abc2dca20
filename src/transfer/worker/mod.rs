//! A worker's side of the protocol, without I/O.

mod error;
mod half;
mod instance;
mod job;
mod outbox;
mod output;
mod preallocated;
mod received;
mod receiver;
mod requests;
mod sender;
mod settings;
mod text;

pub use error::{CallError, ProtocolError, Step};
pub use instance::Instance;
pub use job::{Ending, Event, Input, Job};
pub use outbox::{Outgoing, OutgoingFrames};
pub use output::Output;
pub use received::Received;
pub use receiver::Receiver;
pub use sender::{PushOrder, Sender};
pub use settings::{Settings, Site};
