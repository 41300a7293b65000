//! Plays scripts that were read: what a shell would do with them, step by step, within bounds and on a
//! clock of its own.
//!
//! A `Player` is one process; its files here are what it does: `control` for lists and loops, `expansion`
//! for words, `sums` for numbers, `globs` for names of files, `image_programs` for programs that are files,
//! `streams` for what is read and said, `files` for what it writes, `dialling` for what bash takes for files,
//! `background` for that, `killing` for signals.

pub(crate) mod player;

mod background;
mod complaints;
mod connections;
pub(crate) mod containment;
mod control;
pub(crate) mod dialect;
mod dialling;
mod disk;
pub mod expansion;
mod files;
mod globs;
pub(crate) mod hearing;
mod image_programs;
pub(crate) mod jobs;
pub(crate) mod killing;
pub(crate) mod line_editor;
pub(crate) mod other_root;
pub(crate) mod pattern;
mod roots;
mod streams;
mod sums;
pub mod transcript;
pub(crate) mod variables;
