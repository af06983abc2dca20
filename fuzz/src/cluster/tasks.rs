//! What a local worker does: reads, gives back, stages, finishes, fails.

use tensorwire::json::Value;
use tensorwire::message::{Scalar, encode_to_vec};
use tensorwire::tensor::TensorView;
use tensorwire::transfer::Role;
use tensorwire::transfer::worker::{Job, Output, Received};

use super::Cluster;
use super::network::Wire;
use super::node::{Node, Task, pattern, work};

impl Cluster<'_> {
    pub fn ready(&mut self, node: usize, received: Received, is_copy: bool) {
        let scalars = received.scalars();
        assert!(scalars.get("_prealloc_slot_id").is_none());
        let token = scalars.field("token").unwrap().as_u64().unwrap() as u32;
        let image = scalars.get("image_path");
        let has_image = image.is_some_and(|image| image.raw() != "\"\"");
        let task = Task {
            job: received.job().clone(),
            since: self.now,
            token,
            has_image,
            received: Some(received),
            is_copy,
        };
        self.nodes[node].check_read(&task);
        self.nodes[node].tasks.push(task);
    }

    /// A job is over: its worker drops what it has, at once or later.
    pub fn let_go(&mut self, node: usize, job: &Job) {
        let tasks = &mut self.nodes[node].tasks;
        let Some(at) = tasks.iter().position(|task| task.job == *job) else {
            return;
        };
        let task = tasks.swap_remove(at);
        if let Some(received) = task.received
            && self.choices.chance(128)
        {
            self.nodes[node].kept.push((received, task.since));
        }
    }

    pub fn give_back(&mut self, node: usize, at: usize) {
        let (received, _) = self.nodes[node].kept.swap_remove(at);
        self.note(|_| format!("{} gives back its slot", received.job()));
        drop(received);
        self.flush(node);
    }

    /// The local worker takes a job one step further; to its end if it has to.
    pub fn do_task(&mut self, node: usize, at: usize, to_its_end: bool) {
        self.nodes[node].check_read(&self.nodes[node].tasks[at]);
        let role = self.nodes[node].role;
        let has_slot = self.nodes[node].tasks[at].received.is_some();
        if has_slot && (role.is_last() || to_its_end || self.choices.chance(160)) {
            let received = self.nodes[node].tasks[at].received.take();
            self.note(|cluster| format!("{} has read", cluster.nodes[node].tasks[at].job));
            drop(received);
            self.flush(node);
            if !to_its_end {
                return;
            }
        }
        // Giving back may have ended it.
        let Some(task) = self.nodes[node].tasks.get(at) else {
            return;
        };
        let job = task.job.clone();
        if self.config.bad_jobs > 0 && self.choices.chance(self.config.bad_jobs) {
            self.fail(node, &job, "it went wrong");
        } else if role.is_last() {
            self.finish(node, at);
        } else {
            self.stage(node, at, to_its_end);
        }
        self.flush(node);
    }

    fn fail(&mut self, node: usize, job: &Job, text: &str) {
        let failed = self.nodes[node].machine.fail(job, text, self.now);
        self.note(|_| format!("{job} fails: {failed:?}"));
        self.let_go(node, job);
    }

    fn finish(&mut self, node: usize, at: usize) {
        let task = self.nodes[node].tasks.swap_remove(at);
        let finished = self.nodes[node].machine.finish(&task.job, self.now);
        self.note(|_| format!("{} finishes: {finished:?}", task.job));
        if finished.is_err() {
            return;
        }
        let result = work(Role::Decoder, task.token).to_le_bytes();
        let output = TensorView::from_slice("output", &[4], &result[..]).unwrap();
        let scalars = [("request_id", Scalar::from(task.job.request().text()))];
        let metadata = encode_to_vec([output.descriptor()], &scalars).unwrap();
        let frames = vec![metadata, result.to_vec()];
        // What the machine has to say goes before.
        self.flush(node);
        let (config, now) = (&self.config, self.now);
        let from = (node, Wire::Results);
        self.network.send(from, frames, now, config, self.choices);
    }

    fn stage(&mut self, node: usize, at: usize, to_its_end: bool) {
        let here = &mut self.nodes[node];
        let task = &here.tasks[at];
        let job = task.job.clone();
        let role = here.role;
        let used = [0, 1, 60, 64, 65, 100, 200, 256][self.choices.below(8) as usize];
        let token = work(role, task.token);
        let output = if used == 0 {
            Output::empty()
        } else {
            let Ok(slot) = here.pool.allocate(used) else {
                self.tally.pools_full += 1;
                if to_its_end || self.choices.chance(64) {
                    self.fail(node, &job, "no room");
                }
                return;
            };
            let start = slot.offset();
            here.memory[start..start + used].copy_from_slice(&pattern(token, used));
            let manifest = format!(r#"{{"x":[{{"offset":0,"shape":[{used}],"dtype":"uint8"}}]}}"#);
            let manifest = Value::parse(manifest.as_bytes()).unwrap();
            Output::new(slot, used, manifest.as_object().unwrap()).unwrap()
        };
        let image = if task.has_image { "image.png" } else { "" };
        let scalars = [
            ("token", Scalar::from(token)),
            ("image_path", Scalar::from(image)),
        ];
        let staged = here.machine.stage(&job, output, &scalars, self.now);
        let staged = staged.map_err(|(_, error)| error);
        let task = here.tasks.swap_remove(at);
        self.note(|_| format!("{job} stages {used} bytes: {staged:?}"));
        if let Some(received) = task.received {
            self.nodes[node].kept.push((received, task.since));
        }
    }
}

impl Node {
    /// What is read is what was written.
    pub fn check_read(&self, task: &Task) {
        let Some(received) = task.received.as_ref().filter(|_| !task.is_copy) else {
            return;
        };
        let Some(tensors) = received.manifest().get("x") else {
            return;
        };
        let tensor = tensors.as_array().unwrap().get(0).unwrap();
        let shape = tensor.as_object().unwrap().field("shape").unwrap();
        let len = shape.as_array().unwrap().get(0).unwrap().as_u64().unwrap() as usize;
        let start = received.slot().offset();
        let found = &self.memory[start..start + len];
        let expected = pattern(task.token, len);
        assert!(found == expected, "{} reads what is not its own", task.job);
    }
}
