//! What DefaultStorageClass and DefaultIngressClass have in common: an object that names no class gets the
//! one that is marked as the default.

use serde_json::Value;

use super::Initializer;
use super::lister::AdmissionLister;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apis::tree::{annotation, at, is_set, set};

/// Classes of one kind, and how an object names one.
pub(super) struct DefaultClass {
    classes: AdmissionLister,
    /// What the default bears: any of these annotations, with `true`.
    marks: &'static [&'static str],
    /// Where an object names its class. An empty name is a name: no class at all.
    field: &'static str,
    /// Where it did in former times.
    annotation: &'static str,
}

impl DefaultClass {
    /// Of the classes `(group, resource)`, which are in `v1`.
    pub(super) fn new(
        with: &Initializer,
        (group, resource): (&'static str, &'static str),
        marks: &'static [&'static str],
        (field, annotation): (&'static str, &'static str),
    ) -> DefaultClass {
        DefaultClass { classes: AdmissionLister::new(with, group, "v1", resource), marks, field, annotation }
    }

    /// Fills in the default's name.
    ///
    /// # Errors
    /// The store's.
    pub(super) async fn fill_in(&self, object: &mut Value) -> Result<(), Status> {
        let has_class =
            is_set(object, self.field) || at(object, "metadata.annotations").get(self.annotation).is_some();
        if has_class {
            return Ok(());
        }
        let classes = self.classes.list("").await?;
        if let Some(class) = newest(classes.iter().filter(|class| self.is_default(class))) {
            set(object, self.field, class.metadata.name.as_str());
        }
        Ok(())
    }

    fn is_default(&self, class: &Object) -> bool {
        let class = class.to_value();
        self.marks.iter().any(|name| annotation(&class, name) == "true")
    }
}

/// Of several defaults the one that was made last; of those the first by name.
fn newest<'a, O: AsRef<Object> + 'a>(objects: impl Iterator<Item = &'a O>) -> Option<&'a Object> {
    let rank = |object: &&Object| {
        (std::cmp::Reverse(object.metadata.creation_timestamp), object.metadata.name.clone())
    };
    objects.map(AsRef::as_ref).min_by_key(rank)
}
