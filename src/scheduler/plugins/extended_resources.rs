//! Extended resources that are devices: a DeviceClass says so by its `extendedResourceName`, and every class
//! has one made of its name (`deviceclass/extendedresourcecache`).

use std::sync::Arc;

use apimachinery::object::Object;
use apis::tree::text;
use client_go::lister::Lister;

/// Before a DeviceClass's name, for the resource that it always stands for.
const IMPLICIT_PREFIX: &str = "deviceclass.resource.kubernetes.io/";

/// Looks device classes up; without a lister there are none.
#[derive(Clone, Default)]
pub struct ExtendedResources {
    classes: Option<Lister>,
}

impl ExtendedResources {
    /// Reads DeviceClasses.
    pub fn new(classes: Lister) -> ExtendedResources {
        ExtendedResources { classes: Some(classes) }
    }

    /// Whether devices of some class are given out as this resource.
    pub fn is_device(&self, resource: &str) -> bool {
        self.class_of(resource).is_some()
    }

    /// The class whose devices are this resource; of several that say so the youngest.
    pub fn class_of(&self, resource: &str) -> Option<Arc<Object>> {
        let classes = self.classes.as_ref()?;
        // Native resources have no domain, and no class can stand for them.
        if !resource.contains('/') {
            return None;
        }
        if let Some(name) = resource.strip_prefix(IMPLICIT_PREFIX) {
            return classes.get("", name);
        }
        let says_so = |class: &Arc<Object>| text(&class.to_value(), "spec.extendedResourceName") == resource;
        let mut found: Vec<Arc<Object>> = classes.all().into_iter().filter(says_so).collect();
        found.sort_by_key(|class| std::cmp::Reverse(class.metadata.creation_timestamp));
        found.into_iter().next()
    }
}
