//! What a declaration may say of a kind, a method each: `Kind::builtin(...).short(&["po"]).with(...)`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::gated::{Gated, GatedFields};
use super::kind::{Kind, Selectable, StartingObjects, StoredAs, Subresource};
use super::quota::measure::Measure;
use super::strategy::Strategy;
use super::table::{CellsSource, Column};
use apimachinery::object::Object;
use apimachinery::time::Time;

impl Kind {
    /// Its objects live outside namespaces.
    pub fn cluster_scoped(mut self) -> Kind {
        self.namespaced = false;
        self
    }

    /// With short names.
    pub fn short(mut self, names: &[&str]) -> Kind {
        self.short_names = names.iter().copied().map(Arc::from).collect();
        self
    }

    /// Read straight from etcd: much is written of it that nobody reads.
    pub fn without_watch_cache(mut self) -> Kind {
        self.has_watch_cache = false;
        self
    }

    /// In categories (`all`).
    pub fn in_categories(mut self, names: &[&str]) -> Kind {
        self.categories = names.iter().copied().map(Arc::from).collect();
        self
    }

    /// With subresources.
    pub fn with(mut self, subresources: &[Subresource]) -> Kind {
        self.subresources = subresources.to_vec();
        self
    }

    /// With only these verbs.
    pub fn only(mut self, verbs: &[&str]) -> Kind {
        self.verbs = verbs.iter().copied().map(Arc::from).collect();
        self
    }

    /// With its own columns; `cells` makes a row of an object, in their order. `now` is for ages.
    pub fn printed(mut self, columns: Vec<Column>, cells: fn(&Object, Time) -> Vec<Value>) -> Kind {
        (self.columns, self.cells) = (columns, CellsSource::Function(cells));
        self
    }

    /// With selectable fields whose path is their name.
    pub fn selectable_by(mut self, names: &[&str]) -> Kind {
        let field = |name: &&str| Selectable {
            name: (*name).into(),
            path: (*name).into(),
            default: "".into(),
            or: None,
        };
        self.selectable.extend(names.iter().map(field));
        self
    }

    /// With selectable fields whose path is their name, each with the value of an object that has none.
    pub fn selectable_with(self, fields: &[(&str, &str)]) -> Kind {
        fields.iter().fold(self, |kind, (name, default)| kind.selectable_as(name, name, default))
    }

    /// With a selectable field that lives elsewhere or has a value when it is absent.
    pub fn selectable_as(mut self, name: &str, path: &str, default: &str) -> Kind {
        let (name, path, default) = (name.into(), path.into(), default.into());
        self.selectable.push(Selectable { name, path, default, or: None });
        self
    }

    /// With a selectable field that has the value of another, declared before it, when it is absent.
    pub fn selectable_or(mut self, name: &str, path: &str, other: &str) -> Kind {
        let or = self.selectable.iter().position(|field| &*field.name == other);
        let (name, path) = (name.into(), path.into());
        self.selectable.push(Selectable { name, path, default: "".into(), or });
        self
    }

    /// With defaults.
    pub fn defaulted(mut self, defaults: fn(&mut Value)) -> Kind {
        self.defaults = defaults;
        self
    }

    /// With defaults that are the time of the write.
    pub fn stamped(mut self, stamps: fn(&mut Value, Time)) -> Kind {
        self.stamps = stamps;
        self
    }

    /// With a strategy of its own.
    pub fn governed_by(mut self, strategy: impl Strategy + 'static) -> Kind {
        self.strategy = Arc::new(strategy);
        self
    }

    /// Counting generations.
    pub fn with_generation(mut self) -> Kind {
        self.counts_generation = true;
        self
    }

    /// A kind whose objects expire.
    pub fn living_for(mut self, time_to_live: Duration) -> Kind {
        self.time_to_live = Some(time_to_live);
        self
    }

    /// With objects that every server has.
    pub fn starting_with(mut self, objects: &'static StartingObjects) -> Kind {
        self.bootstrap = Some(objects);
        self
    }

    /// Not kept, but told each time.
    pub fn derived(mut self, objects: fn() -> Vec<Value>) -> Kind {
        self.derived = Some(objects);
        self
    }

    /// With a warning for whoever uses it.
    pub fn deprecated(mut self, warning: &'static str) -> Kind {
        self.deprecated = Some(warning);
        self
    }

    /// With the names, subresources, columns and selectable fields of another version of it, whose trees are
    /// alike.
    pub fn looking_like(mut self, other: &Kind) -> Kind {
        self.short_names = other.short_names.clone();
        self.categories = other.categories.clone();
        self.subresources = other.subresources.clone();
        (self.columns, self.cells) = (other.columns.clone(), other.cells.clone());
        self.selectable = other.selectable.clone();
        (self.defaults, self.stamps) = (other.defaults, other.stamps);
        self.counts_generation = other.counts_generation;
        (self.resets, self.status_resets) = (other.resets, other.status_resets);
        (self.gated, self.measure) = (other.gated.clone(), other.measure);
        self
    }

    /// Kept as another version.
    pub fn stored_as(mut self, stored: StoredAs) -> Kind {
        self.stored = Some(stored);
        self
    }

    /// Whose fields a write of the object leaves as they were (`GetResetFields`), when that is not the status
    /// alone.
    pub fn resets(mut self, fields: &'static [&'static str]) -> Kind {
        self.resets = Some(fields);
        self
    }

    /// Whose fields a write of the status leaves as they were, when that is not the spec alone.
    pub fn status_resets(mut self, fields: &'static [&'static str]) -> Kind {
        self.status_resets = fields;
        self
    }

    /// Whose labels and the like a write of the status leaves as they were.
    pub fn status_leaves_metadata(mut self) -> Kind {
        self.status_leaves_metadata = true;
        self
    }

    /// With fields behind feature gates; `below` is a JSON pointer to what their paths begin at.
    pub fn gated(mut self, below: &'static str, fields: &'static [Gated]) -> Kind {
        self.gated.push(GatedFields { below, fields });
        self
    }

    /// Whose delete answers with the object.
    pub fn returns_deleted(mut self) -> Kind {
        self.returns_deleted = true;
        self
    }

    /// Kept by upstream under another name than its plural.
    pub fn etcd_key(mut self, key: &'static str) -> Kind {
        self.etcd_key = Some(key);
        self
    }

    /// Kept by upstream as an older version with the same fields: servers of the release before read it.
    pub fn kept_as(mut self, version: &'static str) -> Kind {
        self.kept_version = Some(version);
        self
    }

    /// With a Scale of its own version, as versions of old had.
    pub fn with_own_scale(mut self) -> Kind {
        self.has_own_scale = true;
        self
    }

    /// Of which a quota measures more than how many there are.
    pub fn measured(mut self, measure: &'static dyn Measure) -> Kind {
        self.measure = measure;
        self
    }
}

#[cfg(test)]
mod tests {
    use apimachinery::managed_fields::ResetFields;

    use super::*;
    use crate::scheme::Scheme;

    fn kind(group: &str, plural: &str) -> Arc<Kind> {
        Scheme::builtin().resource(group, "v1", plural).expect("it is built in")
    }

    #[test]
    fn errors_say_where_upstream_keeps_a_kind() {
        let keys = [
            kind("", "nodes").etcd_resource(),
            kind("", "services").etcd_resource(),
            kind("apps", "deployments").etcd_resource(),
            kind("apiregistration.k8s.io", "apiservices").etcd_resource(),
        ];
        let wanted = ["minions", "services/specs", "deployments", "apiregistration.k8s.io/apiservices"];
        assert_eq!(keys, wanted);
        let mut custom = Kind::builtin("serving.example.com", "v1", "Service", "services", "x");
        custom.is_custom = true;
        assert_eq!(custom.etcd_resource(), "serving.example.com/services");
    }

    #[test]
    fn writes_leave_what_the_declaration_says() {
        let resets = |group: &str, plural: &str, part| kind(group, plural).reset_fields(part);
        let (main, status) = (None, Some(Subresource::Status));
        assert_eq!(resets("", "nodes", main), ResetFields::excluding(&["status"]));
        assert_eq!(resets("", "nodes", status), ResetFields::excluding(&["spec"]));
        assert_eq!(resets("", "configmaps", main), ResetFields::default());
        assert_eq!(resets("networking.k8s.io", "servicecidrs", main), ResetFields::default());
        let requests = |part| resets("certificates.k8s.io", "certificatesigningrequests", part);
        assert_eq!(requests(main), ResetFields::excluding(&["spec", "status"]));
        assert_eq!(requests(status), ResetFields::excluding(&["spec", "status.conditions"]));
    }

    #[test]
    fn few_kinds_answer_a_delete_with_the_object() {
        let returned = crate::all().into_iter().filter(|kind| kind.returns_deleted);
        let mut names: Vec<&str> = returned.map(|kind| &*kind.plural).collect();
        names.sort_unstable();
        let wanted = [
            "csidrivers",
            "csinodes",
            "persistentvolumeclaims",
            "persistentvolumes",
            "pods",
            "podtemplates",
            "resourcequotas",
            "serviceaccounts",
            "services",
            "storageclasses",
            "volumeattachments",
        ];
        assert_eq!(names, wanted);
    }
}
