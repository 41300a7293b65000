//! The volumes of pods, and what else their containers find (`pkg/kubelet/volumemanager`, `configmap`,
//! `secret`, `token`, `envvars`).
//!
//! What comes in: a pod, and what was fetched for it from the apiserver. What goes out: what is still to be
//! fetched, whether all volumes can be mounted, and for each container its variables, its mounts and the
//! files in them. It must not know what runs: whoever starts containers is handed what they find.

pub mod bound_token;
pub mod fetch;
pub mod sources;

pub(crate) mod claims;
mod device_variables;
pub(crate) mod devices;
pub mod in_use;

pub mod claimed_files;
pub mod facts;
pub mod host_files;
mod host_paths;

pub(crate) mod cgroup_files;
mod config_error;
pub(crate) mod dns;
mod downward;
mod env_file;
mod environment;
mod memory_size;
mod process_status;
mod runs_as;
mod sub_paths;
pub mod volumes;

pub mod surroundings;

pub(crate) mod answers_source;
pub(crate) mod mounting;

pub use config_error::ContainerConfigError;
