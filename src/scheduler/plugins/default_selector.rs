//! Which pods belong together as far as Services and controllers say so (`helper.DefaultSelector`).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::framework::pod_info::PodInfo;
use apimachinery::labels::Selector;
use apis::apps::replica_set::REPLICA_SETS;
use apis::apps::stateful_set::STATEFUL_SETS;
use apis::core::replication_controller::REPLICATION_CONTROLLERS;
use apis::core::service::SERVICES;
use apis::kind::Kind;
use apis::tree::at;
use apis::views::replica_set::ReplicaSet;
use apis::views::service::Service;
use apis::views::stateful_set::StatefulSet;
use client_go::lister::Lister;
use serde::Deserialize;

/// Finds the selector of a pod's Services and of its controller.
pub struct DefaultSelector {
    services: Lister,
    controllers: Lister,
    replica_sets: Lister,
    stateful_sets: Lister,
}

impl DefaultSelector {
    /// Reads through listers.
    pub fn new(lister: &dyn Fn(&Arc<Kind>) -> Lister) -> DefaultSelector {
        DefaultSelector {
            services: lister(&SERVICES),
            controllers: lister(&REPLICATION_CONTROLLERS),
            replica_sets: lister(&REPLICA_SETS),
            stateful_sets: lister(&STATEFUL_SETS),
        }
    }

    /// What all Services of the pod and its controller select; none when nobody does.
    pub fn of(&self, pod: &PodInfo) -> Option<Selector> {
        let mut selector = Selector::from_labels(&self.of_services(pod));
        if let Some(of_controller) = self.of_controller(pod) {
            selector.requirements.extend(of_controller.requirements);
        }
        (!selector.is_everything()).then_some(selector)
    }

    fn of_services(&self, pod: &PodInfo) -> BTreeMap<String, String> {
        let metadata = &pod.object.metadata;
        let mut labels = BTreeMap::new();
        for service in self.services.list(&metadata.namespace, &Selector::everything()) {
            let selector = &service.view::<Service>().spec.selector;
            let selects = |(key, value): (&String, &String)| metadata.labels.get(key) == Some(value);
            if !selector.is_empty() && selector.iter().all(selects) {
                labels.extend(selector.clone());
            }
        }
        labels
    }

    fn of_controller(&self, pod: &PodInfo) -> Option<Selector> {
        let owner = pod.object.controller()?;
        let namespace = &pod.object.metadata.namespace;
        match (owner.api_version.as_str(), owner.kind.as_str()) {
            ("v1", "ReplicationController") => {
                let controller = self.controllers.get(namespace, &owner.name)?.to_value();
                let labels = BTreeMap::deserialize(at(&controller, "spec.selector")).ok()?;
                Some(Selector::from_labels(&labels))
            }
            ("apps/v1", "ReplicaSet") => self
                .replica_sets
                .get(namespace, &owner.name)?
                .view::<ReplicaSet>()
                .spec
                .selector
                .selector()
                .ok(),
            ("apps/v1", "StatefulSet") => {
                let set = self.stateful_sets.get(namespace, &owner.name)?;
                set.view::<StatefulSet>().spec.selector.selector().ok()
            }
            _ => None,
        }
    }
}
