//! ZeroMQ: each endpoint, and each kind of socket that sends to one receiver.

use std::error::Error;
#[cfg(feature = "tokio")]
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
#[cfg(feature = "tokio")]
use std::task::{self, Poll};
#[cfg(feature = "tokio")]
use std::time::Duration;

use tensorwire::transport::conformance::{Backend, Check, Setup};
#[cfg(feature = "tokio")]
use tensorwire::transport::tokio::{Direction, Readiness};
use tensorwire::transport::zmq::{Builder, Context, Kind, Socket};
use tensorwire::transport::{Counters, Observed, RecvFrames, SendFrames, Wait};

use crate::place::{Place, once_free};
use crate::{Planned, plan};

pub(crate) fn backends() -> Vec<Planned> {
    let push_pull = |name, place| Sockets {
        name,
        place,
        sender: Context::push,
        receiver: Context::pull,
        skips: None,
    };
    let inproc = || push_pull("zmq push/pull, inproc", Place::Inproc);
    let ipc = || push_pull("zmq push/pull, ipc", Place::Ipc);
    let tcp = || push_pull("zmq push/pull, tcp", Place::Tcp);
    vec![
        plan(inproc()),
        plan(ipc()),
        plan(tcp()),
        plan(Sockets {
            name: "zmq pair, tcp",
            place: Place::Tcp,
            sender: Context::pair,
            receiver: Context::pair,
            skips: Some((
                Check::SenderRestart,
                "a PAIR socket turns away who comes while the one before has messages left",
            )),
        }),
        plan(Sockets {
            name: "zmq dealer/router, tcp",
            place: Place::Tcp,
            sender: Context::dealer,
            receiver: Context::router,
            skips: None,
        }),
        #[cfg(feature = "tokio")]
        crate::awaited::plan_awaited(inproc()),
        #[cfg(feature = "tokio")]
        crate::awaited::plan_awaited(ipc()),
        #[cfg(feature = "tokio")]
        crate::awaited::plan_awaited(tcp()),
    ]
}

/// A socket of one kind that connects to one of another.
struct Sockets<S, R> {
    name: &'static str,
    place: Place,
    sender: fn(&Context) -> Builder<S>,
    receiver: fn(&Context) -> Builder<R>,
    skips: Option<(Check, &'static str)>,
}

impl<S: Kind, R: Kind> Sockets<S, R> {
    fn bind(
        &self,
        context: &Context,
        endpoint: &str,
        setup: &Setup,
    ) -> Result<Socket<R>, Box<dyn Error + Send + Sync>> {
        once_free(|| {
            let builder = (self.receiver)(context)
                .caps(setup.caps())
                .recv_high_water(setup.high_water())
                .recv_timeout(Some(setup.timeout()));
            builder.bind(endpoint)
        })
    }

    fn connect(
        &self,
        context: &Context,
        endpoint: &str,
        setup: &Setup,
    ) -> Result<Socket<S>, Box<dyn Error + Send + Sync>> {
        let builder = (self.sender)(context)
            .send_high_water(setup.high_water())
            .send_timeout(Some(setup.timeout()))
            .linger(setup.linger());
        Ok(builder.connect(endpoint)?)
    }
}

impl<S, R> Backend for Sockets<S, R>
where
    S: Kind + Send + 'static,
    R: Kind + Send + 'static,
    Socket<S>: SendFrames,
    Socket<R>: RecvFrames,
{
    type Sender = Socket<S>;
    type Receiver = Bound<Socket<R>>;

    fn name(&self) -> &str {
        self.name
    }

    fn open(
        &self,
        setup: &Setup,
    ) -> Result<(Socket<S>, Bound<Socket<R>>), Box<dyn Error + Send + Sync>> {
        let context = Context::new();
        let file = (self.place == Place::Ipc).then(|| Arc::new(SocketFile::new()));
        let endpoint = match self.place {
            Place::Inproc => "inproc://conformance".to_owned(),
            Place::Ipc => file
                .as_ref()
                .map(|file| file.endpoint())
                .unwrap_or_default(),
            Place::Tcp => "tcp://127.0.0.1:*".to_owned(),
        };
        let socket = self.bind(&context, &endpoint, setup)?;
        let sender = self.connect(&context, socket.endpoint(), setup)?;
        Ok((sender, Bound { socket, file }))
    }

    fn restart_receiver(
        &self,
        receiver: Bound<Socket<R>>,
        setup: &Setup,
    ) -> Result<Option<Bound<Socket<R>>>, Box<dyn Error + Send + Sync>> {
        if self.place == Place::Inproc {
            return Ok(None);
        }
        let Bound { socket, file } = receiver;
        let (context, endpoint) = (socket.context().clone(), socket.endpoint().to_owned());
        drop(socket);
        let socket = self.bind(&context, &endpoint, setup)?;
        Ok(Some(Bound { socket, file }))
    }

    fn restart_sender(
        &self,
        sender: Socket<S>,
        setup: &Setup,
    ) -> Result<Option<Socket<S>>, Box<dyn Error + Send + Sync>> {
        let (context, endpoint) = (sender.context().clone(), sender.endpoint().to_owned());
        drop(sender);
        self.connect(&context, &endpoint, setup).map(Some)
    }

    fn sender_counters(&self, sender: &Socket<S>) -> Option<Counters> {
        Some(sender.counters())
    }

    fn receiver_counters(&self, receiver: &Bound<Socket<R>>) -> Option<Counters> {
        Some(receiver.socket.counters())
    }

    fn skip(&self, check: Check) -> Option<&'static str> {
        let (skipped, reason) = self.skips?;
        (skipped == check).then_some(reason)
    }
}

/// A socket that is bound, and the file that it is bound to.
struct Bound<S> {
    socket: S,
    file: Option<Arc<SocketFile>>,
}

impl<S: RecvFrames> RecvFrames for Bound<S> {
    type Message = S::Message;
    type RecvError = S::RecvError;

    fn recv_frames(&mut self, message: &mut S::Message, wait: Wait) -> Result<(), S::RecvError> {
        self.socket.recv_frames(message, wait)
    }
}

#[cfg(feature = "tokio")]
impl<S: Readiness> Readiness for Bound<S> {
    type Registration = S::Registration;

    fn register(&mut self) -> io::Result<S::Registration> {
        self.socket.register()
    }

    fn poll_ready(
        &mut self,
        registration: &mut S::Registration,
        direction: Direction,
        cx: &mut task::Context<'_>,
    ) -> Poll<io::Result<()>> {
        self.socket.poll_ready(registration, direction, cx)
    }

    fn timeout(&self, direction: Direction) -> Option<Duration> {
        self.socket.timeout(direction)
    }
}

/// A file for an endpoint, which libzmq leaves behind: removed in the end.
struct SocketFile(PathBuf);

impl SocketFile {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tensorwire-conformance-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn endpoint(&self) -> String {
        format!("ipc://{}", self.0.display())
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // It need not be there.
        let _ = std::fs::remove_file(&self.0);
    }
}
