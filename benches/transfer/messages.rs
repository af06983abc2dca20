//! Control messages, read and written.

use std::collections::BTreeMap;
use std::hint::black_box;

use tensorwire::json::Str;
use tensorwire::transfer::Control;
use tensorwire::transfer::message::Outcome;

use super::common::compare::{contestant, quartiles, show};
use super::json::{self, Kind};
use super::{python, quantile};

/// The recorded messages of each kind that serde_json reads.
fn recorded() -> BTreeMap<Kind, Vec<Vec<u8>>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/transfer.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let mut kinds: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let (mut all, mut left_out) = (0, 0);
    for line in text.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let payload = hex(line["frames_hex"][1].as_str().unwrap());
        let is_staged = matches!(
            Control::decode(&payload).unwrap(),
            Control::Done(done) if matches!(done.outcome, Outcome::Staged(_))
        );
        let kind = Kind::new(line["msg_type"].as_str().unwrap(), is_staged);
        all += 1;
        let tree = serde_json::from_slice::<serde_json::Value>(&payload);
        if tree.is_err() || json::decode_any(&payload).is_err() {
            left_out += 1;
            continue;
        }
        kinds.entry(kind).or_default().push(payload);
    }
    println!("  {all} recorded messages; {left_out} left out, which serde_json does not read");
    kinds
}

fn hex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

pub(crate) fn run() {
    println!("control messages, by message: each kind's in turn");
    let kinds = recorded();
    let python = python::time(&kinds);
    if let Err(reason) = &python {
        println!("  SKIP protocol.py: {reason}");
    }
    let python = python.unwrap_or_default();
    println!("  decode, serde_json by our time");
    println!("| message | of B | ours | kind told | any kind | `Value` | Python |");
    println!("|---|---:|---:|---:|---:|---:|---:|");
    for (&kind, payloads) in &kinds {
        let count = payloads.len() as f64;
        let mut times = quartiles(&mut [
            contestant("ours", || {
                for payload in payloads {
                    black_box(Control::decode(black_box(payload)).unwrap());
                }
            }),
            contestant("serde_json, kind told", || {
                for payload in payloads {
                    black_box(json::decode(kind, black_box(payload)).unwrap());
                }
            }),
            contestant("serde_json, any kind", || {
                for payload in payloads {
                    black_box(json::decode_any(black_box(payload)).unwrap());
                }
            }),
            contestant("Value", || {
                for payload in payloads {
                    let tree: serde_json::Value =
                        serde_json::from_slice(black_box(payload)).unwrap();
                    black_box(tree);
                }
            }),
        ]);
        times.extend(
            python
                .get(&kind)
                .map(|times| ("Python", times.decode * count)),
        );
        print(kind, payloads, &times);
    }
    println!("  encode, serde_json by our time");
    println!("| message | of B | ours | structs | `Value` | Python |");
    println!("|---|---:|---:|---:|---:|---:|");
    for (&kind, payloads) in &kinds {
        encode(kind, payloads, python.get(&kind));
    }
}

fn encode(kind: Kind, payloads: &[Vec<u8>], python: Option<&python::Times>) {
    let count = payloads.len() as f64;
    let controls: Vec<_> = payloads
        .iter()
        .map(|payload| of_plain_text(Control::decode(payload).unwrap()))
        .collect();
    let structs: Vec<_> = payloads
        .iter()
        .map(|payload| json::decode(kind, payload).unwrap())
        .collect();
    let trees: Vec<serde_json::Value> = payloads
        .iter()
        .map(|payload| serde_json::from_slice(payload).unwrap())
        .collect();
    let longest = payloads.iter().map(Vec::len).max().unwrap_or(0);
    let mut buffer = vec![0; longest];
    let [mut first, mut second] = [const { Vec::new() }; 2];
    let mut times = quartiles(&mut [
        contestant("ours", || {
            for control in &controls {
                black_box(black_box(control).encode_into(&mut buffer).unwrap());
            }
        }),
        contestant("serde_json", || {
            for message in &structs {
                first.clear();
                serde_json::to_writer(&mut first, black_box(message)).unwrap();
                black_box(&first);
            }
        }),
        contestant("Value", || {
            for tree in &trees {
                second.clear();
                serde_json::to_writer(&mut second, black_box(tree)).unwrap();
                black_box(&second);
            }
        }),
    ]);
    times.extend(python.map(|times| ("Python", times.encode * count)));
    print(kind, payloads, &times);
}

/// The time by message, and those of the others by it, as a row of the README.
fn print(kind: Kind, payloads: &[Vec<u8>], times: &[(&'static str, f64)]) {
    let lens: Vec<_> = payloads
        .iter()
        .map(|payload| payload.len() as f64)
        .collect();
    let ours = times[0].1;
    let each = show(ours / payloads.len() as f64);
    let len = quantile(&lens, 0.5);
    print!("| {} | {len} | {each} |", kind.name());
    for (_, time) in &times[1..] {
        print!(" {:.*} |", digits(time / ours), time / ours);
    }
    println!();
}

/// So many digits behind the point say enough.
fn digits(ratio: f64) -> usize {
    if ratio < 10.0 { 2 } else { 0 }
}

/// The same message made of texts that are not yet escaped, as one is that a worker writes.
fn of_plain_text(mut control: Control<'_>) -> Control<'_> {
    fn plain(text: &mut Str<'_>) {
        // A few kilobytes, once.
        *text = Str::from(&*Box::leak(
            text.to_cow_lossy().into_owned().into_boxed_str(),
        ));
    }
    match &mut control {
        Control::Alloc(alloc) => {
            plain(&mut alloc.request_id);
            plain(&mut alloc.source_role);
        }
        Control::Allocated(allocated) => {
            plain(&mut allocated.request_id);
            plain(&mut allocated.location.session_id);
        }
        Control::Done(done) => {
            plain(&mut done.request_id);
            match &mut done.outcome {
                Outcome::Failed(error) => plain(error),
                Outcome::Staged(staged) => {
                    plain(&mut staged.request_id);
                    plain(&mut staged.location.session_id);
                }
                _ => {}
            }
        }
        Control::Push(push) => {
            plain(&mut push.request_id);
            plain(&mut push.dest_session_id);
        }
        Control::Pushed(pushed) => plain(&mut pushed.request_id),
        Control::Ready(ready) => plain(&mut ready.request_id),
        Control::Register(register) => {
            plain(&mut register.role);
            plain(&mut register.session_id);
            plain(&mut register.work_endpoint);
        }
        Control::Staged(staged) => {
            plain(&mut staged.request_id);
            plain(&mut staged.location.session_id);
        }
        // Kept whole, as they came.
        _ => {}
    }
    control
}
