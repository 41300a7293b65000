//! Custom kinds whose versions a webhook turns into one another. What is stored says which version it was
//! written in, because the storage version changes and what is stored does not (upstream's objects bear their
//! `apiVersion`); whatever goes out is in the version that was asked for.
//!
//! Kinds without a webhook pass through here untouched.

use std::borrow::Cow;
use std::sync::{Arc, Weak};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::conversion::{CustomResourceConverter, object_of, present, webhook};
use super::converted_view::ConvertedView;
use super::{Registry, service};
use crate::request::RequestContext;
use apimachinery::feature_gates::FeatureGates;
use apimachinery::list::List;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apimachinery::watch::WatchEvent;
use apis::apiextensions::custom_resource::CustomResource;
use apis::kind::Kind;

/// The member of a stored object that says its version; no field of a schema has such a name.
const VERSION: &str = "\u{1}version";

/// Events that may wait between the storage and whoever watches another version; at the bound the storage's
/// own bound counts.
const CHANNEL: usize = 100;

/// The kind whose rules a write keeps to: of a custom kind the version that was asked for, of a built-in kind
/// the one that is stored.
pub(super) fn governing(kind: &Arc<Kind>, stored: &Arc<Kind>) -> Arc<Kind> {
    if kind.is_custom { kind.clone() } else { stored.clone() }
}

/// A tree in the version that was asked for, as an answer that was never stored.
pub(super) fn as_asked(kind: &Kind, tree: &Value) -> Value {
    let mut tree = tree.clone();
    if webhook(kind).is_some() {
        tree[VERSION] = json!(&*kind.group_version.version);
    }
    tree
}

impl Registry {
    /// Whoever turns versions into one another; the first that is given stays, as long as its owner keeps it.
    pub fn set_converter(&self, converter: Weak<dyn CustomResourceConverter>) {
        // A second one would be of another apiserver over the same registry, which there is none.
        let _ = self.0.converter.set(converter);
    }

    /// Which gates differ from their defaults; those that are given first stay.
    pub fn set_feature_gates(&self, gates: FeatureGates) {
        // There is one apiserver over a registry.
        let _ = self.0.gates.set(gates);
    }

    /// Which features are on.
    pub(crate) fn gates(&self) -> &FeatureGates {
        self.0.gates.get_or_init(FeatureGates::default)
    }

    /// A stored object in the form of `kind`.
    pub(super) async fn present(&self, kind: &Kind, object: Arc<Object>) -> Result<Arc<Object>, Status> {
        if webhook(kind).is_none() {
            return present(kind, object);
        }
        let mut presented = self.present_all(kind, &[object]).await?;
        presented.pop().ok_or_else(|| Status::internal("a conversion lost its object"))
    }

    /// What a write has stored, in the form of `kind`, and told: it is the store's own answer, which nobody
    /// asks for a second time.
    pub(super) async fn read_back(
        &self,
        ctx: &RequestContext,
        kind: &Kind,
        object: Arc<Object>,
    ) -> Result<Arc<Object>, Status> {
        let presented = self.present(kind, object).await?;
        let after = if service::is_service(kind) { service::AFTER_WRITE } else { "" };
        ctx.tell_read_back(presented.metadata.resource_version, &kind.group_version, after);
        Ok(presented)
    }

    /// A list of stored objects in the form of `kind`: one question to the webhook for all of them.
    pub(super) async fn present_list(&self, kind: &Kind, mut list: List) -> Result<List, Status> {
        if webhook(kind).is_none() {
            return super::conversion::present_list(kind, list);
        }
        list.items = self.present_all(kind, &list.items).await?.into();
        Ok(list)
    }

    /// A watch of stored objects in the form of `kind`, through `view` if the storage does not select.
    pub(super) fn present_watch(
        &self,
        kind: &Arc<Kind>,
        mut events: mpsc::Receiver<WatchEvent>,
        mut view: Option<ConvertedView>,
    ) -> mpsc::Receiver<WatchEvent> {
        if kind.stored.is_none() && webhook(kind).is_none() {
            return events;
        }
        let (kind, registry) = (kind.clone(), self.clone());
        let (sender, receiver) = mpsc::channel(CHANNEL);
        self.0.clock.spawn(async move {
            loop {
                let event = tokio::select! {
                    biased;
                    () = sender.closed() => return,
                    event = events.recv() => event,
                };
                let Some(event) = event else { return };
                let event = registry.present_event(&kind, event).await.unwrap_or_else(WatchEvent::error);
                let told = match &mut view {
                    Some(view) => view.told(event),
                    None => Some(event),
                };
                let Some(event) = told else { continue };
                let is_last = matches!(event, WatchEvent::Error(_));
                if sender.send(event).await.is_err() || is_last {
                    return;
                }
            }
        });
        receiver
    }

    async fn present_event(&self, kind: &Kind, event: WatchEvent) -> Result<WatchEvent, Status> {
        Ok(match event {
            WatchEvent::Added(object) => WatchEvent::Added(self.present(kind, object).await?),
            WatchEvent::Modified(object) => WatchEvent::Modified(self.present(kind, object).await?),
            WatchEvent::Deleted(object) => WatchEvent::Deleted(self.present(kind, object).await?),
            other => other,
        })
    }

    async fn present_all(&self, kind: &Kind, objects: &[Arc<Object>]) -> Result<Vec<Arc<Object>>, Status> {
        let trees = objects.iter().map(|object| object.to_value()).collect();
        let trees = self.read_stored(kind, trees).await?;
        let pairs = objects.iter().zip(&trees);
        pairs.map(|(object, tree)| object_of(kind, tree, object.metadata.resource_version)).collect()
    }

    /// Stored trees in the form of `kind`.
    pub(super) async fn read_stored(&self, kind: &Kind, mut trees: Vec<Value>) -> Result<Vec<Value>, Status> {
        let Some(custom) = webhook(kind) else { return Ok(trees) };
        let (group, wanted) = (&kind.group_version.group, &*kind.group_version.version);
        let mut asked: Vec<usize> = vec![];
        let mut objects = vec![];
        for (at, tree) in trees.iter_mut().enumerate() {
            let marked = tree.as_object_mut().and_then(|map| map.remove(VERSION));
            let version = marked.as_ref().and_then(Value::as_str).unwrap_or(&custom.oldest_version);
            if version != wanted {
                let mut object = tree.take();
                object["apiVersion"] = json!(format!("{group}/{version}"));
                object["kind"] = json!(&*kind.kind);
                asked.push(at);
                objects.push(object);
            }
        }
        if !asked.is_empty() {
            let converted = self.convert(custom, objects, &kind.api_version()).await?;
            for (at, object) in asked.into_iter().zip(converted) {
                trees[at] = without_type(object);
            }
        }
        Ok(trees)
    }

    /// A tree in the form of `kind` as it is stored.
    pub(super) async fn to_storage<'a>(
        &self,
        kind: &Kind,
        tree: &'a Value,
    ) -> Result<Cow<'a, Value>, Status> {
        let Some(custom) = webhook(kind) else { return Ok(Cow::Borrowed(tree)) };
        let stored = kind.storage_kind();
        let mut tree = tree.clone();
        if stored.group_version != kind.group_version {
            tree["apiVersion"] = json!(kind.api_version());
            tree["kind"] = json!(&*kind.kind);
            let converted = self.convert(custom, vec![tree], &stored.api_version()).await?;
            tree = converted.into_iter().next().map(without_type).unwrap_or_default();
        }
        tree[VERSION] = json!(&*stored.group_version.version);
        Ok(Cow::Owned(tree))
    }

    /// An object of one version of a custom kind in another, for whoever asked for that one.
    ///
    /// # Errors
    /// The webhook's failure.
    pub async fn convert_custom(&self, from: &Kind, to: &Kind, mut tree: Value) -> Result<Value, Status> {
        if let Some(custom) = webhook(to).filter(|_| from.group_version != to.group_version) {
            tree["apiVersion"] = json!(from.api_version());
            tree["kind"] = json!(&*from.kind);
            let converted = self.convert(custom, vec![tree], &to.api_version()).await?;
            tree = converted.into_iter().next().map(without_type).unwrap_or_default();
        }
        if let Some(custom) = CustomResource::of(to) {
            custom.prune(&mut tree).map_err(Status::internal)?;
        }
        Ok(tree)
    }

    async fn convert(
        &self,
        custom: &CustomResource,
        objects: Vec<Value>,
        api_version: &str,
    ) -> Result<Vec<Value>, Status> {
        let Some(converter) = self.0.converter.get().and_then(Weak::upgrade) else {
            return Err(Status::internal("there is nobody to convert custom objects"));
        };
        converter.convert(custom, objects, api_version).await
    }
}

fn without_type(mut object: Value) -> Value {
    if let Some(map) = object.as_object_mut() {
        map.remove("apiVersion");
        map.remove("kind");
    }
    object
}
