//! The API groups: each kind ONE declaration, and the `Scheme` that finds them.
//!
//! A declaration says what a kind is called, where it lives, its verbs and subresources, how a row of
//! `kubectl get` looks, which fields can be selected by, what the server fills in and what it refuses.
//! Routes, discovery, OpenAPI, storage prefix, watch cache, RBAC names and informers are derived from it. A
//! custom resource makes the same value at run time. What goes in here must not know the server, the store or
//! a client.

#![warn(missing_docs, unreachable_pub)]

pub mod finalizers;
pub mod gated;
pub mod kind;
pub mod object_meta;
pub mod rules;
pub mod scheme;
pub mod strategy;
pub mod table;

mod declaration;
pub mod historical;
pub mod print;
pub mod quota;
mod reset_fields;
pub mod resources;
pub mod scale;
mod selectable;
mod subresource;
pub mod tree;
pub mod validation;
pub mod volumes;

pub mod views;

pub mod admissionregistration;
pub mod apiextensions;
pub mod apiregistration;
pub mod apps;
pub mod authentication;
pub mod authorization;
pub mod autoscaling;
pub mod batch;
pub mod certificates;
pub mod coordination;
pub mod core;
pub mod discovery;
pub mod events;
pub mod flowcontrol;
pub mod networking;
pub mod node;
pub mod policy;
pub mod rbac;
pub mod resource;
pub mod scheduling;
pub mod storage;

pub mod legacy;
pub mod runtime_config;

use kind::Builtin;

/// Every built-in kind.
pub fn all() -> Vec<&'static Builtin> {
    [
        core::KINDS,
        apps::KINDS,
        batch::KINDS,
        autoscaling::KINDS,
        policy::KINDS,
        networking::KINDS,
        discovery::KINDS,
        events::KINDS,
        coordination::KINDS,
        node::KINDS,
        scheduling::KINDS,
        authentication::KINDS,
        authorization::KINDS,
        rbac::KINDS,
        storage::KINDS,
        flowcontrol::KINDS,
        certificates::KINDS,
        admissionregistration::KINDS,
        apiregistration::KINDS,
        resource::KINDS,
        apiextensions::KINDS,
    ]
    .concat()
}

#[cfg(test)]
mod errors_test;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    #[test]
    fn no_two_kinds_share_a_path_and_every_short_name_is_known_once_in_its_version() {
        let mut paths = BTreeSet::new();
        let mut short_names = BTreeSet::new();
        for kind in all() {
            assert!(paths.insert(kind.collection_path("")), "{kind:?}");
            for short in &kind.short_names {
                assert!(short_names.insert((kind.group_version.clone(), short.clone())), "{short}");
            }
        }
    }

    #[test]
    fn what_is_stored_as_another_kind_can_be_selected_by_the_same_values() {
        for kind in all() {
            let stored = kind.storage_kind();
            let pairs = kind.selectable.iter().zip(&stored.selectable);
            assert!(pairs.into_iter().all(|(ours, theirs)| ours.path == theirs.path), "{kind:?}");
        }
    }

    #[test]
    fn defaults_are_upstreams_and_defaulting_twice_changes_nothing() {
        let cases: Vec<Value> = serde_yaml::from_str(include_str!("testdata/defaults.yaml")).unwrap();
        for case in cases {
            let kinds = all();
            let kind =
                kinds.iter().find(|kind| kind.collection_path("") == case["path"].as_str().unwrap()).unwrap();
            let mut tree = case["given"].clone();
            (kind.defaults)(&mut tree);
            assert_eq!(tree, case["wanted"], "{kind:?}\n{tree:#}\n{:#}", case["wanted"]);
            (kind.defaults)(&mut tree);
            assert_eq!(tree, case["wanted"], "{kind:?} again");
        }
    }

    #[test]
    fn defaulting_an_empty_object_of_any_kind_goes_well() {
        for kind in all() {
            for mut tree in [json!({}), json!({"spec": null, "status": []}), json!([])] {
                (kind.defaults)(&mut tree);
            }
        }
    }
}
