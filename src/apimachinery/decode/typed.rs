//! The visitor that decodes by schema.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::context::{DecodeContext, DecodeStep};
use super::{conversion, scalar};
use crate::schema::{Fields, Presence, Schema, Schemas, Shape, is_dropped, zero_value};

/// The definition of the metadata of every object.
pub(super) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// JSON of no schema.
const FREE: &Schema = &Schema::FREE;

/// Decodes one value by its schema.
pub(super) struct Typed<'c, 's> {
    schema: &'s Schema,
    /// The Go type that the holder's declares for it (`[]v1.Capability` has elements of `v1.Capability`).
    declared: Option<&'s str>,
    is_root: bool,
    context: &'c mut DecodeContext<'s>,
}

impl<'c, 's> Typed<'c, 's> {
    /// For a value below the root.
    pub(super) fn new(schema: &'s Schema, context: &'c mut DecodeContext<'s>) -> Self {
        Self { schema, declared: None, is_root: false, context }
    }

    /// For a whole object.
    pub(super) fn root(schema: &'s Schema, context: &'c mut DecodeContext<'s>) -> Self {
        Self { is_root: true, ..Self::new(schema, context) }
    }

    fn shape(&self) -> &'s Shape {
        match (self.is_root, self.context.typed) {
            (true, false) => &Shape::Free,
            _ => &self.schema.resolve().shape,
        }
    }

    fn go_type(&self) -> String {
        self.declared.map_or_else(|| self.schema.go_type(), str::to_owned)
    }

    fn mistyped(&mut self, given: &str) -> Value {
        let go_type = match self.shape() {
            Shape::IntOrString => "int32".into(),
            Shape::Time | Shape::MicroTime => "string".into(),
            _ => self.go_type(),
        };
        if self.context.converted {
            self.context.malformed(conversion::error(self.shape(), given, &go_type))
        } else {
            self.context.mistyped(given, &go_type)
        }
        Value::Null
    }

    /// The schema of what a list or map holds, and the Go type that its own declares.
    fn held(&self, prefix: &str) -> Option<&'s str> {
        self.schema.facts().go_type.as_deref().and_then(|own| own.strip_prefix(prefix))
    }

    fn number(mut self, number: Number) -> Value {
        match self.shape() {
            Shape::Free | Shape::Number => Value::Number(number),
            Shape::Integer32 | Shape::Integer64
                if self.context.converted && conversion::is_whole(&number) =>
            {
                conversion::whole(&number)
            }
            Shape::Integer32 if number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()) => {
                number.into()
            }
            Shape::Integer64 if number.as_i64().is_some() => number.into(),
            Shape::IntOrString if number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()) => {
                number.into()
            }
            Shape::Integer32 | Shape::Integer64 | Shape::IntOrString => {
                self.mistyped(&format!("number {number}"))
            }
            Shape::Quantity => scalar::quantity(&number.to_string(), self.context),
            _ => self.mistyped("number"),
        }
    }

    fn text(mut self, text: String) -> Value {
        match self.shape() {
            Shape::Free | Shape::String | Shape::IntOrString => Value::String(text),
            Shape::Quantity => scalar::quantity(text.trim(), self.context),
            Shape::Bytes => scalar::base64(text, self.context),
            Shape::Time => scalar::time(&text, self.context),
            Shape::MicroTime => scalar::micro_time(&text, self.context),
            _ => self.mistyped("string"),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Typed<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Typed<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(mut self, flag: bool) -> Result<Value, E> {
        Ok(match self.shape() {
            Shape::Free | Shape::Boolean => Value::Bool(flag),
            Shape::Quantity => scalar::quantity(&flag.to_string(), self.context),
            _ => self.mistyped("bool"),
        })
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(self.number(number.into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(match self.shape() {
            Shape::Free if i64::try_from(number).is_err() => scalar::beyond_int64(number),
            _ => self.number(number.into()),
        })
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Ok(Number::from_f64(number).map_or(Value::Null, |number| self.number(number)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(self.text(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Value, E> {
        Ok(self.text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Value, A::Error> {
        let items = match self.shape() {
            Shape::List(items) => items,
            Shape::Free => FREE,
            Shape::Quantity => {
                self.context.fatal(scalar::quantity_error());
                return skip_list(list);
            }
            _ => {
                self.mistyped("array");
                return skip_list(list);
            }
        };
        let declared = self.held("[]");
        let mut values = Vec::new();
        loop {
            self.context.path.push(DecodeStep::Index(values.len()));
            let item = Typed { schema: items, declared, is_root: false, context: self.context };
            let value = list.next_element_seed(item)?;
            self.context.path.pop();
            match value {
                Some(Value::Null) => values.push(zero_value(items)),
                Some(value) => values.push(value),
                None => return Ok(Value::Array(values)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, map: A) -> Result<Value, A::Error> {
        match self.shape() {
            Shape::Object(fields) => self.visit_struct(fields, map),
            Shape::Map(values) => self.visit_keys(values, map),
            Shape::Free => self.visit_keys(FREE, map),
            Shape::Quantity => {
                self.context.fatal(scalar::quantity_error());
                skip_map(map)
            }
            _ => {
                self.mistyped("object");
                skip_map(map)
            }
        }
    }
}

impl<'s> Typed<'_, 's> {
    /// A Go struct: known fields only, each by its own schema.
    fn visit_struct<'de, A: MapAccess<'de>>(self, fields: &'s Fields, mut map: A) -> Result<Value, A::Error> {
        let context = self.context;
        let outer = std::mem::replace(&mut context.in_struct, self.schema.go_struct());
        let mut object = Map::new();
        let mut seen: Vec<&str> = Vec::with_capacity(8);
        while let Some(key) = map.next_key_seed(FieldName(fields))? {
            let (name, field) = match key {
                Ok(known) => known,
                Err(unknown) => {
                    context.unknown(&unknown);
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            let again = seen.contains(&name);
            if again {
                context.duplicate(name)
            } else {
                seen.push(name)
            }
            context.path.push(DecodeStep::Field(name));
            let value = map.next_value_seed(Typed::new(field, context))?;
            context.path.pop();
            insert_field(&mut object, name, field, value);
        }
        context.in_struct = outer;
        Ok(Value::Object(object))
    }

    /// A Go map, or JSON of no schema.
    fn visit_keys<'de, A: MapAccess<'de>>(self, values: &'s Schema, mut map: A) -> Result<Value, A::Error> {
        let declared = self.held("map[string]");
        let context = self.context;
        let is_free = matches!(values.shape, Shape::Free);
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if object.contains_key(&key) && !(is_free && context.typed) {
                context.duplicate(&key);
            }
            context.path.push(DecodeStep::Key(key));
            let metadata = self.is_root
                && matches!(context.path.last(), Some(DecodeStep::Key(key)) if key == "metadata");
            let value = if metadata {
                map.next_value_seed(Typed::new(Schemas::reference(OBJECT_META), context))?
            } else {
                map.next_value_seed(Typed { schema: values, declared, is_root: false, context })?
            };
            let Some(DecodeStep::Key(key)) = context.path.pop() else {
                unreachable!("the key was pushed above")
            };
            let value = match value {
                Value::Null if !is_free => zero_value(values),
                value => value,
            };
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

/// Later wins; a struct that comes twice is decoded into the same struct, so what only the first had stays.
pub(super) fn insert_field(object: &mut Map<String, Value>, name: &str, field: &Schema, value: Value) {
    if is_dropped(field, &value) {
        if !(value.is_null() && field.presence == Presence::Omitted) {
            object.remove(name);
        }
        return;
    }
    match (object.get_mut(name), value) {
        (Some(Value::Object(earlier)), Value::Object(later)) => earlier.extend(later),
        (_, value) => {
            object.insert(name.to_owned(), value);
        }
    }
}

fn skip_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Value, A::Error> {
    while list.next_element::<IgnoredAny>()?.is_some() {}
    Ok(Value::Null)
}

fn skip_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Value, A::Error> {
    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(Value::Null)
}

/// Looks a key up without copying it: the field, or the unknown name.
struct FieldName<'s>(&'s Fields);

impl<'de, 's> DeserializeSeed<'de> for FieldName<'s> {
    type Value = Result<(&'s str, &'s Schema), String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de, 's> Visitor<'de> for FieldName<'s> {
    type Value = Result<(&'s str, &'s Schema), String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.entry(name).ok_or_else(|| name.to_owned()))
    }
}
