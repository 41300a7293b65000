//! Tables: what `kubectl get` shows, made by the server (`metav1.Table`, `rest.TableConvertor`).

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use serde_json::{Value, json};

use super::json::{write_head, write_partial, write_typed};
use crate::endpoints::query::Query;
use apimachinery::field_error::FieldErrors;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apimachinery::time::Time;
use apis::table::{CellsSource, Column, age};

/// How much of its object a row carries (`metav1.IncludeObjectPolicy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IncludeObject {
    /// No columns.
    None,
    /// Its metadata; the default.
    Metadata,
    /// All of it.
    Object,
}

/// A table to be written: which columns, and how its rows look.
pub(crate) struct Table<'a> {
    /// The columns.
    pub columns: &'a [Column],
    /// The cells of a row.
    pub cells: &'a CellsSource,
    /// `apiVersion` and `kind` of the objects.
    pub type_meta: (&'a str, &'a str),
    /// The version of `meta.k8s.io`.
    pub version: &'a str,
    /// How much of its object a row carries.
    pub include: IncludeObject,
    /// For ages.
    pub now: Time,
}

/// `includeObject` of the query.
///
/// # Errors
/// 400 for a value that upstream does not know.
pub(crate) fn include_object(query: &Query) -> Result<IncludeObject, Status> {
    match query.get("includeObject").unwrap_or_default() {
        "" | "Metadata" => Ok(IncludeObject::Metadata),
        "None" => Ok(IncludeObject::None),
        "Object" => Ok(IncludeObject::Object),
        other => {
            let mut errors = FieldErrors::default();
            let detail = "must be 'Metadata', 'Object', 'None', or empty";
            errors.invalid("includeObject", &other.into(), detail);
            Err(Status::bad_request(format!("Unable to convert to Table as requested: {errors}")))
        }
    }
}

impl Table<'_> {
    /// Writes it. `list_metadata` is JSON without braces: `"resourceVersion":"7"`. The columns are left out
    /// behind the first event of a watch.
    pub(crate) fn write(
        &self,
        out: &mut BytesMut,
        list_metadata: &str,
        with_columns: bool,
        rows: &[Arc<Object>],
    ) {
        write_head(out, &format!("meta.k8s.io/{}", self.version), "Table");
        for part in [",\"metadata\":{", list_metadata, "},\"columnDefinitions\":"] {
            out.put_slice(part.as_bytes());
        }
        let columns = if with_columns { self.columns.iter().map(definition).collect() } else { Value::Null };
        out.put_slice(columns.to_string().as_bytes());
        out.put_slice(b",\"rows\":[");
        for (at, object) in rows.iter().enumerate() {
            if at > 0 {
                out.put_u8(b',');
            }
            self.write_row(out, object);
        }
        out.put_slice(b"]}");
    }

    fn write_row(&self, out: &mut BytesMut, object: &Object) {
        out.put_slice(b"{\"cells\":");
        let cells = self.cells.cells(object, self.now);
        serde_json::to_writer(out.writer(), &cells).expect("cells are JSON");
        out.put_slice(b",\"object\":");
        match self.include {
            IncludeObject::None => out.put_slice(b"null"),
            IncludeObject::Metadata => write_partial(out, self.version, object),
            IncludeObject::Object => write_typed(out, self.type_meta.0, self.type_meta.1, object),
        }
        out.put_u8(b'}');
    }
}

fn definition(column: &Column) -> Value {
    json!({"name": &*column.name, "type": &*column.column_type, "format": &*column.format,
        "description": &*column.description.text(), "priority": column.priority})
}

/// The columns of `scale`; custom kinds have words and a type of their own.
pub(crate) fn scale_columns(is_custom: bool) -> (Vec<Column>, CellsSource) {
    let (desired, available) = if is_custom {
        ("Number of desired replicas", "Number of actual replicas")
    } else {
        ("Number of desired pods.", "Number of available pods.")
    };
    let mut columns = vec![
        Column::name(),
        Column::new("Desired", "integer", desired),
        Column::new("Available", "integer", available),
        Column::age(),
    ];
    if is_custom {
        columns[3].column_type = "date".into();
    }
    let cells = CellsSource::Function(|object, now| {
        let scale = object.to_value();
        let number = |part: &str| scale[part]["replicas"].as_i64().unwrap_or(0).into();
        vec![object.metadata.name.clone().into(), number("spec"), number("status"), age(object, now)]
    });
    (columns, cells)
}
