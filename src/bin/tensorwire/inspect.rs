//! `inspect`: what is in a message.

use crate::args::InspectArguments;
use crate::exit::{Done, Failure, Fault};
use crate::frames;
use crate::json;
use crate::message::{self, Seen};
use crate::output::Output;

pub(crate) fn run(arguments: &InspectArguments, output: &mut Output) -> Result<Done, Failure> {
    let shown = frames::load(&arguments.input).and_then(|loaded| {
        let frames = loaded.frames();
        let mut decoder = tensorwire::Decoder::new();
        let seen = Seen::look(&frames, &mut decoder).map_err(|fault| explained(fault, &frames));
        let seen = seen.map_err(Failure::Malformed)?;
        message::show(&seen, arguments.show, output)
    });
    if let (Err(Failure::Malformed(fault)), true) = (&shown, arguments.show.json) {
        output.json(&json::fault(fault))?;
    }
    shown.map(|()| Done::Whole)
}

/// Adds what to do about it, where that is known.
pub(crate) fn explained(fault: Fault, frames: &[&[u8]]) -> Fault {
    match frames {
        [frame] if frames::is_bundle(frame) => {
            fault.with_hint("this is a bundle: give it as --bundle FILE")
        }
        _ => fault,
    }
}
