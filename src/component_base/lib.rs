//! component-base: what the flags, the metrics and the pages of all components share
//! (`k8s.io/component-base/cli/flag`, `metrics`, `zpages`).
//!
//! Each room declares its options as a struct that derives `clap::Args`: a field is a flag, its doc comment
//! the help. The command line flattens them all, and a cluster holds them whole. What goes in here must know
//! no flag, no metric and no room.

#![warn(missing_docs, unreachable_pub)]

pub mod build_info;
pub mod features;
pub mod flags;
pub mod health;
pub mod metrics;
pub mod process;
pub mod slis;
pub mod zpages;
