//! What may be said on the command line, and the help that teaches it.

mod socket;
mod values;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use socket::{At, Limits, RecvPattern, SendPattern, Transport};
use values::{bytes, count, rate, seconds};

/// Look at tensor messages, move them, and turn them into files.
///
/// A message is a list of frames: frame 0 is JSON that describes the tensors and holds the
/// scalars, each frame behind it holds the bytes of one tensor. A bundle is one message in
/// one file.
#[derive(Debug, Parser)]
#[command(name = "tensorwire", version, after_help = EXIT_CODES, after_long_help = EXIT_CODES)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Tool {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    could not: a file, a socket, a timeout, a conversion that would lose something
  2    malformed input, or arguments that make no sense
  130  interrupted by Ctrl-C or SIGTERM, after the summary; a second one ends it at once

Results go to stdout, notes and errors to stderr. Colours are for terminals only, and off
where NO_COLOR is set.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Bench(BenchArguments),
    #[command(hide = true)]
    BenchPeer(BenchPeerArguments),
    /// Print a script that completes the arguments of this tool in your shell
    ///
    /// For bash: tensorwire completions bash > ~/.local/share/bash-completion/completions/tensorwire
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    Convert(ConvertArguments),
    Inspect(InspectArguments),
    /// Print the manual page, of the tool or of one command
    ///
    /// To read it: tensorwire man > /tmp/tensorwire.1 && man /tmp/tensorwire.1
    Man {
        /// The command; without one, the tool's own page
        command: Option<String>,
    },
    Recv(RecvArguments),
    Reencode(ReencodeArguments),
    Relay(RelayArguments),
    Send(SendArguments),
}

/// Show what is in a message
///
/// The files are the frames of one message, in order: first the metadata, then the bytes of
/// each tensor. Prints a table for people, or with --json exactly one JSON object:
///
///   {"kind":"tensors","tensors":[{"field_name":..,"list_index":..,"dtype":..,"shape":[..],
///    "nbytes":..,"sha256":".."}],"scalar_fields":<as received>}
///   {"kind":"transfer","msg_type":"..","message":<as received>}
///   {"kind":"error","error":"<kind>","offset":N,"message":".."}
///
/// What is "as received" may hold NaN and Infinity, as Python writes them; on a terminal, what
/// is not printable is escaped.
#[derive(Args, Debug)]
#[command(after_help = INSPECT_EXAMPLES, after_long_help = INSPECT_EXAMPLES, verbatim_doc_comment)]
pub(crate) struct InspectArguments {
    #[command(flatten)]
    pub(crate) input: Input,
    #[command(flatten)]
    pub(crate) show: Show,
}

const INSPECT_EXAMPLES: &str = "\
Examples:
  tensorwire inspect frame000.bin frame001.bin
  tensorwire inspect --stats --bundle latents.bundle
  curl -s https://host/latents.bundle | tensorwire inspect --json - | jq .tensors

Other files become bundles by `tensorwire convert`. In the table, align is what the address of the
bytes is a multiple of, up to 64; with a ! they cannot be viewed in place as their dtype.

Exits with 2 if the message is malformed, and says on one line what is wrong at which byte.";

/// A message in files.
#[derive(Args, Debug)]
pub(crate) struct Input {
    /// The frames of one message, in order; or - for a bundle on stdin
    #[arg(
        value_name = "FRAME_FILE",
        required_unless_present = "bundle",
        conflicts_with = "bundle"
    )]
    pub(crate) frames: Vec<PathBuf>,
    /// A bundle: one message in one file; - is stdin
    #[arg(long, value_name = "FILE")]
    pub(crate) bundle: Option<PathBuf>,
}

/// How a message is shown.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Show {
    /// Print JSON, one object for each message
    #[arg(long)]
    pub(crate) json: bool,
    /// Look at every element: minimum, maximum and mean of the numbers, and how many are NaN
    #[arg(long)]
    pub(crate) stats: bool,
}

/// Decode a message, and write it again
///
/// Writes DIR/frame000.bin, frame001.bin and so on (with four digits where there are more than a
/// thousand, so that frame*.bin is in order). What a Python peer sent comes out byte for byte;
/// what was written otherwise (white space, another order of keys) comes out as Python would have
/// written it.
#[derive(Args, Debug)]
pub(crate) struct ReencodeArguments {
    #[command(flatten)]
    pub(crate) input: Input,
    /// The folder to write to; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}

/// Print messages as they come
///
/// Shows each message as `inspect` does; with --json one object a line. A malformed message is
/// said so, and the next one is waited for; it counts as one of --count, and makes the exit code 2.
/// Ends after --count messages, after --timeout seconds without one (exit code 1, or 0 if some came
/// and no --count was asked for), or by Ctrl-C; what has come by then and is not printed yet is lost.
///
/// Frames may have up to 1 GiB, and messages 4097 frames and just under 2 GiB: what is larger is
/// refused and not counted, or its sender cut off.
#[derive(Args, Debug)]
#[command(after_help = RECV_EXAMPLES, after_long_help = RECV_EXAMPLES)]
pub(crate) struct RecvArguments {
    #[command(flatten)]
    pub(crate) at: At,
    /// How messages come: pull from senders, sub from a publisher, pair from one peer, rep as
    /// requests (each is answered with a message of no tensors)
    #[arg(long, value_enum, default_value_t = RecvPattern::Pull)]
    pub(crate) pattern: RecvPattern,
    #[command(flatten)]
    pub(crate) limits: Limits,
    /// Save each message as a bundle, DIR/message000000.bundle and so on; files that are there are
    /// kept, and their numbers passed over
    #[arg(long, value_name = "DIR")]
    pub(crate) save: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) show: Show,
}

const RECV_EXAMPLES: &str = "\
Examples:
  tensorwire recv --bind tcp://127.0.0.1:5555
  tensorwire recv --connect ipc:///tmp/worker.sock --count 1 --json
  tensorwire recv --bind tcp://127.0.0.1:5555 --pattern rep --save captured";

/// Send messages out of files
///
/// A file is a bundle, or a .safetensors, .npy or .npz file, whose tensors become a message; that
/// of latents.npy is named latents.
/// Each file is sent once, in the order given, or over and over until --count messages are sent.
/// All of them are held in memory.
///
/// What is sent waits in memory, up to 256 MiB of it and always one message, until the receiver
/// takes it. At the end there are --timeout seconds for what still waits; if that is not enough,
/// it is lost, which is said (exit code 1). With pub, what a subscriber has no room for is lost.
#[derive(Args, Debug)]
#[command(after_help = SEND_EXAMPLES, after_long_help = SEND_EXAMPLES)]
pub(crate) struct SendArguments {
    #[command(flatten)]
    pub(crate) at: At,
    /// How messages go: push to receivers in turn, pub to subscribers, pair to one peer, req as
    /// requests (each reply is printed)
    #[arg(long, value_enum, default_value_t = SendPattern::Push)]
    pub(crate) pattern: SendPattern,
    /// Stop after so many messages, going through the files again and again
    #[arg(long, value_name = "N", value_parser = count, allow_hyphen_values = true)]
    pub(crate) count: Option<u64>,
    /// Send at most so many messages a second
    #[arg(long, value_name = "R", value_parser = rate, allow_hyphen_values = true)]
    pub(crate) rate: Option<f64>,
    /// How many seconds to wait for a receiver to take a message, for its reply, and for the last
    /// messages to leave
    #[arg(long, value_name = "SECS", value_parser = seconds, allow_hyphen_values = true, default_value = "30")]
    pub(crate) timeout: Duration,
    /// Wait so many seconds before the first message: what is published before a subscriber has joined
    /// is lost [default: 0.5 for pub, else 0]
    #[arg(long, value_name = "SECS", value_parser = seconds, allow_hyphen_values = true)]
    pub(crate) delay: Option<Duration>,
    /// Print replies as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Bundles, or .safetensors, .npy or .npz files; - is one of these on stdin
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
}

const SEND_EXAMPLES: &str = "\
Examples:
  tensorwire send --connect tcp://127.0.0.1:5555 request.bundle
  tensorwire send --connect tcp://127.0.0.1:5555 --count 1000 --rate 50 latents.safetensors
  tensorwire send --bind tcp://127.0.0.1:5555 --pattern req --json - < request.bundle";

/// Turn a bundle, a .safetensors or an .npz file into another of these
///
/// Names, lists, dtypes and scalars are kept, so that converting back gives the same message.
/// What the other format cannot hold is refused, not lost: the error names the tensor. Large
/// tensors are copied piece by piece, and OUT is there when all of it is written, or not at all;
/// a file that was there is replaced.
#[derive(Args, Debug)]
#[command(after_help = CONVERT_EXAMPLES, after_long_help = CONVERT_EXAMPLES)]
pub(crate) struct ConvertArguments {
    /// The file to read: .bundle, .safetensors, .npy or .npz
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,
    /// The file to write: .bundle, .safetensors or .npz
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// What IN is, whatever its name ends in
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) from: Option<Format>,
    /// What OUT is to be, whatever its name ends in
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) to: Option<Format>,
}

const CONVERT_EXAMPLES: &str = "\
Examples:
  tensorwire convert request.bundle request.safetensors
  tensorwire convert latents.npy latents.bundle
  tensorwire convert --to npz weights.safetensors weights.zip

The tensor of latents.npy is named latents. An .npz file keeps scalars as JSON text in a member named tensorwire.scalar_fields; member 2 of
a list named skip is skip.2 in both kinds of file. numpy has no bfloat16 and no 8-bit floats, and
safetensors no complex128: they are refused.";

/// What a file of tensors is.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Format {
    /// One message in one buffer
    Bundle,
    /// One array of numpy's; to read only
    Npy,
    /// An archive of numpy's arrays
    Npz,
    /// Tensors and texts, as Hugging Face has them
    Safetensors,
}

/// Pass messages on unchanged, and record what goes by
///
/// Stands between two services: the sender connects to --from, the relay connects to --to, and
/// either side may be ZeroMQ or NNG. With rep and req the replies go back, each waited for for
/// --timeout seconds, at most 600; with pair messages go both ways.
///
/// While nobody takes a message at --to, none is fetched from --from, whose senders wait in turn.
/// Ends after --count messages (replies are not counted), after --timeout seconds without a
/// message (exit code 1, or 0 if some came and no --count was asked for) or in which nobody took
/// one (exit code 1), or by Ctrl-C; what has come by then and was not passed on is lost.
#[derive(Args, Debug)]
#[command(after_help = RELAY_EXAMPLES, after_long_help = RELAY_EXAMPLES)]
pub(crate) struct RelayArguments {
    /// Where messages come from; bound, unless --from-connect is given
    #[arg(long, value_name = "ENDPOINT")]
    pub(crate) from: String,
    /// Where they go; connected to, unless --to-bind is given
    #[arg(long, value_name = "ENDPOINT")]
    pub(crate) to: String,
    /// What they come by
    #[arg(long, value_enum, default_value_t = Transport::Zmq, value_name = "TRANSPORT")]
    pub(crate) from_transport: Transport,
    /// What they go by
    #[arg(long, value_enum, default_value_t = Transport::Zmq, value_name = "TRANSPORT")]
    pub(crate) to_transport: Transport,
    /// Connect to --from instead of binding it
    #[arg(long)]
    pub(crate) from_connect: bool,
    /// Bind --to instead of connecting to it
    #[arg(long)]
    pub(crate) to_bind: bool,
    /// How they come; they go on the same way: pull to push, sub to pub, pair to pair, rep to req
    #[arg(long, value_enum, default_value_t = RecvPattern::Pull)]
    pub(crate) pattern: RecvPattern,
    #[command(flatten)]
    pub(crate) limits: Limits,
    /// Save each message as a bundle, DIR/message000000.bundle and so on, passing over names that are
    /// taken; what goes back is named back000001.bundle
    #[arg(long, value_name = "DIR")]
    pub(crate) tee: Option<PathBuf>,
}

const RELAY_EXAMPLES: &str = "\
Examples:
  tensorwire relay --from tcp://127.0.0.1:6000 --to tcp://127.0.0.1:5555 --tee seen
  tensorwire relay --from tcp://127.0.0.1:6000 --to ipc:///tmp/worker.sock --to-transport nng";

/// Measure latency and throughput between two processes on this machine
///
/// Starts a second process of its own, which sends each message back. First one message at a
/// time, for the time there and back; then one way as fast as they go.
#[derive(Args, Debug)]
#[command(after_help = BENCH_EXAMPLES, after_long_help = BENCH_EXAMPLES)]
pub(crate) struct BenchArguments {
    /// What carries the messages
    #[arg(long, value_enum, default_value_t = Transport::Zmq)]
    pub(crate) transport: Transport,
    /// Where the two meet, such as ipc:///tmp/bench.sock [default: a free port of 127.0.0.1]
    #[arg(long, value_name = "ENDPOINT")]
    pub(crate) endpoint: Option<String>,
    /// Bytes in the one tensor of each message: 4096, 64KiB, 1MiB; up to 1GiB
    #[arg(long, value_name = "BYTES", value_parser = bytes, allow_hyphen_values = true, default_value = "64KiB")]
    pub(crate) size: usize,
    /// How many seconds each of the two measurements takes
    #[arg(long, value_name = "SECS", value_parser = seconds, allow_hyphen_values = true, default_value = "2")]
    pub(crate) duration: Duration,
    /// Print one JSON object, times in microseconds
    #[arg(long)]
    pub(crate) json: bool,
}

const BENCH_EXAMPLES: &str = "\
Examples:
  tensorwire bench
  tensorwire bench --size 1MiB --duration 5 --json | jq .latency.p99_us
  tensorwire bench --transport nng --endpoint ipc:///tmp/bench.sock";

/// The other process of `bench`.
#[derive(Args, Debug)]
pub(crate) struct BenchPeerArguments {
    #[arg(long, value_enum)]
    pub(crate) transport: Transport,
    #[arg(long)]
    pub(crate) endpoint: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Tool::command().debug_assert();
    }
}
