//! client-go: how a component learns of the cluster and changes it.
//!
//! It takes the apiserver as a tower service and never imports it.

pub mod reflector;
