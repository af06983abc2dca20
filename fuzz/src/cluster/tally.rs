//! How often what happened.

macro_rules! tally {
    ($($field:ident: $what:literal,)*) => {
        /// How often what happened.
        #[derive(Clone, Copy, Debug, Default)]
        pub struct Tally {
            $(pub $field: u64,)*
        }

        impl Tally {
            /// All of them, each with what it counts.
            pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$(($what, self.$field)),*].into_iter()
            }

            pub fn add(&mut self, other: &Self) {
                $(self.$field += other.$field;)*
            }
        }
    };
}

tally! {
    requests: "a request",
    asked_again: "a request of an id of before",
    finished: "a result",
    cancelled: "a cancellation",
    role_failed: "the failure of a role",
    push_failed: "a failure by push",
    timed_out: "a timeout",
    worker_lost: "a failure by loss",
    worker_restarted: "a failure by restart",
    retried: "a retry",
    fast_path: "the fast path",
    slow_path: "the slow path",
    quarantined: "a slot kept away",
    restarts: "a restart",
    absences: "a worker that is not back at once",
    losses: "a worker of which the head node is told that it is gone",
    bad_pushes: "a failed push",
    pools_full: "a full pool",
    lost: "a lost message",
    copied: "a copied message",
    refused_by_head: "a message refused by the head node",
    refused_by_workers: "a message refused by a worker",
    steps: "a step",
}
