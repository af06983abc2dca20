//! `inspect`: what is in a message.

use crate::args::{Format, Input, InspectArguments};
use crate::convert;
use crate::exit::{Done, Failure};
use crate::frames;
use crate::json;
use crate::message::{self, Seen};
use crate::output::Output;

pub(crate) fn run(arguments: &InspectArguments, output: &mut Output) -> Result<Done, Failure> {
    let shown = frames::load(&arguments.input).and_then(|loaded| {
        let frames = loaded.frames();
        let mut decoder = tensorwire::Decoder::new();
        let seen = Seen::look(&frames, &mut decoder).map_err(Failure::Malformed)?;
        message::show(&seen, arguments.show, output)
    });
    let shown = shown.map_err(|failure| explained(failure, &arguments.input));
    if let (Err(Failure::Malformed(fault)), true) = (&shown, arguments.show.json) {
        output.json(&json::fault(fault))?;
    }
    shown.map(|()| Done::Whole)
}

/// Adds what to do about a malformed message, where its file is known to be something else.
pub(crate) fn explained(failure: Failure, input: &Input) -> Failure {
    let Failure::Malformed(fault) = failure else {
        return failure;
    };
    let (path, is_bundle) = match (&input.bundle, input.frames.as_slice()) {
        (Some(path), _) => (path, true),
        (None, [path]) => (path, false),
        (None, _) => return Failure::Malformed(fault),
    };
    Failure::Malformed(match convert::format_of(path) {
        Some(Format::Bundle) if !is_bundle => {
            fault.with_hint("this is a bundle: give it as --bundle FILE")
        }
        Some(Format::Npy | Format::Npz | Format::Safetensors) => {
            fault.with_hint("tensorwire convert makes a bundle of such a file")
        }
        _ => fault,
    })
}
