//! Selectors over kinds whose versions a webhook turns into one another: they are asked of the object in the
//! version that the client sees, which the storage does not know (upstream's storage decodes, and so
//! converts, before it selects).
//!
//! The storage is asked for all objects of the place; this sorts them out.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use tokio::sync::mpsc;

use super::Registry;
use super::conversion::{encode_options, storage_kind, webhook};
use apimachinery::labels::Selector;
use apimachinery::list::List;
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::selectable::Predicate;
use apimachinery::status::Status;
use apimachinery::watch::WatchEvent;
use apis::kind::Kind;

/// What one watcher sees through its selector, in its version.
pub(super) struct ConvertedView {
    kind: Arc<Kind>,
    predicate: Predicate,
    /// What it was told of and not told the end of, by key: as many as match.
    seen: HashMap<Arc<str>, Arc<Object>, FixedState>,
}

impl ConvertedView {
    fn new(kind: &Arc<Kind>, predicate: &Predicate) -> ConvertedView {
        ConvertedView { kind: kind.clone(), predicate: predicate.clone(), seen: HashMap::default() }
    }

    fn matches(&self, object: &Object) -> bool {
        self.predicate.matches(object, &self.kind.field_names())
    }

    fn has_seen(&mut self, objects: &[Arc<Object>]) {
        let field_names = self.kind.field_names();
        let matching = objects.iter().filter(|object| self.predicate.matches(object, &field_names));
        self.seen.extend(matching.map(|object| (object.shared_key().clone(), object.clone())));
    }

    /// What the watcher is told of a change: coming into view is an addition, leaving it a deletion of the
    /// state that was in view.
    pub(super) fn told(&mut self, event: WatchEvent) -> Option<WatchEvent> {
        let (WatchEvent::Added(object) | WatchEvent::Modified(object)) = &event else {
            let WatchEvent::Deleted(object) = &event else { return Some(event) };
            return self.seen.remove(object.shared_key()).map(|_| event);
        };
        let (object, before) = (object.clone(), self.seen.remove(object.shared_key()));
        if !self.matches(&object) {
            let revision = object.metadata.resource_version;
            return before.map(|before| WatchEvent::Deleted(Arc::new(before.at_revision(revision))));
        }
        self.seen.insert(object.shared_key().clone(), object.clone());
        Some(if before.is_some() { WatchEvent::Modified(object) } else { WatchEvent::Added(object) })
    }
}

impl Registry {
    /// A list in the form of `kind`, of what matches in this form.
    pub(super) async fn list_presented(
        &self,
        kind: &Arc<Kind>,
        namespace: &str,
        options: &ListOptions,
    ) -> Result<List, Status> {
        let stored = storage_kind(kind);
        let Some(mut asked) = without_selectors(kind, options) else {
            let list = self.0.storage.list(&stored, namespace, &encode_options(kind, options)).await?;
            return self.present_list(kind, list).await;
        };
        let field_names = kind.field_names();
        let limit = options.limit.filter(|limit| *limit > 0);
        let mut found: Vec<Arc<Object>> = vec![];
        loop {
            let page = self.0.storage.list(&stored, namespace, &asked).await?;
            let page = self.present_list(kind, page).await?;
            let matching = page.items.iter().filter(|object| options.predicate.matches(object, &field_names));
            found.extend(matching.cloned());
            let wanted = limit.map_or(0, |limit| limit.saturating_sub(found.len()));
            if wanted == 0 || page.continue_token.is_empty() {
                let (items, remaining_item_count) = (found.into(), None);
                return Ok(List { items, remaining_item_count, ..page });
            }
            asked.limit = Some(wanted);
            asked.continue_token = Some(page.continue_token);
            (asked.resource_version, asked.resource_version_match) = (None, None);
        }
    }

    /// A watch in the form of `kind`, of what matches in this form.
    pub(super) async fn watch_presented(
        &self,
        kind: &Arc<Kind>,
        namespace: &str,
        options: &ListOptions,
    ) -> Result<mpsc::Receiver<WatchEvent>, Status> {
        let stored = storage_kind(kind);
        let Some(mut asked) = without_selectors(kind, options) else {
            let options = encode_options(kind, options);
            let events = self.0.storage.watch(&stored, namespace, &options).await?;
            return Ok(self.present_watch(kind, events, None));
        };
        let mut view = ConvertedView::new(kind, &options.predicate);
        let revision = options.resource_version.clone().filter(|revision| !matches!(&**revision, "" | "0"));
        let begins_with_the_state = options.send_initial_events.unwrap_or(revision.is_none());
        if begins_with_the_state {
            let events = self.0.storage.watch(&stored, namespace, &asked).await?;
            return Ok(self.present_watch(kind, events, Some(view)));
        }
        // What was in view before the first event says whether that is an addition.
        let before = ListOptions {
            predicate: asked.predicate.clone(),
            resource_version_match: revision.as_ref().map(|_| "Exact".into()),
            resource_version: revision,
            ..ListOptions::default()
        };
        let listed = self.0.storage.list(&stored, namespace, &before).await;
        if before.resource_version.is_none()
            && let Ok(now) = &listed
        {
            asked.resource_version = Some(now.resource_version.to_string());
        }
        // The watch is the first to say what is wrong with its options.
        let events = self.0.storage.watch(&stored, namespace, &asked).await?;
        match listed {
            Ok(list) => view.has_seen(&self.present_list(kind, list).await?.items),
            Err(status) if status.code == 410 => return Ok(ended_by(status)),
            Err(status) => return Err(status),
        }
        Ok(self.present_watch(kind, events, Some(view)))
    }
}

/// Options that ask the storage for all that a selector may match in another version: conversion leaves
/// names and namespaces alone, and may change labels and every other field. None if the storage can select.
fn without_selectors(kind: &Kind, options: &ListOptions) -> Option<ListOptions> {
    let is_kept = |field: &str| matches!(field, "metadata.name" | "metadata.namespace");
    let Predicate { labels, fields, .. } = &options.predicate;
    let storage_selects =
        labels.is_everything() && fields.requirements.iter().all(|requirement| is_kept(&requirement.field));
    if webhook(kind).is_none() || storage_selects {
        return None;
    }
    let mut asked = options.clone();
    asked.predicate.labels = Selector::default();
    asked.predicate.fields.requirements.retain(|requirement| is_kept(&requirement.field));
    Some(asked)
}

/// A watch that tells of its end alone.
fn ended_by(status: Status) -> mpsc::Receiver<WatchEvent> {
    let (sender, receiver) = mpsc::channel(1);
    // The channel has room for it.
    let _ = sender.try_send(WatchEvent::error(status));
    receiver
}
