//! What people see: the tool on a terminal of its own.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::support::{Process, command, drain, folder, send_to, text, write_bundle};

/// The tool on a terminal of so many columns.
pub(crate) struct Terminal {
    child: Child,
    master: File,
}

impl Terminal {
    pub(crate) fn start(columns: u16, mut command: Command, stderr_too: bool) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize {
            ws_row: 24,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&master, size).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let end = OpenOptions::new()
            .read(true)
            .write(true)
            .open(name.to_str().unwrap())
            .unwrap();
        let end = OwnedFd::from(end);
        let again = || Stdio::from(end.try_clone().unwrap());
        command.stdin(again()).stdout(again());
        command.stderr(if stderr_too { again() } else { Stdio::null() });
        let child = command.spawn().unwrap();
        // The ends that `command` has are closed with it: the child's are the last.
        drop(command);
        Self {
            child,
            master: File::from(master),
        }
    }

    /// What was on it when the tool had ended, and the exit code.
    pub(crate) fn end(mut self) -> (String, Option<i32>) {
        let bytes = drain(&self.master);
        let status = self.child.wait().unwrap();
        (String::from_utf8(bytes).unwrap(), status.code())
    }
}

/// The text without colours; panics at any other control sequence.
fn plain(screen: &str) -> String {
    let mut plain = String::new();
    let mut parts = screen.split("\u{1b}[");
    plain.push_str(parts.next().unwrap());
    for part in parts {
        let (colour, rest) = part.split_once('m').unwrap();
        assert!(
            colour.bytes().all(|byte| byte.is_ascii_digit()),
            "{colour:?}"
        );
        plain.push_str(rest);
    }
    plain.replace("\r\n", "\n")
}

/// The same of a screen that nobody else has written to: no control character, no turn of direction.
fn harmless(screen: &str) -> String {
    let plain = plain(screen);
    let raw = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
    assert!(!plain.contains(raw), "{plain:?}");
    plain
}

/// A message as nobody wants to see it: names and scalars that write to terminals.
fn hostile() -> Vec<Vec<u8>> {
    let name = "\\u001b[2J\\u0007\u{9b}31m\u{7f}\u{202e}";
    let metadata = format!(
        "{{\"tensor_descriptors\":[{{\"field_name\":\"{name}\",\"shape\":[3],\"dtype\":\"bool\"}}],\
         \"scalar_fields\":{{ \r\n\t\"{name}\":\"{name}\",\"l\":[\"{name}\"]}}}}"
    );
    vec![metadata.into_bytes(), vec![0, 1, 9]]
}

fn wide() -> Vec<Vec<u8>> {
    let name = "a_rather_long_name_of_a_tensor_".repeat(5);
    let metadata = format!(
        "{{\"tensor_descriptors\":[{{\"field_name\":\"{name}\",\"shape\":[1,1,1,1,1,1,1,1,1,4],\"dtype\":\"float64\"}}],\
         \"scalar_fields\":{{\"request_id\":\"r1\"}}}}"
    );
    vec![
        metadata.into_bytes(),
        [0.1_f64, 1e-300, f64::NAN, -1e300]
            .map(f64::to_le_bytes)
            .concat(),
    ]
}

#[test]
fn the_table_fits_the_width_of_the_terminal() {
    let folder = folder();
    let bundle = write_bundle(folder.path(), "m.bundle", &wide());
    let bundle = bundle.to_str().unwrap();
    for columns in [20, 40, 60, 80, 132, 300] {
        for arguments in [
            &["inspect", "--bundle", bundle][..],
            &["inspect", "--stats", "--bundle", bundle],
        ] {
            let (screen, code) = Terminal::start(columns, command(arguments), true).end();
            assert_eq!(code, Some(0), "{screen}");
            assert!(screen.contains("\u{1b}[1m"), "no colours: {screen:?}");
            let table = plain(&screen);
            assert!(
                table.contains("name") && table.contains("request_id: \"r1\""),
                "{table}"
            );
            for line in table.lines().take(3) {
                assert!(
                    line.chars().count() <= usize::from(columns),
                    "{columns}: {line}"
                );
            }
            if columns == 300 {
                assert!(table.contains("[1,1,1,1,1,1,1,1,1,4]"), "{table}");
            }
        }
    }
}

#[test]
fn colours_are_for_terminals_only_and_off_with_no_color() {
    let folder = folder();
    let bundle = write_bundle(folder.path(), "m.bundle", &wide());
    let arguments = ["inspect", "--bundle", bundle.to_str().unwrap()];
    let mut without = command(arguments);
    without.env("NO_COLOR", "1");
    let (screen, code) = Terminal::start(80, without, true).end();
    assert_eq!(code, Some(0));
    assert!(
        screen.contains("request_id") && !screen.contains('\u{1b}'),
        "{screen:?}"
    );
    let piped = command(arguments).output().unwrap();
    assert!(!text(&piped.stdout).contains('\u{1b}'));
    // JSON has none, wherever it goes.
    let (screen, _) = Terminal::start(
        80,
        command(["inspect", "--json", "--bundle", arguments[2]]),
        true,
    )
    .end();
    assert!(
        screen.starts_with("{\"kind\"") && !screen.contains('\u{1b}'),
        "{screen:?}"
    );
}

#[test]
fn nothing_that_a_peer_wrote_reaches_the_terminal_raw() {
    let folder = folder();
    let bundle = write_bundle(folder.path(), "m.bundle", &hostile());
    let bundle = bundle.to_str().unwrap();
    for arguments in [
        &["inspect", "--bundle", bundle][..],
        &["inspect", "--stats", "--bundle", bundle],
        &["inspect", "--json", "--bundle", bundle],
    ] {
        let (screen, code) = Terminal::start(200, command(arguments), true).end();
        assert_eq!(code, Some(0), "{screen:?}");
        let plain = harmless(&screen);
        assert!(plain.contains("[2J"), "{plain}");
    }
    // On a pipe the scalars are what came, byte for byte.
    let piped = command(["inspect", "--json", "--bundle", bundle])
        .output()
        .unwrap();
    assert!(text(&piped.stdout).contains("{ \r\n\t\"\\u001b[2J\\u0007\u{9b}31m\u{7f}\u{202e}\":"));
}

/// An argument may be the name of a file that somebody else has made up.
#[test]
fn nothing_of_a_mistaken_argument_reaches_the_terminal_raw() {
    let name = "\u{1b}[2J\u{1b}]0;x\u{7}\u{202e}";
    let option = format!("--{name}");
    for (arguments, says) in [
        (&["inspect", &option][..], "unexpected argument"),
        (&[name], "unrecognized subcommand"),
        (&["convert", "--to", name, "a", "b"], "possible values"),
        (&["inspect", name], "cannot read"),
        (&["convert", name, "x.npz"], "cannot read"),
        (
            &["convert", "a.npz", name],
            "say what it is to be with --to",
        ),
        (&["man", name], "no command"),
    ] {
        let (screen, code) = Terminal::start(200, command(arguments), true).end();
        assert!(matches!(code, Some(1 | 2)), "{screen:?}");
        let plain = harmless(&screen);
        assert!(plain.contains(says), "{plain}");
    }
    // What is harmless has its colours.
    let (screen, _) = Terminal::start(200, command(["inspct"]), true).end();
    assert!(screen.contains("\u{1b}[") && screen.contains("inspct"));
    let (screen, code) = Terminal::start(200, command(["inspect", "--help", name]), true).end();
    assert_eq!(code, Some(0), "{screen:?}");
    assert!(
        screen.contains("Usage:") && !screen.contains("[2J"),
        "{screen:?}"
    );
}

#[test]
fn the_rate_is_shown_on_a_terminal_alone() {
    let folder = folder();
    let bundle = write_bundle(folder.path(), "m.bundle", &wide());
    let endpoint = folder.ipc("rate");
    let receive = "recv --json --count 8 --timeout 60 --bind";
    let send = || {
        let bundle = bundle.to_str().unwrap();
        send_to(&endpoint, &["--count", "8", "--rate", "20", bundle]);
    };
    let tool = command(receive.split(' ').chain([&*endpoint]));
    let terminal = Terminal::start(100, tool, true);
    send();
    let (screen, code) = terminal.end();
    assert_eq!(code, Some(0), "{screen:?}");
    let line = |screen: &str| {
        screen
            .split(['\r', '\n'])
            .filter(|line| line.contains("messages/s"))
            .count()
    };
    // Several times while messages come, and once more as the summary.
    assert!(line(&screen) >= 3, "{screen:?}");
    assert_eq!(
        screen.matches("{\"kind\":\"tensors\"").count(),
        8,
        "{screen:?}"
    );

    let receiver = Process::words(receive, &[&endpoint]);
    receiver.bound();
    send();
    let (code, lines, notes) = receiver.end();
    assert_eq!((code, lines.len()), (Some(0), 8));
    assert!(!notes.concat().contains(['\r', '\u{1b}']), "{notes:?}");
    assert_eq!(notes.len(), 1, "{notes:?}");
}

#[test]
fn the_histogram_of_a_measurement_fits_the_terminal() {
    let arguments = ["bench", "--size", "1KiB", "--duration", "0.2"];
    let (screen, code) = Terminal::start(60, command(arguments), false).end();
    assert_eq!(code, Some(0), "{screen:?}");
    let screen = plain(&screen);
    assert!(
        screen.contains('█') && screen.contains("p99.9") && screen.contains("messages/s"),
        "{screen}"
    );
    for line in screen.lines() {
        assert!(line.chars().count() <= 60, "{line}");
    }
}

/// The key reaches whoever has the terminal, which a session of its own gives it.
#[test]
fn ctrl_c_on_the_keyboard_ends_a_receiver_with_a_summary() {
    let folder = folder();
    let endpoint = folder.ipc("keyboard");
    let tool = command(["recv", "--bind", &endpoint]);
    let mut session = Command::new("setsid");
    session.args(["--ctty", "--wait"]).arg(tool.get_program());
    session.args(tool.get_args());
    let mut terminal = Terminal::start(80, session, true);
    let mut screen = Vec::new();
    // From then on it watches for the key.
    while !text(&screen).contains("bound to ") {
        let mut bytes = [0; 1024];
        let count = terminal.master.read(&mut bytes).unwrap();
        screen.extend_from_slice(&bytes[..count]);
    }
    terminal.master.write_all(b"\x03").unwrap();
    let (screen, code) = terminal.end();
    assert_eq!(code, Some(130), "{screen:?}");
    assert!(screen.contains("received 0 messages, 0 B"), "{screen:?}");
}
