//! A worker, with what its driver and its local worker hold of it.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use tensorwire::json::{Object, Str, Value};
use tensorwire::message::{CONTROL_MARKER, NO_SCALARS};
use tensorwire::transfer::message::{Abort, Alloc, Outcome, Pushed, Ready, RegisterAck};
use tensorwire::transfer::pool::{Pool, Slot, WindowTable, Writing};
use tensorwire::transfer::worker::{
    CallError, Ending, Event, Input, Job, Outgoing, Output, ProtocolError, PushOrder, Received,
    Settings, Site, Step,
};
use tensorwire::transfer::{Control, Instance, RequestId, Role};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const ADDRESS: u64 = 0x7f00_0000_0000;
pub(crate) const BLOCK: usize = 1024;
/// Eight bytes at the start of a slot.
pub(crate) const MANIFEST: &str = r#"{"x":[{"offset":0,"shape":[2],"dtype":"float32"}]}"#;
/// More bytes than a slot has.
pub(crate) const TOO_LONG: &str = r#"{"x":[{"offset":0,"shape":[2000],"dtype":"uint8"}]}"#;

pub(crate) fn object(json: &str) -> Object<'_> {
    Value::parse(json.as_bytes()).unwrap().as_object().unwrap()
}

pub(crate) fn text(json: &str) -> Str<'_> {
    Value::parse(json.as_bytes()).unwrap().as_str().unwrap()
}

/// A worker of four blocks, with what its driver and its local worker hold.
pub(crate) struct Bed {
    pub(crate) instance: Instance,
    pub(crate) pool: Pool,
    pub(crate) table: WindowTable,
    pub(crate) now: Duration,
    /// Of the last life of "r".
    pub(crate) job: Option<Job>,
    pub(crate) received: Option<Received>,
    pub(crate) order: Option<PushOrder>,
    pub(crate) slot_id: u64,
    pub(crate) slot_offset: u64,
    pub(crate) writing: Option<Writing>,
    /// What fills the pool.
    pub(crate) ballast: Vec<Slot>,
    /// What was sent, and what happened, since the last look.
    pub(crate) log: String,
}

impl Bed {
    pub(crate) fn new(role: Role) -> Self {
        let settings = Settings::new()
            .with_preallocated(usize::from(!role.is_first()), BLOCK)
            .with_max_requests(8)
            .with_alloc_timeout(10 * SECOND)
            .with_fill_timeout(20 * SECOND)
            .with_work_timeout(30 * SECOND)
            .with_stage_timeout(40 * SECOND);
        Self::with_settings(role, settings)
    }

    pub(crate) fn with_settings(role: Role, settings: Settings) -> Self {
        let table = WindowTable::new();
        let pool = Pool::with_windows(4 * BLOCK, BLOCK, Arc::new(table.clone())).unwrap();
        let site = Site::new("here", ADDRESS, pool.clone(), "tcp://127.0.0.1:5571");
        let mut bed = Self {
            instance: Instance::new(role, site, settings).unwrap(),
            pool,
            table,
            now: SECOND,
            job: None,
            received: None,
            order: None,
            slot_id: 0,
            slot_offset: 0,
            writing: None,
            ballast: Vec::new(),
            log: String::new(),
        };
        let registered = bed.transmit().remove(0);
        let Control::Register(register) = Control::decode(&registered).unwrap() else {
            panic!("the first message is no registration");
        };
        assert!(register.session_id == "here");
        if let Some(slot) = register.preallocated_slots.iter().next() {
            bed.slot_id = slot.slot_id;
            bed.slot_offset = slot.offset;
            assert_eq!(slot.addr, ADDRESS + slot.offset);
        }
        bed
    }

    /// The payloads of what is to be sent.
    pub(crate) fn transmit(&mut self) -> Vec<Vec<u8>> {
        let mut sent = Vec::new();
        let mut buffer = Vec::new();
        while let Some(outgoing) = self.instance.poll_transmit(&mut buffer) {
            assert_eq!(
                outgoing.frames(&buffer).len(),
                1 + usize::from(outgoing == Outgoing::Control)
            );
            sent.push(buffer.clone());
        }
        sent
    }

    /// Takes what the machine has to tell, and keeps what its driver would.
    pub(crate) fn look(&mut self) {
        for payload in self.transmit() {
            let name = match Control::decode(&payload) {
                Ok(Control::Allocated(_)) => "ALLOCATED",
                Ok(Control::Done(done)) => match done.outcome {
                    Outcome::Failed(_) => "ERROR",
                    _ => "DONE",
                },
                Ok(Control::Pushed(_)) => "PUSHED",
                Ok(Control::Staged(_)) => "STAGED",
                Ok(other) => panic!("{other:?}"),
                Err(_) => {
                    let json = std::str::from_utf8(&payload).unwrap();
                    assert!(json.contains("rror\":\""), "{json}");
                    "ERROR"
                }
            };
            write!(self.log, " {name}").unwrap();
        }
        while let Some(event) = self.instance.poll_event() {
            match event {
                Event::Over { job, ending } => {
                    assert!(job.request() == "r" || job.request() == "other");
                    let ending = match ending {
                        Ending::Aborted => "aborted",
                        Ending::Expired => "expired",
                        Ending::PushFailed => "push-failed",
                        Ending::Pushed { .. } => "moved",
                        other => panic!("{other:?}"),
                    };
                    write!(self.log, " {ending}").unwrap();
                }
                Event::Ready(received) => {
                    self.log.push_str(" ready");
                    self.job = Some(received.job().clone());
                    self.received = Some(received);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    pub(crate) fn control<'a>(
        &mut self,
        message: impl Into<Control<'a>>,
    ) -> Result<(), ProtocolError> {
        let message = message.into();
        self.instance.handle(&message, self.now)
    }

    pub(crate) fn work(&mut self, id: &str) -> Result<(), ProtocolError> {
        let frames = [id.as_bytes(), b"pickle"];
        let input = self.instance.handle_frames(&frames, self.now)?;
        let Input::Work { job, payload } = input else {
            panic!("{input:?}");
        };
        assert_eq!(
            (job.request(), payload),
            (&RequestId::from(id), &b"pickle"[..])
        );
        self.job = Some(job);
        Ok(())
    }

    pub(crate) fn abort(&mut self) -> Result<(), ProtocolError> {
        let payload = Abort::new("r", "", "timed out").to_vec();
        self.instance
            .handle_frames(&[CONTROL_MARKER, &payload], self.now)?;
        Ok(())
    }

    pub(crate) fn output(&self) -> Output {
        let slot = self.pool.allocate(8).unwrap();
        Output::new(slot, 8, object(MANIFEST)).unwrap()
    }

    pub(crate) fn stage(&mut self) -> Result<(), CallError> {
        let output = self.output();
        self.stage_output(output)
    }

    pub(crate) fn stage_output(&mut self, output: Output) -> Result<(), CallError> {
        let Some(job) = self.job.clone() else {
            return Err(CallError::Over);
        };
        let staged = self.instance.stage(&job, output, &NO_SCALARS, self.now);
        staged.map_err(|(_output, error)| error)
    }

    pub(crate) fn fail(&mut self) -> Result<(), CallError> {
        let Some(job) = self.job.clone() else {
            return Err(CallError::Over);
        };
        self.instance.fail(&job, "out of memory", self.now)
    }

    pub(crate) fn finish(&mut self) -> Result<(), CallError> {
        let Some(job) = self.job.clone() else {
            return Err(CallError::Over);
        };
        self.instance.finish(&job, self.now)
    }

    /// The driver is told how a push ended: that of the last order, or of one that it makes up.
    pub(crate) fn pushed(&mut self, result: Result<u64, &str>) {
        let (job, slot) = match (self.order.take(), self.job.clone()) {
            (Some(order), _) => (order.job, order.slot),
            (None, Some(job)) => (job, self.pool.allocate(8).unwrap()),
            (None, None) => return,
        };
        self.instance.handle_pushed(&job, slot, result, self.now);
    }

    pub(crate) fn alloc(&mut self, id: &str, len: u64) -> Result<(), ProtocolError> {
        self.control(Alloc::new(id, len, "encoder"))
    }

    pub(crate) fn ready(
        &mut self,
        manifest: &str,
        offset: u64,
        slot_id: Option<&str>,
    ) -> Result<(), ProtocolError> {
        let scalars = slot_id.map(|id| format!(r#"{{"seed":1,"_prealloc_slot_id":{id}}}"#));
        let scalars = scalars.unwrap_or_else(|| r#"{"seed":1}"#.into());
        // By way of its bytes, as it comes.
        let ready = Ready::new("r", object(manifest), offset, object(&scalars));
        let payload = Control::from(ready).to_vec();
        self.instance
            .handle_frames(&[CONTROL_MARKER, &payload], self.now)?;
        Ok(())
    }

    /// Where the slot of "r" is that ALLOCATED told.
    pub(crate) fn allocate(&mut self) -> u64 {
        self.alloc("r", 8).unwrap();
        for payload in self.transmit() {
            if let Control::Allocated(allocated) = Control::decode(&payload).unwrap() {
                return allocated.location.slot_offset;
            }
        }
        panic!("no ALLOCATED");
    }

    pub(crate) fn fill_pool(&mut self) {
        while let Ok(slot) = self.pool.allocate(1) {
            self.ballast.push(slot);
        }
    }

    pub(crate) fn step(&self) -> Step {
        self.instance.step("r".into())
    }

    /// How many blocks are taken, not counted what the test itself fills and the preallocated one.
    pub(crate) fn blocks(&self) -> usize {
        let own = self.ballast.len() + usize::from(!self.instance.role().is_first());
        self.pool.stats().allocated_bytes() / BLOCK - own
    }
}

/// The messages to send, each with what it is in front.
pub(crate) fn sent(instance: &mut Instance) -> Vec<String> {
    let mut buffer = vec![0xa5; 7];
    std::iter::from_fn(|| {
        let outgoing = instance.poll_transmit(&mut buffer)?;
        let kind = match outgoing {
            Outgoing::Control => "control",
            Outgoing::Tensors => "tensors",
            other => panic!("{other:?}"),
        };
        Some(format!(
            "{kind} {}",
            String::from_utf8(buffer.clone()).unwrap()
        ))
    })
    .collect()
}

pub(crate) fn site(pool: &Pool) -> Site {
    Site::new("here", 4096, pool.clone(), "tcp://127.0.0.1:5571")
}

/// What an input came to: the verdict, what was sent and what happened, and, unless they
/// are as `before`, the state and the blocks that are held.
pub(crate) fn outcome<E: std::fmt::Debug>(
    bed: &mut Bed,
    before: (Step, usize),
    result: Result<(), E>,
) -> String {
    bed.look();
    let mut outcome = match result {
        Ok(()) => "ok".to_string(),
        Err(error) => {
            let error = format!("{error:?}");
            error.split([' ', '(']).next().unwrap().to_string()
        }
    };
    outcome += &std::mem::take(&mut bed.log);
    let after = (bed.step(), bed.blocks());
    if after != before {
        write!(outcome, " > {} {}", after.0, after.1).unwrap();
    }
    outcome
}

/// The inputs that senders and receivers have alike; `None` for one of their own.
pub(crate) fn common_input(bed: &mut Bed, input: &str, before: (Step, usize)) -> Option<String> {
    let result = match input {
        "abort" => bed.abort(),
        "alloc" => bed.alloc("r", 8),
        "pushed" => bed.control(Pushed::new("r")),
        "register ack" => bed.control(RegisterAck::new()),
        "fail" => {
            let result = bed.fail();
            return Some(outcome(bed, before, result));
        }
        "finish" => {
            let result = bed.finish();
            return Some(outcome(bed, before, result));
        }
        "later" => {
            bed.now += 100 * SECOND;
            bed.instance.handle_timeout(bed.now);
            Ok(())
        }
        _ => return None,
    };
    Some(outcome(bed, before, result))
}

/// What to look up: (inputs, (states, outcome)), with commas between inputs and between
/// states; `all` of the states, or the `others` that are not named.
pub(crate) type Table = &'static [(&'static str, &'static [(&'static str, &'static str)])];

/// Tries each input of `table` in each of `states`.
pub(crate) fn check(
    table: Table,
    states: &[&'static str],
    bed_in: impl Fn(&str) -> Bed,
    apply: impl Fn(&mut Bed, &str) -> String,
) {
    let mut wrong = String::new();
    for (inputs, cells) in table {
        let named = || cells.iter().flat_map(|(listed, _)| listed.split(", "));
        let of = |listed: &'static str| match listed {
            "all" => states.to_vec(),
            "others" => {
                let others = states
                    .iter()
                    .filter(|state| !named().any(|name| name == **state));
                others.copied().collect()
            }
            _ => listed.split(", ").collect(),
        };
        let mut listed: Vec<_> = cells.iter().flat_map(|(states, _)| of(states)).collect();
        listed.sort_unstable();
        let mut all = states.to_vec();
        all.sort_unstable();
        assert_eq!(listed, all, "{inputs}");
        for input in inputs.split(", ") {
            for (listed, expected) in *cells {
                for state in of(listed) {
                    let found = apply(&mut bed_in(state), input);
                    if found != *expected {
                        writeln!(wrong, "{input}, {state}: {found}, not {expected}").unwrap();
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
