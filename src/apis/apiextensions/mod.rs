//! `apiextensions.k8s.io`: CustomResourceDefinitions, and the kinds that they declare.
//!
//! `custom_resource_definition` is the declaration, `validation` what it is refused for; `kinds` makes of an
//! accepted definition the same `Kind` value that a built-in kind has, `structural` prunes, defaults and
//! validates its objects. When a kind is served is `apiserver::crd_handler`'s.

pub mod custom_resource_definition;
pub mod view;

pub mod approval;
mod validation;

pub mod structural;

pub mod custom_resource;
pub mod kinds;

mod columns;
mod json_path;
pub mod published;

use super::kind::Builtin;

/// In discovery's order.
pub const KINDS: &[&Builtin] = &[&custom_resource_definition::CUSTOM_RESOURCE_DEFINITIONS];
