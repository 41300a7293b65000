//! `Updater`: how ownership moves when an object is written (`structured-merge-diff/merge.Updater`).

use std::collections::BTreeMap;

use serde_json::Value;

use super::atom::SchemaType;
use super::compare::{Comparison, compare};
use super::conflict::{Conflict, Conflicts};
use super::field_set::field_set;
use super::managed::{Managed, ManagerEntry, ManagerId};
use super::merge::merge;
use super::reconcile::reconcile;
use super::remove::remove_items;
use super::reset::ResetFields;
use super::set::Set;

/// The other versions of a kind: owners are recorded in the version that they wrote in.
pub trait Converter: Sync {
    /// An object of the updater's version in another; None for a version that is not served any more.
    fn convert(&self, object: &Value, api_version: &str) -> Option<Value>;
    /// Back from another version.
    fn convert_back(&self, object: &Value, api_version: &str) -> Option<Value>;
    /// What is known of the fields in another version.
    fn schema(&self, api_version: &str) -> Option<SchemaType<'_>>;
}

/// Of a kind that is served in one version, or that nobody owned before.
pub struct OneVersion;

impl Converter for OneVersion {
    fn convert(&self, _: &Value, _: &str) -> Option<Value> {
        None
    }

    fn convert_back(&self, _: &Value, _: &str) -> Option<Value> {
        None
    }

    fn schema(&self, _: &str) -> Option<SchemaType<'_>> {
        None
    }
}

/// One version of one kind, as one request writes it.
#[derive(Clone, Copy)]
pub struct Updater<'a> {
    /// What is known of its fields.
    pub kind: SchemaType<'a>,
    /// As `apps/v1`.
    pub api_version: &'a str,
    /// What the request cannot write; nobody owns it by this request.
    pub reset: &'a ResetFields,
    /// For owners of other versions.
    pub converter: &'a dyn Converter,
}

/// Why an apply was refused.
#[derive(Clone, Debug, PartialEq)]
pub enum ApplyRefusal {
    /// Others own what it would change.
    Conflicts(Conflicts),
    /// Something that upstream does not classify; its words.
    Other(String),
}

impl Updater<'_> {
    /// A write that is no apply: nobody else owns any more what changed. The fields that `who`, whose own
    /// entry is the caller's to change, comes to own; None when nothing changed.
    pub fn update(
        &self,
        live: &Value,
        new: &Value,
        managed: &mut Managed,
        who: &ManagerId,
    ) -> Option<Comparison> {
        let comparison = self.compared(live, new);
        if comparison.is_same() && managed.0.iter().all(|entry| entry.id.api_version == self.api_version) {
            return None;
        }
        self.take(live, new, &comparison, managed, who);
        Some(comparison)
    }

    /// An apply: what the configuration says counts; what its last one said and this does not is removed,
    /// unless others own it. None when the object stays as it is.
    ///
    /// # Errors
    /// Without `force`, when others own what it would change.
    pub fn apply(
        &self,
        live: &Value,
        config: &Value,
        managed: &mut Managed,
        who: &ManagerId,
        force: bool,
    ) -> Result<Option<Value>, ApplyRefusal> {
        self.reconcile_all(managed);
        let merged = merge(self.kind, live, config)
            .map_err(|error| ApplyRefusal::Other(format!("failed to merge config: {error}")))?;
        let last = managed.position(who).map(|at| managed.0[at].clone());
        let set = self.reset.filter(field_set(self.kind, config));
        managed.put(ManagerEntry::new(who.clone(), last.as_ref().and_then(|last| last.time.clone()), set));
        let new = match &last {
            Some(last) if !last.set().is_empty() => self.prune(merged, managed, last),
            _ => merged,
        };
        let comparison = self.compared(live, &new);
        let conflicts = self.take(live, &new, &comparison, managed, who);
        if !force && !conflicts.is_empty() {
            return Err(ApplyRefusal::Conflicts(conflicts));
        }
        let is_noop = super::path::equal(live, &new);
        Ok((!is_noop).then_some(new))
    }

    fn compared(&self, live: &Value, new: &Value) -> Comparison {
        self.reset.filter_comparison(compare(self.kind, live, new))
    }

    /// Takes what changed from everybody but the writer, and says from whom fields were taken that still are
    /// there.
    fn take(
        &self,
        live: &Value,
        new: &Value,
        comparison: &Comparison,
        managed: &mut Managed,
        writer: &ManagerId,
    ) -> Conflicts {
        let mut versions: BTreeMap<String, Option<Comparison>> = BTreeMap::new();
        let mut conflicts = Conflicts::default();
        if managed.0.is_empty() {
            return conflicts;
        }
        let changed = comparison.changed();
        let mut kept = Vec::with_capacity(managed.0.len());
        for mut entry in std::mem::take(&mut managed.0) {
            if writer.is_same(&entry.id) {
                kept.push(entry);
                continue;
            }
            if entry.id.api_version == self.api_version {
                if self.take_from(&mut entry, comparison, &changed, &mut conflicts) {
                    kept.push(entry);
                }
                continue;
            }
            let version = entry.id.api_version.clone();
            let other =
                versions.entry(version.clone()).or_insert_with(|| self.converted(live, new, &version));
            // A version that is not served any more: its owners go.
            let Some(comparison) = other else { continue };
            if self.take_from(&mut entry, comparison, &comparison.changed(), &mut conflicts) {
                kept.push(entry);
            }
        }
        managed.0 = kept;
        conflicts
    }

    /// Whether the entry still owns anything.
    fn take_from(
        &self,
        entry: &mut ManagerEntry,
        comparison: &Comparison,
        changed: &Set,
        conflicts: &mut Conflicts,
    ) -> bool {
        if changed.is_empty() || !entry.is_touched_by(changed) {
            return true;
        }
        let own = entry.set().into_owned();
        let own = self.schema_of(&entry.id.api_version).and_then(|kind| reconcile(kind, &own)).unwrap_or(own);
        let contested = own.intersection(&comparison.modified.union(&comparison.added));
        let paths = contested.paths().into_iter();
        conflicts.0.extend(paths.map(|path| Conflict { manager: entry.id.clone(), path }));
        let left = own.without(&contested).without(&comparison.removed);
        let is_left = !left.is_empty();
        entry.set_fields(left);
        is_left
    }

    fn converted(&self, live: &Value, new: &Value, version: &str) -> Option<Comparison> {
        let kind = self.converter.schema(version)?;
        let (live, new) = (self.converter.convert(live, version)?, self.converter.convert(new, version)?);
        Some(compare(kind, &live, &new))
    }

    fn schema_of(&self, version: &str) -> Option<SchemaType<'_>> {
        if version == self.api_version { Some(self.kind) } else { self.converter.schema(version) }
    }

    fn reconcile_all(&self, managed: &mut Managed) {
        managed.0.retain(|entry| self.schema_of(&entry.id.api_version).is_some());
        for entry in &mut managed.0 {
            let Some(kind) = self.schema_of(&entry.id.api_version) else { continue };
            if let Some(set) = reconcile(kind, &entry.set()) {
                entry.set_fields(set);
            }
        }
    }

    /// Removes what the applier applied last time and not this time, unless anybody else owns it.
    fn prune(&self, merged: Value, managed: &Managed, last: &ManagerEntry) -> Value {
        let version = &last.id.api_version;
        let is_own = version == self.api_version;
        let at_last = if is_own { Some(merged.clone()) } else { self.converter.convert(&merged, version) };
        let (Some(at_last), Some(kind)) = (at_last, self.schema_of(version)) else { return merged };
        let last = last.set();
        let pruned = remove_items(kind, &at_last, &last.with_named_fields(Some(kind)));
        let pruned = self.add_back_owned(&at_last, pruned, version, managed);
        let pruned = add_back_dangling(kind, &at_last, &pruned, &last);
        if is_own { pruned } else { self.converter.convert_back(&pruned, version).unwrap_or(merged) }
    }

    /// What others own, or the applier still does, is not removed: each version's owners in that version,
    /// those of the pruned one first.
    fn add_back_owned(&self, merged: &Value, pruned: Value, version: &str, managed: &Managed) -> Value {
        let mut owned: BTreeMap<(bool, &str), Set> = BTreeMap::new();
        for entry in &managed.0 {
            let own = entry.id.api_version.as_str();
            let set = owned.entry((own != version, own)).or_default();
            *set = set.union(&entry.set());
        }
        let mut pruned = pruned;
        for ((_, at), owned) in owned {
            let Some(kind) = self.schema_of(at) else { continue };
            let there = |object: &Value| self.between(object, version, at);
            let (Some(merged), Some(left)) = (there(merged), there(&pruned)) else { continue };
            let all = field_set(kind, &merged).with_named_fields(Some(kind));
            let keep = field_set(kind, &left).with_named_fields(Some(kind));
            let keep = keep.union(&owned.with_named_fields(Some(kind)));
            let left = remove_items(kind, &merged, &all.difference(&keep));
            pruned = self.between(&left, at, version).unwrap_or(pruned);
        }
        pruned
    }

    fn between(&self, object: &Value, from: &str, to: &str) -> Option<Value> {
        if from == to {
            return Some(object.clone());
        }
        let own = if from == self.api_version {
            object.clone()
        } else {
            self.converter.convert_back(object, from)?
        };
        if to == self.api_version { Some(own) } else { self.converter.convert(&own, to) }
    }
}

/// What nobody owns and the applier never owned is not removed.
fn add_back_dangling(kind: SchemaType, merged: &Value, pruned: &Value, last: &Set) -> Value {
    let left = field_set(kind, pruned).with_named_fields(Some(kind));
    let all = field_set(kind, merged).with_named_fields(Some(kind));
    let last = last.with_named_fields(Some(kind));
    remove_items(kind, merged, &all.difference(&left).intersection(&last))
}
