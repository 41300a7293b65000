//! Plays scripts that were read: what a shell would do with them, step by step, within bounds and on a
//! clock of its own.
//!
//! A `Player` is one process; its files here are what it does: `control` for lists and loops, `expansion` for
//! words, `streams` for what is read and said, `files` for what it writes.

pub(crate) mod player;

pub(crate) mod containment;
mod control;
mod disk;
pub mod expansion;
mod files;
pub(crate) mod hearing;
mod pattern;
mod streams;
pub mod transcript;
pub(crate) mod variables;
