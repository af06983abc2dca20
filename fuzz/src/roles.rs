//! Whatever happens in a small cluster, requests end, and everything comes back.
//!
//! The bytes say what the cluster is like and what happens next, one decision after the other, as
//! [`cluster`](super::cluster) asks; when they are used up, it comes to its end.

use super::cluster::Cluster;
use super::cluster::choices::Bytes;

pub fn run(data: &[u8]) {
    Cluster::new(&mut Bytes(data), false).run();
}
