//! The two processes between which bytes are moved, and the ways to move them.

use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tensorwire::message::CONTROL_MARKER;
use tensorwire::plane::{DataPlane, Region, RegionOptions, Transfer, shared};
use tensorwire::transfer::pool::{Landing, Slot};
use tensorwire::transport::zmq::{Context, Message, Pull, Push, Socket};
use tensorwire::transport::{Frames, Part, RecvFrames, SendFrames, Wait};

use super::common::folder::Folder;

/// The argument that makes this program the other process.
pub(crate) const THERE: &str = "there";

/// The most that is moved at a time.
pub(crate) const MOST: usize = 64 << 20;

/// What stands at the ends of what is moved.
const MARK: u8 = 0x5a;

/// A way to move bytes to the other process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Way {
    Ipc,
    Shared,
    Tcp,
}

impl Way {
    fn parse(text: &str) -> Self {
        match text {
            "Ipc" => Self::Ipc,
            "Shared" => Self::Shared,
            "Tcp" => Self::Tcp,
            other => panic!("no way is called {other}"),
        }
    }
}

/// Nanoseconds from the start of a move until it was seen, and until every byte of it was read.
#[derive(Clone, Copy)]
pub(crate) struct Took {
    pub(crate) seen: f64,
    pub(crate) read: f64,
}

/// The time by the clock that both processes share.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(since.as_nanos()).unwrap()
}

/// One of the two processes.
struct Side {
    plane: shared::Plane,
    region: Region,
    source: Option<Slot>,
    target: Option<Slot>,
    owned: Arc<[u8]>,
    /// Orders, answers, and the word that a push is over.
    push: Socket<Push>,
    pull: Socket<Pull>,
    ipc: (Socket<Push>, Socket<Pull>),
    tcp: (Socket<Push>, Socket<Pull>),
    message: Message,
}

impl Side {
    /// How long the registration took comes with it, in nanoseconds.
    fn plane(prefault: bool) -> (shared::Plane, Region, f64) {
        let mut plane = shared::Builder::new()
            .with_prefault(prefault)
            .build()
            .unwrap();
        let start = Instant::now();
        let region = plane.register(RegionOptions::new(2 * MOST)).unwrap();
        let took = start.elapsed().as_nanos() as f64;
        (plane, region, took)
    }

    fn new(
        (plane, region): (shared::Plane, Region),
        [signals, ipc, tcp]: [(Socket<Push>, Socket<Pull>); 3],
    ) -> Self {
        let [mut source, target] = [(); 2].map(|()| region.pool().allocate(MOST).unwrap());
        // Computed in place, as it were: the pages are there.
        region.bytes_mut(&mut source).unwrap().fill(MARK);
        let (push, pull) = signals;
        Self {
            plane,
            region,
            source: Some(source),
            target: Some(target),
            owned: vec![MARK; MOST].into(),
            push,
            pull,
            ipc,
            tcp,
            message: Message::default(),
        }
    }

    fn say(&mut self, text: &str) {
        self.push.send(&[text.as_bytes()]).unwrap();
    }

    fn hear(&mut self) -> String {
        self.pull.recv_into(&mut self.message).unwrap();
        let text = self.message.frames()[0].as_ref();
        String::from_utf8(text.to_vec()).unwrap()
    }

    /// Opens a window for the other side, and says where.
    fn open(&mut self, len: usize) -> (Landing, String) {
        let mut slot = self.target.take().unwrap();
        let bytes = self.region.bytes_mut(&mut slot).unwrap();
        // What is seen there afterwards has come from the other side. Other pages that
        // nobody has touched stay so.
        (bytes[0], bytes[len - 1]) = (0, 0);
        let landing = slot.open();
        let address = self.region.address_of(landing.offset()).unwrap();
        (landing, format!("{} {address}", self.plane.session_id()))
    }

    /// Moves `len` bytes, and says when it began.
    fn send(&mut self, way: Way, len: usize, to: &str) -> u64 {
        let socket = match way {
            Way::Ipc => &mut self.ipc.0,
            Way::Tcp => &mut self.tcp.0,
            Way::Shared => return self.push(len, to),
        };
        let payload: Arc<[u8]> = if len == MOST {
            Arc::clone(&self.owned)
        } else {
            self.owned[..len].into()
        };
        let start = now();
        let mut parts = vec![Part::from(CONTROL_MARKER), Part::from(payload)];
        socket.send_parts(&mut parts, Wait::Configured).unwrap();
        start
    }

    fn push(&mut self, len: usize, to: &str) -> u64 {
        let (session, address) = to.split_once(' ').unwrap();
        let address = address.parse().unwrap();
        let start = now();
        let mut transfer = Transfer::new(self.source.take().unwrap(), session);
        transfer.add_piece(0..len, address).unwrap();
        self.plane.push(transfer).unwrap();
        let completion = self.plane.poll_completion().unwrap();
        let (slot, result) = completion.into_parts();
        assert_eq!(result, Ok(len as u64));
        self.push.send(&[CONTROL_MARKER, b"pushed"]).unwrap();
        self.source = Some(slot);
        start
    }

    /// Waits for `len` bytes: when they were seen, and when they were read.
    fn receive(&mut self, way: Way, len: usize, landing: Landing) -> [u64; 2] {
        let pull = match way {
            Way::Ipc => &mut self.ipc.1,
            Way::Tcp => &mut self.tcp.1,
            Way::Shared => &mut self.pull,
        };
        pull.recv_into(&mut self.message).unwrap();
        let slot = landing.close().unwrap();
        let bytes = match way {
            Way::Shared => &self.region.bytes(&slot).unwrap()[..len],
            _ => self.message.frames()[1].as_ref(),
        };
        let ends = [bytes.first(), bytes.last()];
        let seen = now();
        assert_eq!((bytes.len(), ends), (len, [Some(&MARK); 2]));
        let words = bytes.chunks_exact(8);
        let sum = words.fold(0, |sum: u64, word| {
            sum.wrapping_add(u64::from_ne_bytes(word.try_into().unwrap()))
        });
        let read = now();
        assert_eq!(
            sum,
            (len as u64 / 8).wrapping_mul(u64::from_ne_bytes([MARK; 8]))
        );
        self.message.clear();
        self.target = Some(slot);
        [seen, read]
    }
}

/// The first process, which says what is moved.
pub(crate) struct Here {
    side: Side,
    process: Child,
    register: f64,
    _folder: Folder,
}

fn ipc(folder: &Path, name: &str) -> String {
    format!("ipc://{}/{name}", folder.display())
}

impl Here {
    pub(crate) fn start(prefault: bool) -> Self {
        let folder = Folder::new();
        let context = Context::new();
        let pull = |endpoint: &str| context.pull().bind(endpoint).unwrap();
        let [mut signals, data] = ["here", "here-data"].map(|name| pull(&ipc(folder.path(), name)));
        let tcp = pull("tcp://127.0.0.1:*");
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([THERE, tcp.endpoint()])
            .args([folder.path().as_os_str(), prefault.to_string().as_ref()])
            .spawn()
            .unwrap();
        let message = signals.recv();
        let Ok(message) = message else {
            let _ = process.kill();
            panic!("the other process does not come: {}", message.unwrap_err());
        };
        let there = String::from_utf8(message.frames()[0].as_ref().to_vec()).unwrap();
        let push = |endpoint: &str| context.push().connect(endpoint).unwrap();
        let [to_signals, to_data] =
            ["there", "there-data"].map(|name| push(&ipc(folder.path(), name)));
        let (plane, region, register) = Side::plane(prefault);
        let sockets = [(to_signals, signals), (to_data, data), (push(&there), tcp)];
        Self {
            side: Side::new((plane, region), sockets),
            process,
            register,
            _folder: folder,
        }
    }

    /// How long it took to register the pool, in nanoseconds.
    pub(crate) const fn register(&self) -> f64 {
        self.register
    }

    /// To the other process.
    pub(crate) fn there(&mut self, way: Way, len: usize) -> Took {
        let side = &mut self.side;
        side.say(&format!("receive {way:?} {len}"));
        let to = side.hear();
        let start = side.send(way, len, &to);
        let answer = side.hear();
        let (seen, read) = answer.split_once(' ').unwrap();
        took(start, [seen, read].map(|time| time.parse().unwrap()))
    }

    /// From the other process.
    pub(crate) fn back(&mut self, way: Way, len: usize) -> Took {
        let side = &mut self.side;
        let (landing, to) = side.open(len);
        side.say(&format!("send {way:?} {len} {to}"));
        let times = side.receive(way, len, landing);
        let start = side.hear().parse().unwrap();
        took(start, times)
    }

    pub(crate) fn finish(mut self) {
        self.side.say("stop");
        assert!(self.process.wait().unwrap().success());
    }
}

fn took(start: u64, [seen, read]: [u64; 2]) -> Took {
    let [seen, read] = [seen, read].map(|end| end.saturating_sub(start) as f64);
    Took { seen, read }
}

/// The other process: does as it is told.
pub(crate) fn there(arguments: &[String]) {
    let [tcp_here, folder, prefault] = arguments else {
        panic!("three arguments");
    };
    let folder = Path::new(folder);
    let context = Context::new();
    let pull = |endpoint: &str| context.pull().bind(endpoint).unwrap();
    let push = |endpoint: &str| context.push().connect(endpoint).unwrap();
    let [signals, data] = ["there", "there-data"].map(|name| pull(&ipc(folder, name)));
    let tcp = pull("tcp://127.0.0.1:*");
    let endpoint = tcp.endpoint().to_owned();
    let [to_signals, to_data] = ["here", "here-data"].map(|name| push(&ipc(folder, name)));
    let (plane, region, _) = Side::plane(prefault == "true");
    let sockets = [
        (to_signals, signals),
        (to_data, data),
        (push(tcp_here), tcp),
    ];
    let mut side = Side::new((plane, region), sockets);
    side.say(&endpoint);
    loop {
        let order = side.hear();
        let words: Vec<_> = order.splitn(4, ' ').collect();
        match words.as_slice() {
            ["receive", way, len] => {
                let len = len.parse().unwrap();
                let (landing, to) = side.open(len);
                side.say(&to);
                let [seen, read] = side.receive(Way::parse(way), len, landing);
                side.say(&format!("{seen} {read}"));
            }
            ["send", way, len, to] => {
                let start = side.send(Way::parse(way), len.parse().unwrap(), to);
                side.say(&start.to_string());
            }
            _ => return,
        }
    }
}
