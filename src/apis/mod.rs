//! The API groups: each kind ONE declaration, and the `Scheme` that finds them.
//!
//! A declaration says what a kind is called, where it lives, its verbs and subresources, how a row of
//! `kubectl get` looks, which fields can be selected by, what the server fills in and what it refuses. Routes,
//! discovery, OpenAPI, storage prefix, watch cache, RBAC names and informers are derived from it. A custom resource
//! makes the same value at run time. What goes in here must not know the server, the store or a client.

pub mod kind;
pub mod scheme;
pub mod strategy;
pub mod table;

pub mod views;

pub mod core;

use kind::Builtin;

/// Every built-in kind.
pub fn all() -> Vec<&'static Builtin> {
    [core::KINDS].concat()
}
