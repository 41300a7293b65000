//! The invariants of the house, held as tests: who may import whom, words that have one home, the reading path,
//! field paths that the schemas know, and ratchets on size and on circles.
//!
//! The tables stand in `tables.rs`. What a file imports is what its `use` lines and paths resolve to, through
//! `super`, groups, aliases and re-exports; only the bodies of test items are left out.

mod circles;
mod examples;
mod fields;
mod idioms;
mod imports;
mod modules;
mod reading_path;
mod size;
mod source;
mod tables;
mod words;
