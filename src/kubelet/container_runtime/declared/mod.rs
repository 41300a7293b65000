//! What a pod's annotations say of it: listeners at its ports, answers to commands, lines of its log.
//!
//! Comes in: annotations `kubarium.dev/http.8080`, `tcp.6379`, `udp.53`, `forward.8080`, `exec.COMMAND` and
//! `logs`. Goes out: who answers at a port, whatever image runs there, and what is wrong with an annotation.
//! Those that a ConfigMap has for a pod stand among its own by then.
//! A pod without such annotations pays for a look at the names of those that it has.

mod talk;

mod routes;

mod saying;

pub mod forward;
mod read;

mod completed;
mod serving;

pub(crate) use completed::{completed, unknown_keys};
pub(crate) use read::{DeclaredPort, declaration, differ, is_ours, listens, ports, problems};
pub(crate) use saying::{executed, programs, said};
pub(crate) use serving::DeclaredListener;
