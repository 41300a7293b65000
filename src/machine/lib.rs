//! The machine that simulated containers run on: a shell, programs and files, and no process at all.
//!
//! What comes in: what is started (an `Invocation`), what it finds around it (`Surroundings`), and until
//! when it is looked at. What goes out: when it ends and how, what it says, what it writes, what it serves
//! at which port; worked out by playing it, as far as its words tell. Whatever is not understood is not
//! played, and whoever asked is told so. It must not know Kubernetes: neither pods nor kubelets, and no
//! clock that ticks; of `apimachinery` it has quantities and ages alone, which its `kubectl` shows.
//!
//! Everything that a script can make grow has a bound ([`bounds`]).

#![warn(missing_docs)]

pub mod bounds;
pub mod byte_text;
mod common_time;
pub mod consumption;
mod python_server;
mod signal_names;

pub mod file_system;
pub mod standard_input;
pub mod surroundings;

pub mod listeners;
pub mod questions;
pub mod url;

mod dns;

pub mod image_files;
pub mod image_identity;
mod image_programs;
pub mod images;
pub mod invocation;

pub mod shell;

pub mod interpreter;

mod programs;

pub mod agnhost;

pub mod program;

pub mod exec;
pub mod process;
pub mod signals;
pub mod stress;
pub mod terminals;

pub mod access_log;
mod configured_web;
pub mod logs;
mod nginx;
mod passing_on;
pub mod requests;
mod speakers;
mod wardle;

pub mod image_servers;
mod redis;
pub mod script_listeners;
mod served_files;
pub mod server_state;
pub mod servers;
pub mod text_lines;
pub mod text_servers;
pub mod text_store;
pub mod web;
pub mod web_servers;

#[cfg(test)]
mod given;
