//! A message, decoded and shown: the same for files and for sockets.

use tensorwire::json::{Object, Value};
use tensorwire::message::{Message, MessageKind, classify};
use tensorwire::transfer::Control;
use tensorwire::{Decoder, TensorView};

use crate::args::Show;
use crate::exit::{Failure, Fault};
use crate::output::{BOLD, CYAN, DIM, Output, RED, RESET};
use crate::{json, pretty, safe_text, table};

/// What kind of message the frames are, and what it says.
pub(crate) enum Seen<'frame> {
    /// A tensor message.
    Tensors {
        tensors: Vec<TensorView<'frame>>,
        scalars: Object<'frame>,
    },
    /// A control message of the transfer protocol.
    Transfer {
        control: Box<Control<'frame>>,
        payload: Value<'frame>,
    },
}

impl<'frame> Seen<'frame> {
    /// Decodes a message.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(crate) fn look(
        frames: &'frame [&'frame [u8]],
        decoder: &mut Decoder,
    ) -> Result<Self, Fault> {
        let kind = classify(frames);
        if let MessageKind::Control { payload } = kind {
            let control = Box::new(Control::from_frames(frames)?);
            let payload = Value::parse(payload)?;
            return Ok(Self::Transfer { control, payload });
        }
        let decoded = decoder.decode(frames).map_err(|error| match kind {
            MessageKind::Other => Fault::from(error).with_hint(NEITHER),
            _ => Fault::from(error),
        });
        let message: Message<'_, '_, _> = decoded?;
        Ok(Self::Tensors {
            tensors: message.tensors().collect(),
            scalars: message.scalars(),
        })
    }
}

/// What is said of frames that may well be meant for somebody else, as work for an encoder is.
pub(crate) const NEITHER: &str =
    "frame 0 starts no JSON object: neither a tensor nor a control message";

/// Prints a message, for people or as one JSON object.
pub(crate) fn show(seen: &Seen<'_>, show: Show, output: &mut Output) -> Result<(), Failure> {
    if show.json {
        return output.json(&json::message(seen, show.stats));
    }
    let text = match seen {
        Seen::Tensors { tensors, scalars } => {
            let bytes: usize = tensors.iter().map(TensorView::byte_len).sum();
            let mut text = format!(
                "{BOLD}{}{RESET}, {}\n",
                table::count(tensors.len() as u64, "tensor"),
                table::bytes(bytes),
            );
            // What a role of the pipeline answers when it failed.
            if let Some(error) = scalars
                .get("_disagg_error")
                .and_then(|value| value.as_str().ok())
            {
                let error = safe_text::of_str(error);
                text.push_str(&format!("{RED}error reply{RESET}: {error}\n"));
            }
            text.push_str(&table::tensors(tensors, show.stats, output.width()));
            if scalars.is_empty() {
                text.push_str(&format!("{DIM}no scalars{RESET}\n"));
            } else {
                text.push_str(&format!("{BOLD}scalars{RESET}\n"));
                text.push_str(&pretty::object(*scalars));
            }
            text
        }
        Seen::Transfer { control, payload } => {
            let name = safe_text::of_str(control.msg_type());
            // Decoding has seen that it is an object.
            let members = pretty::object(payload.as_object().unwrap_or_default());
            format!("{BOLD}control message{RESET} {CYAN}{name}{RESET}\n{members}")
        }
    };
    output.styled(&text)
}
