//! The ConfigMap `kube-root-ca.crt` in every namespace (`pkg/controller/certificates/rootcacertpublisher`).

use serde_json::{Value, json};

use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use super::service_account::{ignore_lost_race, is_active};
use apimachinery::status::Status;
use apis::core::config_map::CONFIG_MAPS;
use apis::core::namespace::NAMESPACES;
use client_go::component::ComponentContext;
use client_go::lister::Lister;

const NAME: &str = "kube-root-ca.crt";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across \
distributions of Kubernetes clusters.";

/// Tells pods which authority signs the apiserver's certificate.
pub(crate) struct RootCaPublisher {
    root_ca: String,
    namespaces: Lister,
    config_maps: Lister,
}

impl RootCaPublisher {
    /// With its informers; `root_ca` is the authority's certificate in PEM, empty when nothing is served over
    /// TLS.
    pub(crate) fn new(ctx: &ComponentContext, root_ca: &str) -> RootCaPublisher {
        let namespaces = ctx.informers.informer(&NAMESPACES).lister();
        let config_maps = ctx.informers.informer(&CONFIG_MAPS).lister();
        RootCaPublisher { root_ca: root_ca.into(), namespaces, config_maps }
    }

    fn desired(&self) -> Value {
        json!({
            "metadata": {"name": NAME, "annotations": {"kubernetes.io/description": DESCRIPTION}},
            "data": {"ca.crt": self.root_ca},
        })
    }
}

impl Controller for RootCaPublisher {
    const NAME: &'static str = "root-ca-certificate-publisher";
    const EVENT_SOURCE: &'static str = "root-ca-certificate-publisher-controller";
    const SERVICE_ACCOUNT: &'static str = "root-ca-cert-publisher";

    fn watches(&self) -> Watches {
        Watches::of(&NAMESPACES).maps(&CONFIG_MAPS, |change: &Change<'_>, enqueue: &Enqueue| {
            let metadata = &change.object().metadata;
            if metadata.name == NAME && !matches!(change, Change::Added(_)) {
                enqueue.now(metadata.namespace.clone());
            }
        })
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        if !is_active(&self.namespaces, key) {
            return Ok(Action::Done);
        }
        let desired = self.desired();
        let Some(current) = self.config_maps.get(key, NAME) else {
            return ignore_lost_race(ctx.client.create(&CONFIG_MAPS, key, desired).await.map(drop));
        };
        let mut tree = current.to_value();
        let description = &desired["metadata"]["annotations"]["kubernetes.io/description"];
        let has_description = tree["metadata"]["annotations"]["kubernetes.io/description"] == *description;
        if tree["data"] == desired["data"] && has_description {
            return Ok(Action::Done);
        }
        tree["data"] = desired["data"].clone();
        tree["metadata"]["annotations"]["kubernetes.io/description"] = description.clone();
        ctx.client.update(&CONFIG_MAPS, key, NAME, tree).await?;
        Ok(Action::Done)
    }
}
