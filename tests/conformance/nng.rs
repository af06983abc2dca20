//! NNG: each endpoint, and each kind of socket that sends to one receiver.

use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tensorwire::transport::conformance::{Backend, Check, Setup};
use tensorwire::transport::nng::{Builder, Context, Kind, Pull, Push, Socket};
use tensorwire::transport::{Counters, Observed, RecvFrames, SendFrames};

use crate::{Planned, plan};

pub(crate) fn backends() -> Vec<Planned> {
    vec![
        plan(push_pull("nng push/pull, inproc", Place::Inproc)),
        plan(push_pull("nng push/pull, ipc", Place::Ipc)),
        plan(push_pull("nng push/pull, tcp", Place::Tcp)),
        plan(Sockets {
            name: "nng pair0, tcp",
            place: Place::Tcp,
            sender: Context::pair0,
            receiver: Context::pair0,
            skips: PAIR,
        }),
        plan(Sockets {
            name: "nng pair1, inproc",
            place: Place::Inproc,
            sender: Context::pair1,
            receiver: Context::pair1,
            skips: PAIR,
        }),
    ]
}

fn push_pull(name: &'static str, place: Place) -> Sockets<Push, Pull> {
    Sockets {
        name,
        place,
        sender: Context::push,
        receiver: Context::pull,
        skips: None,
    }
}

#[derive(Clone, Copy)]
enum Place {
    Inproc,
    Ipc,
    Tcp,
}

impl Place {
    /// An endpoint that is nobody else's. NNG removes its file.
    fn endpoint(self) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        match self {
            Self::Inproc => format!("inproc://conformance-{number}"),
            Self::Ipc => {
                let name = format!("tensorwire-conformance-nng-{}-{number}", std::process::id());
                format!("ipc://{}", std::env::temp_dir().join(name).display())
            }
            Self::Tcp => "tcp://127.0.0.1:0".to_owned(),
        }
    }
}

/// A socket of one kind that dials one of another.
struct Sockets<S, R> {
    name: &'static str,
    place: Place,
    sender: fn(&Context) -> Builder<S>,
    receiver: fn(&Context) -> Builder<R>,
    skips: Option<(Check, &'static str)>,
}

const PAIR: Option<(Check, &str)> = Some((
    Check::SenderRestart,
    "a Pair socket turns away who comes while the one before has messages left",
));

fn set_up<K: Kind>(builder: Builder<K>, setup: &Setup) -> Builder<K> {
    builder
        .caps(setup.caps())
        .recv_high_water(setup.high_water())
        .send_high_water(setup.high_water())
        .recv_timeout(Some(setup.timeout()))
        .send_timeout(Some(setup.timeout()))
        .linger(setup.linger())
}

impl<S: Kind, R: Kind> Sockets<S, R> {
    fn listen(
        &self,
        context: &Context,
        endpoint: &str,
        setup: &Setup,
    ) -> Result<Socket<R>, Box<dyn Error + Send + Sync>> {
        // A socket that was dropped may hold its endpoint a little longer.
        let start = Instant::now();
        loop {
            match set_up((self.receiver)(context), setup).listen(endpoint) {
                Ok(socket) => return Ok(socket),
                Err(error) if start.elapsed() > Duration::from_secs(10) => {
                    return Err(error.into());
                }
                Err(_) => thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    fn dial(
        &self,
        context: &Context,
        endpoint: &str,
        setup: &Setup,
    ) -> Result<Socket<S>, Box<dyn Error + Send + Sync>> {
        Ok(set_up((self.sender)(context), setup).dial(endpoint)?)
    }
}

impl<S, R> Backend for Sockets<S, R>
where
    S: Kind + Send + 'static,
    R: Kind + Send + 'static,
    Socket<S>: SendFrames + Send,
    Socket<R>: RecvFrames + Send,
{
    type Sender = Socket<S>;
    type Receiver = Socket<R>;

    fn name(&self) -> &str {
        self.name
    }

    fn open(&self, setup: &Setup) -> Result<(Socket<S>, Socket<R>), Box<dyn Error + Send + Sync>> {
        let context = Context::new();
        let receiver = self.listen(&context, &self.place.endpoint(), setup)?;
        let sender = self.dial(&context, receiver.endpoint(), setup)?;
        Ok((sender, receiver))
    }

    fn restart_receiver(
        &self,
        receiver: Socket<R>,
        setup: &Setup,
    ) -> Result<Option<Socket<R>>, Box<dyn Error + Send + Sync>> {
        let (context, endpoint) = (receiver.context().clone(), receiver.endpoint().to_owned());
        drop(receiver);
        self.listen(&context, &endpoint, setup).map(Some)
    }

    fn restart_sender(
        &self,
        sender: Socket<S>,
        setup: &Setup,
    ) -> Result<Option<Socket<S>>, Box<dyn Error + Send + Sync>> {
        let (context, endpoint) = (sender.context().clone(), sender.endpoint().to_owned());
        drop(sender);
        self.dial(&context, &endpoint, setup).map(Some)
    }

    fn sender_counters(&self, sender: &Socket<S>) -> Option<Counters> {
        Some(sender.counters())
    }

    fn receiver_counters(&self, receiver: &Socket<R>) -> Option<Counters> {
        Some(receiver.counters())
    }

    fn skip(&self, check: Check) -> Option<&'static str> {
        let (skipped, reason) = self.skips?;
        (skipped == check).then_some(reason)
    }
}
