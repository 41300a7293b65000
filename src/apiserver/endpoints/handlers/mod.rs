//! The verbs, and what they work with (`endpoints/handlers`).
//!
//! In comes a request to a resource whose kind is known ([`request_scope::Scope`]) and its body; out goes an
//! [`super::response::answer::Answer`], which `response` writes. A verb must not know which forms there are
//! to write it in, nor what any kind is about.

pub(crate) mod request_scope;

pub(crate) mod body;
pub mod body_budget;
pub(crate) mod form;
mod initializers_field;
pub mod long_work;

pub(crate) mod field_manager;
mod initializers;
mod owners;

pub(crate) mod create;
pub(crate) mod review;
pub(crate) mod update;

mod apply;
pub(crate) mod delete;
pub(crate) mod deletecollection;
pub(crate) mod patch;

pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod watch;

pub(crate) mod response;
