//! What a sync of a StatefulSet has found, and whether it may go on.

use super::replicas::Replicas;
use super::revisions::Revisions;
use super::work::StatefulSetWork;

/// Everything that a sync decides on.
pub(super) struct Round<'a> {
    /// The set.
    pub work: &'a StatefulSetWork,
    /// What pods are made of.
    pub revisions: &'a Revisions,
    /// Its pods by their place.
    pub replicas: &'a Replicas,
}

/// Whether what comes next in the order may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrderedProgress {
    /// What comes next may be done.
    Go,
    /// What comes next has to wait.
    Wait,
}
