//! What `kubectl get` prints.

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::json_path::{by_path, found_by, shown};
use super::known::KnownResource;
use super::objects::NamedObject;
use super::options::KubectlOptions;
use super::stop::KubectlStop;
use crate::interpreter::player::Player;

/// Between columns.
const GAP: usize = 3;

/// Rows as the apiserver made them.
///
/// # Errors
/// What is wrong with the path by which they are sorted.
pub(super) fn table(
    player: &mut Player<'_>,
    answer: &mut Value,
    options: &KubectlOptions,
    (resource, is_one_of_several): (&KnownResource, bool),
) -> Result<(), KubectlStop> {
    if let (Some(path), Some(rows)) = (&options.sort_by, answer["rows"].as_array_mut()) {
        sort_by(rows, "/object", path)?;
    }
    let answer = &*answer;
    let is_shown =
        |column: &&Value| options.output == "wide" || column["priority"].as_i64().unwrap_or(0) == 0;
    let columns: Vec<&Value> = answer["columnDefinitions"].as_array().into_iter().flatten().collect();
    let shown: Vec<usize> = (0..columns.len()).filter(|at| is_shown(&columns[*at])).collect();
    let rows: Vec<&Value> = answer["rows"].as_array().into_iter().flatten().collect();
    if rows.is_empty() {
        let place = match &options.namespace {
            Some(namespace) if resource.is_namespaced => format!(" in {namespace} namespace"),
            _ => String::new(),
        };
        player.complain(&format!("No resources found{place}.\n"));
        return Ok(());
    }
    let mut lines: Vec<Vec<String>> = vec![];
    if !options.has_no_headers {
        let title = |at: &usize| columns[*at]["name"].as_str().unwrap_or_default().to_ascii_uppercase();
        lines.push(shown.iter().map(title).collect());
    }
    for row in rows {
        let mut cells: Vec<String> = shown.iter().map(|at| cell(&row["cells"][*at])).collect();
        if is_one_of_several && let Some(name) = cells.first_mut() {
            *name = format!("{}/{name}", resource.qualified());
        }
        lines.push(cells);
    }
    if options.is_everywhere && resource.is_namespaced {
        let rows = answer["rows"].as_array().into_iter().flatten();
        let namespaces = rows.map(|row| cell(&row["object"]["metadata"]["namespace"]));
        let head = (!options.has_no_headers).then(|| "NAMESPACE".to_owned());
        for (line, namespace) in lines.iter_mut().zip(head.into_iter().chain(namespaces)) {
            line.insert(0, namespace);
        }
    }
    player.say(&aligned(&lines));
    Ok(())
}

fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<none>".into(),
        other => other.to_string(),
    }
}

fn aligned(lines: &[Vec<String>]) -> String {
    let count = lines.first().map_or(0, Vec::len);
    let width =
        |at: usize| lines.iter().filter_map(|line| line.get(at)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..count).map(|at| width(at).unwrap_or(0) + GAP).collect();
    let mut out = String::new();
    for line in lines {
        for (at, cell) in line.iter().enumerate() {
            let is_last = at + 1 == line.len();
            let pad =
                if is_last { 0 } else { widths.get(at).map_or(0, |width| width - cell.chars().count()) };
            out.push_str(cell);
            out.push_str(&" ".repeat(pad));
        }
        out.push('\n');
    }
    out
}

/// Objects as JSON, YAML, names, or by a path.
pub(super) fn objects(
    player: &mut Player<'_>,
    found: Vec<(&NamedObject, Value)>,
    is_single: bool,
    options: &KubectlOptions,
) -> Result<(), KubectlStop> {
    let mut items: Vec<(String, Value)> = vec![];
    for (one, answer) in found {
        let kind = one.resource.qualified();
        match answer {
            Value::Object(mut list) if one.name.is_none() => {
                let listed = list.remove("items");
                let listed = listed.and_then(|items| items.as_array().cloned()).unwrap_or_default();
                let version = list.get("apiVersion").cloned().unwrap_or_default();
                let item_kind = list
                    .get("kind")
                    .and_then(Value::as_str)
                    .map(|kind| kind.trim_end_matches("List").to_owned());
                items.extend(listed.into_iter().map(|mut item| {
                    item["apiVersion"] = version.clone();
                    item["kind"] = item_kind.clone().into();
                    (kind.clone(), item)
                }));
            }
            object => items.push((kind, object)),
        }
    }
    if let Some(path) = &options.sort_by {
        let mut sorted: Vec<Value> = items.iter().map(|(kind, item)| json!([kind, item])).collect();
        sort_by(&mut sorted, "/1", path)?;
        let named = |mut pair: Value| (cell(&pair[0]), pair[1].take());
        items = sorted.into_iter().map(named).collect();
    }
    if options.output == "name" {
        for (kind, item) in &items {
            player.say(&format!("{kind}/{}\n", cell(&item["metadata"]["name"])));
        }
        return Ok(());
    }
    let whole = match items.len() {
        0 if is_single => return Ok(()),
        _ if is_single => items.remove(0).1,
        _ => {
            let items: Vec<Value> = items.into_iter().map(|(_, item)| item).collect();
            json!({"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}})
        }
    };
    let said = match options.output.split_once('=').unwrap_or((&options.output, "")) {
        ("json", _) => serde_json::to_string_pretty(&whole).unwrap_or_default().replace("  ", "    ") + "\n",
        ("yaml", _) => serde_yaml::to_string(&whole).unwrap_or_default(),
        ("jsonpath", path) => by_path(&whole, path.trim_matches('\''))?,
        ("custom-columns", spec) => columns(&whole, spec, options.has_no_headers)?,
        (other, _) => {
            let allowed = "allowed formats are: custom-columns,json,jsonpath,name,wide,yaml";
            let why = format!("unable to match a printer suitable for the output format {other:?}");
            return Err(KubectlStop::Failed(format!("error: {why}, {allowed}")));
        }
    };
    player.say(&said);
    Ok(())
}

/// `custom-columns=NAME:.metadata.name,...`
fn columns(whole: &Value, text: &str, has_no_headers: bool) -> Result<String, KubectlStop> {
    let wrong = |part: &str| {
        KubectlStop::Failed(format!(
            "error: unexpected custom-columns spec: {part}, expected <header>:<json-path-expr>"
        ))
    };
    let columns = text.split(',').map(|part| part.split_once(':').ok_or_else(|| wrong(part)));
    let columns: Vec<(&str, &str)> = columns.collect::<Result<_, _>>()?;
    let items: Vec<&Value> = match whole["items"].as_array() {
        Some(items) if whole["kind"] == "List" => items.iter().collect(),
        _ => vec![whole],
    };
    let heads = columns.iter().map(|(head, _)| (*head).to_owned()).collect();
    let mut lines: Vec<Vec<String>> = if has_no_headers { vec![] } else { vec![heads] };
    for item in items {
        let cell = |path: &str| -> Result<String, KubectlStop> {
            let found = found_by(item, path)?;
            let texts: Vec<String> = found.iter().map(|value| cell(value)).collect();
            Ok(if texts.is_empty() { "<none>".to_owned() } else { texts.join(",") })
        };
        lines.push(columns.iter().map(|(_, path)| cell(path)).collect::<Result<_, _>>()?);
    }
    Ok(aligned(&lines))
}

/// In the order of what a path finds: numbers by their value, all else as texts.
pub(super) fn sort_by(items: &mut [Value], within: &str, path: &str) -> Result<(), KubectlStop> {
    let mut keyed: Vec<(Option<Value>, Value)> = vec![];
    for item in items.iter() {
        let found =
            found_by(item.pointer(within).unwrap_or(item), path)?.first().map(|value| (*value).clone());
        keyed.push((found, item.clone()));
    }
    keyed.sort_by(|(one, _), (other, _)| match (one, other) {
        (Some(Value::Number(one)), Some(Value::Number(other))) => {
            one.as_f64().partial_cmp(&other.as_f64()).unwrap_or(Ordering::Equal)
        }
        (one, other) => one.as_ref().map(shown).cmp(&other.as_ref().map(shown)),
    });
    for (place, (_, item)) in items.iter_mut().zip(keyed) {
        *place = item;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_what_their_paths_find() {
        let list = json!({"kind": "List", "items": [{"metadata": {"name": "a"}, "is": [1, 2]},
            {"metadata": {"name": "b"}}]});
        let said = |spec: &str, bare: bool| columns(&list, spec, bare).ok();
        let wanted = "NAME   ALL\na      1,2\nb      <none>\n";
        assert_eq!(said("NAME:.metadata.name,ALL:.is[*]", false).as_deref(), Some(wanted));
        assert_eq!(said("N:metadata.name", true).as_deref(), Some("a\nb\n"));
        assert_eq!(said("NAME", false), None);
        let mut items = vec![json!({"o": {"n": 10}}), json!({"o": {"n": 9}}), json!({})];
        sort_by(&mut items, "/o", ".n").ok().unwrap();
        assert_eq!(items, [json!({}), json!({"o": {"n": 9}}), json!({"o": {"n": 10}})]);
    }

    #[test]
    fn columns_stand_below_each_other() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        assert_eq!(aligned(&[row(["NAME", "AGE"]), row(["web-0", "5s"])]), "NAME    AGE\nweb-0   5s\n");
    }
}
