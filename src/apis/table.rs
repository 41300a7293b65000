//! Columns and cells of `kubectl get` (`metav1.Table`, `k8s.io/kubernetes/pkg/printers/internalversion`).

use std::sync::Arc;

use serde_json::Value;

use crate::apimachinery::object::Object;
use crate::apimachinery::time::{Time, human_duration};

/// Makes a row of an object. `now` is for ages. The cells stand in the order of the columns.
pub type CellsFn = CellsSource;

/// Where cells come from: a function of the built-in kinds, or the printer columns of a custom one.
#[derive(Clone)]
pub enum CellsSource {
    /// Declared in the source.
    Function(fn(&Object, Time) -> Vec<Value>),
    /// Made at run time.
    Closure(Arc<dyn Fn(&Object, Time) -> Vec<Value> + Send + Sync>),
}

impl CellsSource {
    /// The cells of one row.
    pub fn cells(&self, object: &Object, now: Time) -> Vec<Value> {
        match self {
            CellsSource::Function(function) => function(object, now),
            CellsSource::Closure(closure) => closure(object, now),
        }
    }
}

/// `metav1.TableColumnDefinition`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The heading.
    pub name: Arc<str>,
    /// The OpenAPI type: `string`, `integer`, ...
    pub column_type: Arc<str>,
    /// The OpenAPI format; `name` marks the column that identifies the row.
    pub format: Arc<str>,
    /// For people.
    pub description: Arc<str>,
    /// 0 is always shown; greater only with `-o wide`.
    pub priority: i32,
}

impl Column {
    /// A column that is always shown.
    pub fn new(name: &str, column_type: &str, description: &str) -> Column {
        let format = if name == "Name" { "name" } else { "" };
        Column {
            name: name.into(),
            column_type: column_type.into(),
            format: format.into(),
            description: description.into(),
            priority: 0,
        }
    }

    /// A column that only `-o wide` shows.
    pub fn wide(name: &str, column_type: &str, description: &str) -> Column {
        Column { priority: 1, ..Column::new(name, column_type, description) }
    }

    /// The name column of every built-in kind; its description is that of `metadata.name`.
    pub fn name() -> Column {
        const TEXT: &str = "Name must be unique within a namespace. Is required when creating resources, although some \
resources may allow a client to request the generation of an appropriate name automatically. Name is primarily \
intended for creation idempotence and configuration definition. Cannot be updated. More info: \
https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
        Column::new("Name", "string", TEXT)
    }

    /// The age column of every built-in kind; its description is that of `metadata.creationTimestamp`.
    pub fn age() -> Column {
        const TEXT: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. \
It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. \
It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: \
https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
        Column::new("Age", "string", TEXT)
    }
}

/// What upstream prints of a kind without a printer of its own: the name and the creation time.
pub fn name_and_age() -> (Vec<Column>, CellsFn) {
    let columns = vec![Column::name(), Column::age()];
    (
        columns,
        CellsSource::Function(|object, now| vec![object.metadata.name.clone().into(), age(object, now)]),
    )
}

/// The age cell: how long ago the object was created.
pub fn age(object: &Object, now: Time) -> Value {
    since(object.metadata.creation_timestamp, now).into()
}

/// How long ago `time` was, for people; `<unknown>` when it never was.
pub fn since(time: Option<Time>, now: Time) -> String {
    time.map_or("<unknown>".into(), |time| human_duration((now - time).num_seconds()))
}
