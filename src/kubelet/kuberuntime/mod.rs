//! What becomes of the containers of a pod: pulled, created, started, probed, restarted, stopped
//! (`pkg/kubelet/kuberuntime`, `pkg/kubelet/images`).
//!
//! What comes in: a container's spec, the moment, and the runtime behind its seam. What goes out: its state
//! as it stands in the pod's status, what happened, and when its next step is due. It must not know the
//! pod's own life, nor how a runtime works.

pub mod context;

pub mod security;
pub mod state;

pub mod container;

mod anew;
mod hooks;
mod image_manager;
mod image_names;
pub(crate) mod image_volumes;
pub(crate) mod instrumented_services;
mod pulling;
mod running;
mod stopping;
pub(crate) mod task;
