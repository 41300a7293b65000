//! Columns and cells of `kubectl get` (`metav1.Table`, `k8s.io/kubernetes/pkg/printers/internalversion`).

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use apimachinery::object::Object;
use apimachinery::schema::Schemas;
use apimachinery::time::{Time, human_duration, rfc3339};

/// Makes a row of an object. `now` is for ages. The cells stand in the order of the columns.
pub type CellsFn = CellsSource;

/// Makes a row, knowing what was only known at run time.
pub type CellsClosure = dyn Fn(&Object, Time) -> Vec<Value> + Send + Sync;

/// Where cells come from: a function of the built-in kinds, or the printer columns of a custom one.
#[derive(Clone)]
pub enum CellsSource {
    /// Declared in the source.
    Function(fn(&Object, Time) -> Vec<Value>),
    /// Made at run time.
    Closure(Arc<CellsClosure>),
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

/// What a column is said to mean. Most are what the API says of a field: those are looked up when they are
/// first asked for, because start-up must not pay for reading documentation.
#[derive(Clone, Debug)]
pub enum Description {
    /// Written out.
    Text(Arc<str>),
    /// What the definition (as `io.k8s.api.core.v1.PodStatus`) says of its field.
    Field(&'static str, &'static str, OnceLock<Arc<str>>),
}

impl Description {
    /// The words; empty when the definition has none.
    pub fn text(&self) -> Arc<str> {
        match self {
            Description::Text(text) => text.clone(),
            Description::Field(definition, field, text) => {
                text.get_or_init(|| documentation(definition, field)).clone()
            }
        }
    }
}

fn documentation(definition: &str, field: &str) -> Arc<str> {
    let published = Schemas::builtin().published(definition).unwrap_or_default();
    published["properties"][field]["description"].as_str().unwrap_or("").into()
}

/// `metav1.TableColumnDefinition`.
#[derive(Clone, Debug)]
pub struct Column {
    /// The heading.
    pub name: Arc<str>,
    /// The OpenAPI type: `string`, `integer`, ...
    pub column_type: Arc<str>,
    /// The OpenAPI format; `name` marks the column that identifies the row.
    pub format: Arc<str>,
    /// For people.
    pub description: Description,
    /// 0 is always shown; greater only with `-o wide`.
    pub priority: i32,
}

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

impl Column {
    /// A column that is always shown.
    pub fn new(name: &str, column_type: &str, description: &str) -> Column {
        Column::described(name, column_type, Description::Text(description.into()))
    }

    /// A column that is always shown and means what a field means.
    pub fn of(name: &str, column_type: &str, definition: &'static str, field: &'static str) -> Column {
        Column::described(name, column_type, Description::Field(definition, field, OnceLock::new()))
    }

    /// A column that only `-o wide` shows.
    pub fn wide(self) -> Column {
        Column { priority: 1, ..self }
    }

    /// The name column of every built-in kind.
    pub fn name() -> Column {
        Column::of("Name", "string", OBJECT_META, "name")
    }

    /// The age column of every built-in kind.
    pub fn age() -> Column {
        Column::of("Age", "string", OBJECT_META, "creationTimestamp")
    }

    fn described(name: &str, column_type: &str, description: Description) -> Column {
        let format = if name == "Name" { "name" } else { "" };
        let (name, column_type) = (name.into(), column_type.into());
        Column { name, column_type, format: format.into(), description, priority: 0 }
    }
}

/// What upstream prints of a built-in kind without a printer of its own (`rest.NewDefaultTableConvertor`):
/// the name and the creation time.
pub fn name_and_created_at() -> (Vec<Column>, CellsFn) {
    let created_at = Column::of("Created At", "date", OBJECT_META, "creationTimestamp");
    let cells = |object: &Object, _: Time| {
        let created_at = object.metadata.creation_timestamp.map(rfc3339);
        vec![object.metadata.name.clone().into(), created_at.into()]
    };
    (vec![Column::name(), created_at], CellsSource::Function(cells))
}

/// What upstream prints of a custom kind without printer columns: the name and the age.
pub fn name_and_age() -> (Vec<Column>, CellsFn) {
    let cells = |object: &Object, now: Time| vec![object.metadata.name.clone().into(), age(object, now)];
    (vec![Column::name(), Column::age()], CellsSource::Function(cells))
}

/// The age cell: how long ago the object was created.
pub fn age(object: &Object, now: Time) -> Value {
    since(object.metadata.creation_timestamp, now).into()
}

/// How long ago `time` was, for people; `<unknown>` when it never was.
pub fn since(time: Option<Time>, now: Time) -> String {
    time.map_or("<unknown>".into(), |time| human_duration((now - time).num_seconds()))
}
