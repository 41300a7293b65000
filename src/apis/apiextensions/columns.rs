//! `additionalPrinterColumns` (`registry/customresource/tableconvertor`).

use std::sync::Arc;

use serde_json::Value;

use super::json_path::JsonPath;
use super::view::PrinterColumn;
use crate::table::{CellsFn, CellsSource, Column, Description, since};
use apimachinery::object::Object;
use apimachinery::time::{Time, parse};

/// The columns of a version and how its rows are made; without any of its own, the age.
pub(super) fn columns(declared: &[PrinterColumn]) -> (Vec<Column>, CellsFn) {
    let age = PrinterColumn {
        name: "Age".into(),
        column_type: "date".into(),
        json_path: ".metadata.creationTimestamp".into(),
        ..PrinterColumn::default()
    };
    let age = [age];
    let declared = if declared.is_empty() { &age[..] } else { declared };
    let is_age = |column: &PrinterColumn| column.json_path == age[0].json_path && declared.len() == 1;
    let mut columns = vec![Column::name()];
    columns.extend(declared.iter().map(|column| definition(column, is_age(column))));
    // A path that cannot be read was refused when it was declared.
    let paths: Vec<(String, JsonPath)> = declared
        .iter()
        .map(|column| (column.column_type.clone(), JsonPath::parse(&column.json_path)))
        .map(|(column_type, path)| {
            (column_type, path.unwrap_or_else(|_| JsonPath::parse(".").expect("a dot")))
        })
        .collect();
    let cells = move |object: &Object, now: Time| {
        let tree = object.to_value();
        let cells = paths.iter().map(|(column_type, path)| cell(column_type, path.find(&tree).first(), now));
        [Value::from(object.metadata.name.as_str())].into_iter().chain(cells).collect()
    };
    (columns, CellsSource::Closure(Arc::new(cells)))
}

fn definition(column: &PrinterColumn, is_age: bool) -> Column {
    let mut made = if is_age && column.description.is_empty() {
        Column::age()
    } else {
        let path = &column.json_path;
        let text = match column.description.as_str() {
            "" => format!("Custom resource definition column (in JSONPath format): {path}"),
            text => text.to_owned(),
        };
        Column { description: Description::Text(text.into()), ..Column::new(&column.name, "", "") }
    };
    made.column_type = column.column_type.as_str().into();
    made.format = column.format.as_str().into();
    made.priority = column.priority;
    made
}

fn cell(column_type: &str, value: Option<&&Value>, now: Time) -> Value {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Value::Null };
    match (column_type, *value) {
        ("string", Value::String(text)) => text.as_str().into(),
        ("string", other) => other.to_string().into(),
        ("integer", Value::Number(number)) => {
            number.as_i64().or(number.as_f64().map(|number| number as i64)).into()
        }
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => (*value).clone(),
        ("date", Value::String(text)) => match parse(text) {
            Some(time) => since(Some(time), now).into(),
            None => "<invalid>".into(),
        },
        _ => Value::Null,
    }
}
