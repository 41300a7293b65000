//! The scheduling framework: the extension points of a scheduling attempt, and what plugins see of the
//! cluster.
//!
//! Order of the points: PreEnqueue and QueueSort in the queue; then, in one attempt, PreFilter, Filter,
//! PostFilter (only when nothing fits), PreScore, Score, Reserve, Permit; then, on their own, PreBind, Bind,
//! PostBind. A plugin is one type that implements the points that it cares about. It must not know the queue
//! or the cache: it sees a pod, nodes as they were when the attempt began, and what it wrote into the
//! cycle's state itself.

pub mod plugin;

pub mod runtime;

pub mod points;

pub mod profiles;

pub mod status;

pub mod fit_error;

pub mod cluster_event;

pub mod asked_count;
pub mod images;
pub mod label_groups;
pub mod node_info;
pub mod plugin_numbers;
pub mod pod_info;
pub mod preempting;
pub mod preemption_candidate;

pub mod resource;

pub mod pod_affinity;

pub mod topology_spread;

pub mod waiting_pods;
