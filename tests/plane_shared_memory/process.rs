//! Other processes: this program again, doing as it is told.

use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use tensorwire::plane::DataPlane;
use tensorwire::plane::shared::Builder;
use tensorwire::transfer::pool::Landing;

use crate::{Folder, Numbers, alone, filled, is_filled, processes, push, push_slot, register};

const MARK: &str = "@@ ";

/// Another process, which does not live on.
pub(crate) struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts one that has the part of the test of this name in this file.
    pub(crate) fn start(part: &str, folder: &Folder, arguments: &[&str]) -> Self {
        let arguments = [&[folder.text()], arguments].concat();
        let mut command = alone::command(&format!("process::{part}"), &arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            input,
            output,
        }
    }

    pub(crate) fn say(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    /// What it says next.
    pub(crate) fn hear(&mut self) -> String {
        loop {
            let mut line = String::new();
            let len = self.output.read_line(&mut line).unwrap();
            assert!(len > 0, "the other process said nothing, and ended");
            if let Some((_, said)) = line.trim_end().split_once(MARK) {
                return said.to_owned();
            }
        }
    }

    pub(crate) fn ask(&mut self, line: &str) -> String {
        self.say(line);
        self.hear()
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Another signal, by its name.
    pub(crate) fn signal(&self, name: &str) {
        processes::signal(name, self.child.id());
    }

    /// Lets it end by itself, which has to go well.
    pub(crate) fn end(mut self) {
        self.say("end");
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn tell(text: &str) {
    println!("{MARK}{text}");
}

/// What the other process is given: the folder, and more.
fn arguments() -> Option<(String, Vec<String>)> {
    let mut arguments = alone::arguments();
    if arguments.is_empty() {
        return None;
    }
    let folder = arguments.remove(0);
    Some((folder, arguments))
}

fn lines() -> impl Iterator<Item = Vec<String>> {
    let lines = io::stdin().lines().map(Result::unwrap);
    let lines = lines.take_while(|line| line != "end");
    lines.map(|line| line.split_whitespace().map(str::to_owned).collect())
}

/// A worker with a pool: opens, closes and pushes as it is told.
#[test]
#[ignore = "a process of other tests"]
fn worker() {
    let Some((folder, more)) = arguments() else {
        return;
    };
    let mut plane = Builder::new().with_folder(folder).build().unwrap();
    let region = register(&mut plane, more[0].parse().unwrap());
    let mut landings: Vec<Option<Landing>> = Vec::new();
    tell(plane.session_id());
    for line in lines() {
        let number = |at: usize| line[at].parse::<u64>().unwrap();
        match line[0].as_str() {
            // Length.
            "open" => {
                let landing = region.pool().allocate(number(1) as usize).unwrap().open();
                tell(&region.address_of(landing.offset()).unwrap().to_string());
                landings.push(Some(landing));
            }
            // Which landing, seed, length.
            "close" => {
                let landing = landings[number(1) as usize].take().unwrap();
                let slot = landing.close().unwrap();
                let bytes = &region.bytes(&slot).unwrap()[..number(3) as usize];
                tell(if is_filled(bytes, number(2)) {
                    "good"
                } else {
                    "bad"
                });
            }
            // Session, address, seed, length.
            "push" => {
                let what = (number(3), number(4) as usize);
                let result = push(&mut plane, &region, what, &line[1], number(2));
                tell(&format!("{result:?}"));
            }
            other => panic!("{other}"),
        }
    }
    drop(landings);
    assert_eq!(region.pool().stats().allocated_bytes(), 0);
}

/// Pushes its whole slot to the same place, again and again.
#[test]
#[ignore = "a process of other tests"]
fn pusher() {
    let Some((folder, more)) = arguments() else {
        return;
    };
    let mut plane = Builder::new().with_folder(folder).build().unwrap();
    let (session, address) = (&more[0], more[1].parse().unwrap());
    let len = more[2].parse().unwrap();
    let region = register(&mut plane, len);
    let mut slot = filled(&region, len, 7);
    tell("ready");
    loop {
        let result;
        (slot, result) = push_slot(&mut plane, slot, len, session, address);
        if more.len() > 3 {
            // Once, or what went wrong.
            tell(&format!("{result:?}"));
            return;
        }
    }
}

/// Fills windows, each push with one number, its own.
#[test]
#[ignore = "a process of other tests"]
fn hammer() {
    let Some((folder, more)) = arguments() else {
        return;
    };
    let mut plane = Builder::new().with_folder(folder).build().unwrap();
    let session = &more[0];
    let (id, len): (u64, usize) = (more[1].parse().unwrap(), more[2].parse().unwrap());
    let rounds: u64 = more[3].parse().unwrap();
    let addresses: Vec<u64> = more[4..].iter().map(|text| text.parse().unwrap()).collect();
    let region = register(&mut plane, len);
    let mut slot = region.pool().allocate(len).unwrap();
    let mut numbers = Numbers(id);
    let (mut done, mut refused) = (0_u64, 0_u64);
    tell("ready");
    while done < rounds {
        let value = id << 32 | done;
        for word in region.bytes_mut(&mut slot).unwrap().chunks_exact_mut(8) {
            word.copy_from_slice(&value.to_le_bytes());
        }
        let address = addresses[numbers.below(addresses.len())];
        let result;
        (slot, result) = push_slot(&mut plane, slot, len, session, address);
        match result {
            Ok(bytes) => {
                assert_eq!(bytes, len as u64);
                done += 1;
            }
            Err(kind) => {
                let kind = format!("{kind:?}");
                assert!(["Busy", "Closed"].contains(&kind.as_str()), "{kind}");
                refused += 1;
                std::thread::yield_now();
            }
        }
    }
    tell(&format!("{done} {refused}"));
}

/// Writes garbage over the first bytes of a file until it is killed.
#[test]
#[ignore = "a process of other tests"]
fn scribbler() {
    let Some((_, more)) = arguments() else { return };
    let file = OpenOptions::new().write(true).open(&more[0]).unwrap();
    let len: usize = more[1].parse().unwrap();
    let mut numbers = Numbers(1);
    tell("ready");
    loop {
        let mut garbage = vec![0_u8; len];
        for word in garbage.chunks_exact_mut(8) {
            // Writers, lengths and generations that may be ones, closed windows, and nonsense.
            let shift = [0, 0, 42, 44, 64][numbers.below(5)];
            let number = numbers.next().checked_shr(shift).unwrap_or(0);
            word.copy_from_slice(&number.to_ne_bytes());
        }
        file.write_all_at(&garbage, 0).unwrap();
    }
}
