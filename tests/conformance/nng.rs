//! NNG: each endpoint, and each kind of socket that sends to one receiver.

use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};

use tensorwire::transport::conformance::{Backend, Check, Setup};
use tensorwire::transport::nng::{Builder, Context, Kind, Receives, Sends, Socket};
use tensorwire::transport::{Counters, Observed};

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
    let inproc = || push_pull("nng push/pull, inproc", Place::Inproc);
    let ipc = || push_pull("nng push/pull, ipc", Place::Ipc);
    let tcp = || push_pull("nng push/pull, tcp", Place::Tcp);
    let pair = Some((
        Check::SenderRestart,
        "a PAIR socket that has a peer turns away who dials, and with it what it sent",
    ));
    vec![
        plan(inproc()),
        plan(ipc()),
        plan(tcp()),
        plan(Sockets {
            name: "nng pair0, ipc",
            place: Place::Ipc,
            sender: Context::pair0,
            receiver: Context::pair0,
            skips: pair,
        }),
        plan(Sockets {
            name: "nng pair1, tcp",
            place: Place::Tcp,
            sender: Context::pair1,
            receiver: Context::pair1,
            skips: pair,
        }),
        #[cfg(feature = "tokio")]
        crate::awaited::plan_awaited(inproc()),
        #[cfg(feature = "tokio")]
        crate::awaited::plan_awaited(ipc()),
        #[cfg(feature = "tokio")]
        crate::awaited::plan_awaited(tcp()),
    ]
}

/// A socket of one kind that dials one of another.
struct Sockets<S, R> {
    name: &'static str,
    place: Place,
    sender: fn(&Context) -> Builder<S>,
    receiver: fn(&Context) -> Builder<R>,
    skips: Option<(Check, &'static str)>,
}

impl<S: Kind, R: Kind> Sockets<S, R> {
    fn listen(
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
            builder.listen(endpoint)
        })
    }

    fn dial(
        &self,
        context: &Context,
        endpoint: &str,
        setup: &Setup,
    ) -> Result<Socket<S>, Box<dyn Error + Send + Sync>> {
        let builder = (self.sender)(context)
            .send_high_water(setup.high_water())
            .send_timeout(Some(setup.timeout()))
            .linger(setup.linger());
        Ok(builder.dial(endpoint)?)
    }
}

impl<S, R> Backend for Sockets<S, R>
where
    S: Sends + Send + 'static,
    R: Receives + Send + 'static,
{
    type Sender = Socket<S>;
    type Receiver = Socket<R>;

    fn name(&self) -> &str {
        self.name
    }

    fn open(&self, setup: &Setup) -> Result<(Socket<S>, Socket<R>), Box<dyn Error + Send + Sync>> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tensorwire-nng-{}-{number}", std::process::id());
        let endpoint = match self.place {
            Place::Inproc => format!("inproc://{name}"),
            // NNG removes the file.
            Place::Ipc => format!("ipc://{}", std::env::temp_dir().join(name).display()),
            Place::Tcp => "tcp://127.0.0.1:0".to_owned(),
        };
        let context = Context::new();
        let receiver = self.listen(&context, &endpoint, setup)?;
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
