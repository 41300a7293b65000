//! The pods of a node and whose turn it is (`pkg/kubelet/pod`, and what upstream's pod workers have of
//! goroutines and channels).
//!
//! Workers are lent out to be worked on, so that no lock is held while a script is played. It must not know
//! where its pods come from, nor who writes what becomes of them.

pub(crate) mod pods;

pub(crate) mod resting;

pub(crate) mod config;

pub(crate) mod turns;
