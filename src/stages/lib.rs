//! kwok's Stages (`kwok.x-k8s.io/v1alpha1`): what becomes of objects of any kind, as data that changes while
//! the cluster runs; and beside them what pods use, [`measures`].
//!
//! Comes in: the Stages, and the objects of the kinds that they are for, by watches. Goes out: patches,
//! Events, deletes. Must not know a kubelet or a controller: what templates ask of nodes it is given
//! ([`Machines`]); kubelets ask the [`StageBook`] which pods and nodes are none of theirs. Where there are no
//! Stages, nothing is watched and nobody is asked.
//!
//! The reading order: [`manifest`] is a Stage as it is written, [`stage`] as it was read; `choose` draws one
//! of those that match; [`follow()`] hears of Stages, and has a [`player`] for each kind that they are for.

#![warn(missing_docs)]

mod names;

pub mod manifest;

pub mod error;

mod jq;
mod template;

pub mod cel_functions;
pub mod expression;
mod selector;

pub mod stage;

mod choose;

pub mod book;

mod changes;
pub mod surroundings;

mod stagehand;

mod following;

pub mod follow;
pub mod player;

pub mod measures;

#[cfg(test)]
mod published;

pub use book::{Governed, StageBook};
pub use cel_functions::CelHost;
pub use error::StageError;
pub use follow::follow;
pub use measures::{MeasureBook, follow_measures};
pub use names::{FIELD_MANAGER, GROUP, VERSION};
pub use stagehand::Stagehand;
pub use surroundings::Machines;
pub use template::TemplateHost;
