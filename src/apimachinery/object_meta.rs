//! `ObjectMeta`: what machinery reads of the metadata of an object.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::time::{self, Time};

/// The part of `metadata` that machinery reads (`metav1.ObjectMeta`); annotations and managed fields stay in
/// the bytes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[repr(C)]
pub struct ObjectMeta {
    /// The store's revision of the last write; 0 when it was never stored.
    #[serde(deserialize_with = "revision")]
    pub resource_version: u64,
    /// Unique in its namespace and resource.
    pub name: String,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// Unique in time and space.
    pub uid: String,
    /// Counts the changes of desired state.
    pub generation: i64,
    /// When the server created it.
    pub creation_timestamp: Option<Time>,
    /// When it will be gone; set by the server on a graceful delete.
    pub deletion_timestamp: Option<Time>,
    /// Seconds of grace that it was given; only beside `deletionTimestamp`.
    pub deletion_grace_period_seconds: Option<i64>,
    /// What selectors match.
    #[serde(deserialize_with = "nullable")]
    pub labels: BTreeMap<String, String>,
    /// The objects that it depends on.
    #[serde(deserialize_with = "list")]
    pub owner_references: Vec<OwnerReference>,
    /// Who must agree before it is removed.
    #[serde(deserialize_with = "list")]
    pub finalizers: Vec<String>,
    /// Whether there are any: somebody must look at it before it is there for others.
    #[serde(deserialize_with = "is_there")]
    pub initializers: bool,
}

/// `metav1.OwnerReference`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    /// The owner's `apiVersion`.
    pub api_version: String,
    /// The owner's kind.
    pub kind: String,
    /// The owner's name, in the dependent's namespace or cluster-scoped.
    pub name: String,
    /// The owner's uid: a new object of the same name is another owner.
    pub uid: String,
    /// Whether this owner is the managing controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// Whether foreground deletion of the owner waits for this object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

/// Bytes that are not an object.
#[derive(Debug, thiserror::Error)]
#[error("not an API object: {0}")]
pub struct Malformed(pub(super) String);

impl Malformed {
    /// Bytes that are no object, and why.
    pub fn new(why: impl Into<String>) -> Malformed {
        Malformed(why.into())
    }
}

impl ObjectMeta {
    /// Reads a tree as deserializing it would, which is too slow for every write.
    pub(super) fn of_tree(tree: &Value) -> Result<ObjectMeta, Malformed> {
        match tree.as_object().and_then(ObjectMeta::of_members) {
            Some(metadata) => Ok(metadata),
            // Something is of an unexpected type: serde has the words for it, or takes it after all.
            None => ObjectMeta::deserialize(tree).map_err(|error| Malformed(error.to_string())),
        }
    }

    fn of_members(members: &Map<String, Value>) -> Option<ObjectMeta> {
        let mut metadata = ObjectMeta::default();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let time = |value: &Value| value.as_str().and_then(time::parse);
        for (name, value) in members {
            match name.as_str() {
                "name" => metadata.name = text(value)?,
                "namespace" => metadata.namespace = text(value)?,
                "uid" => metadata.uid = text(value)?,
                "resourceVersion" => metadata.resource_version = value.as_str()?.parse().unwrap_or(0),
                "generation" => metadata.generation = value.as_i64()?,
                "creationTimestamp" => metadata.creation_timestamp = Some(time(value)?),
                "deletionTimestamp" => metadata.deletion_timestamp = Some(time(value)?),
                "deletionGracePeriodSeconds" => {
                    metadata.deletion_grace_period_seconds = Some(value.as_i64()?);
                }
                "labels" => {
                    for (key, value) in value.as_object()? {
                        metadata.labels.insert(key.clone(), text(value)?);
                    }
                }
                "ownerReferences" => metadata.owner_references = Vec::deserialize(value).ok()?,
                "finalizers" => metadata.finalizers = Vec::deserialize(value).ok()?,
                "initializers" => metadata.initializers = !value.is_null(),
                _ => {}
            }
        }
        Some(metadata)
    }
}

fn revision<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = Option::<std::borrow::Cow<'de, str>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(text.parse().unwrap_or(0))
}

fn is_there<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::<serde::de::IgnoredAny>::deserialize(deserializer)?.is_some())
}

/// A list that is kept for long and takes no more room than it needs; most have one element, for which a
/// growing list would make room for four. `null` reads as none.
///
/// # Errors
/// It is no list, or an element of it is not as it should be.
pub fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_option(ListVisitor(PhantomData))
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> serde::de::Visitor<'de> for ListVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_unit<E>(self) -> Result<Vec<T>, E> {
        Ok(Vec::new())
    }

    fn visit_none<E>(self) -> Result<Vec<T>, E> {
        Ok(Vec::new())
    }

    fn visit_some<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_seq(self)
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut elements: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element()? {
            if list.is_empty() {
                list.reserve_exact(1);
            }
            list.push(element);
        }
        list.shrink_to_fit();
        Ok(list)
    }
}

/// `null` reads as the default, as it does in Go.
pub fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}
