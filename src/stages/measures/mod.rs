//! kwok's ResourceUsages, ClusterResourceUsages and Metrics: what containers use, and what a kubelet answers
//! about it below `/metrics`.
//!
//! Comes in: those objects, by watches. Goes out: a curve for a container's resource, which its runtime asks
//! the [`MeasureBook`] for, and the text of a Metric for whoever asks a kubelet for its path. Nothing is
//! worked out before somebody asks, and where there are no such objects nothing is looked at.

mod manifest;

pub mod node_usage;

mod variables;

mod expression;

mod resource_usage;

pub mod metric;

mod exposition;

pub mod book;

pub mod follow;

#[cfg(test)]
mod tests;

pub use book::MeasureBook;
pub use follow::follow_measures;
pub use metric::MeasuredNode;
pub use node_usage::{NodeUsage, UsageOf};
