//! Merging a configuration into an object (`typed.Merge`): what it says counts, everything else stays.

use serde_json::{Map as JsonMap, Value};

use super::atom::{Form, ListAtom, MapAtom, SchemaType};
use super::element::identify;
use super::path::PathElement;
use super::validate::ValidationErrors;

/// The object with the configuration laid over it.
///
/// # Errors
/// Elements of a keyed list that cannot be told apart.
pub fn merge(kind: SchemaType, live: &Value, config: &Value) -> Result<Value, ValidationErrors> {
    Ok(visit(kind, Some(live), Some(config))?.unwrap_or(Value::Null))
}

/// One value; None where nothing is left of it.
fn visit(
    kind: SchemaType,
    live: Option<&Value>,
    config: Option<&Value>,
) -> Result<Option<Value>, ValidationErrors> {
    let atom = kind.atom();
    let form = match config {
        None | Some(Value::Null) => atom.form(live),
        _ => atom.form(config),
    };
    match form {
        Form::Scalar(_) => Ok(leaf(live, config)),
        Form::Map(map) => {
            let (old, new) = (live.and_then(Value::as_object), config.and_then(Value::as_object));
            let is_empty = |map: Option<&JsonMap<_, _>>| map.is_none_or(JsonMap::is_empty);
            if map.is_atomic || is_empty(old) && is_empty(new) {
                return Ok(leaf(live, config));
            }
            merge_maps(map, old, new)
        }
        Form::List(list) => {
            let (old, new) = (items(live), items(config));
            if list.is_atomic || old.is_empty() && new.is_empty() {
                return Ok(leaf(live, config));
            }
            merge_lists(&list, old, new)
        }
    }
}

/// `ruleKeepRHS`: the configuration's value if it has one.
fn leaf(live: Option<&Value>, config: Option<&Value>) -> Option<Value> {
    config.or(live).cloned()
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn merge_maps(
    map: MapAtom,
    live: Option<&JsonMap<String, Value>>,
    config: Option<&JsonMap<String, Value>>,
) -> Result<Option<Value>, ValidationErrors> {
    let mut merged = JsonMap::new();
    let only_live = live
        .into_iter()
        .flatten()
        .filter(|(name, _)| config.is_none_or(|config| !config.contains_key(*name)));
    // What no type is known of stays as it was; only the configuration is checked.
    for (name, value) in only_live {
        merged.insert(name.clone(), value.clone());
    }
    for (name, value) in config.into_iter().flatten() {
        let Some(kind) = map.child(name) else { continue };
        if let Some(value) = visit(kind, live.and_then(|live| live.get(name)), Some(value))? {
            merged.insert(name.clone(), value);
        }
    }
    Ok((!merged.is_empty()).then_some(Value::Object(merged)))
}

/// The elements of one list with what tells them apart. Of several with the same key none can be merged into.
struct Side<'v> {
    elements: Vec<(PathElement, &'v Value)>,
    index: std::collections::BTreeMap<PathElement, Option<&'v Value>>,
}

impl<'v> Side<'v> {
    fn read(list: &ListAtom, items: &'v [Value], allows_duplicates: bool) -> Result<Self, ValidationErrors> {
        let mut side = Side { elements: Vec::with_capacity(items.len()), index: Default::default() };
        for (at, item) in items.iter().enumerate() {
            let element = identify(list, item)
                .map_err(|error| ValidationErrors::one(format!("element {at}: {error}")))?;
            let is_known = side.index.contains_key(&element);
            if is_known && !allows_duplicates {
                return Err(ValidationErrors::one(format!("duplicate entries for key {element}")));
            }
            side.index.insert(element.clone(), (!is_known).then_some(item));
            side.elements.push((element, item));
        }
        Ok(side)
    }

    fn has(&self, element: &PathElement) -> bool {
        self.index.contains_key(element)
    }

    fn get(&self, element: &PathElement) -> Option<&'v Value> {
        self.index.get(element).copied().flatten()
    }
}

/// The configuration's elements in its order, with the live object's others where they were between them.
fn merge_lists(list: &ListAtom, live: &[Value], config: &[Value]) -> Result<Option<Value>, ValidationErrors> {
    let config = Side::read(list, config, false)?;
    let live = Side::read(list, live, true)?;
    let mut shared = config.elements.iter().map(|(element, _)| element).filter(|element| live.has(element));
    let mut next_shared = shared.next();
    let mut merged = std::collections::BTreeSet::new();
    let mut out: Vec<Value> = Vec::with_capacity(live.elements.len().max(config.elements.len()));
    let mut at = 0;
    let mut config_at = 0;
    while at < live.elements.len() || config_at < config.elements.len() {
        let ours = live.elements.get(at);
        let theirs = config.elements.get(config_at);
        if let (Some((own, _)), Some((other, _))) = (ours, theirs)
            && own != other
            && config.has(own)
            && next_shared.is_some_and(|next| next != own)
        {
            // The configuration has it, but not next.
            at += 1;
            continue;
        }
        if let Some((own, value)) = ours
            && theirs.is_none_or(|(other, _)| own != other)
        {
            if !config.has(own) {
                out.push((*value).clone());
                at += 1;
                continue;
            }
            // Merged before: it is not there twice.
            at += usize::from(merged.contains(own));
        }
        let Some((other, value)) = theirs else { continue };
        at += usize::from(ours.is_some_and(|(own, _)| own == other));
        merged.insert(other.clone());
        out.extend(visit(list.element, live.get(other), Some(value))?);
        config_at += 1;
        if next_shared == Some(other) {
            next_shared = shared.next();
        }
    }
    Ok((!out.is_empty()).then_some(Value::Array(out)))
}
