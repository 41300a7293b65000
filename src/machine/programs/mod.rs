//! The programs that simulated containers have, as far as examples and tests use them; of BusyBox, where
//! programs differ.
//!
//! `commands` knows which there are and what is done with each; those that work on texts and on files have
//! files of their own. A program comes with its arguments and the `Player` that it is played by.

pub(crate) mod names;

mod awk;
mod builtins;
mod checksums;
mod columns;
mod commands;
mod comparing;
mod conditions;
mod copying;
mod dates;
mod dump_formats;
mod dumps;
mod ends;
mod expr;
mod file_programs;
mod filling;
mod find;
mod finding;
mod gzip;
mod input;
mod interfaces;
mod listens;
mod listing;
mod machine_programs;
mod matching;
mod mounting;
mod net;
mod openssl;
mod other_roots;
mod packages;
mod patterns;
pub(crate) mod pi;
mod sed;
mod shells;
mod stat;
mod tar;
mod text_programs;
mod tools;
mod typed_shell;
mod words;
mod x509_texts;

pub(crate) use commands::{is_known, read, read_any_script, read_command, read_script, run};
pub(crate) use conditions::conditional;
pub(crate) use finding::is_builtin;
pub(crate) use net::{database_clients, resolve};
pub(crate) use typed_shell::{go_on, run_lines, run_typed_shell};
