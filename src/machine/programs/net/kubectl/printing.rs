//! What `kubectl get` prints.

use serde_json::{Value, json};

use super::known::KnownResource;
use super::objects::NamedObject;
use super::options::KubectlOptions;
use super::stop::KubectlStop;
use crate::interpreter::player::Player;

/// Between columns.
const GAP: usize = 3;

/// Rows as the apiserver made them.
pub(super) fn table(
    player: &mut Player<'_>,
    answer: &Value,
    options: &KubectlOptions,
    resource: &KnownResource,
    is_one_of_several: bool,
) {
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
        return player.complain(&format!("No resources found{place}.\n"));
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
        (other, _) => {
            let allowed = "allowed formats are: json,jsonpath,name,wide,yaml";
            let why = format!("unable to match a printer suitable for the output format {other:?}");
            return Err(KubectlStop::Failed(format!("error: {why}, {allowed}")));
        }
    };
    player.say(&said);
    Ok(())
}

/// Paths as `{.status.phase}` and `{.items[*].metadata.name}` within a text.
pub(super) fn by_path(object: &Value, template: &str) -> Result<String, KubectlStop> {
    let mut out = String::new();
    let mut rest = template;
    while let Some((text, behind)) = rest.split_once('{') {
        out.push_str(text);
        let unclosed =
            || KubectlStop::Failed(format!("error: error parsing jsonpath {template}, unclosed action"));
        let (path, behind) = behind.split_once('}').ok_or_else(unclosed)?;
        rest = behind;
        if let Some(text) = path.strip_prefix('"').and_then(|path| path.strip_suffix('"')) {
            out.push_str(&text.replace("\\n", "\n").replace("\\t", "\t"));
            continue;
        }
        let found: Vec<String> = reached(object, path)?
            .into_iter()
            .map(|value| match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            })
            .collect();
        out.push_str(&found.join(" "));
    }
    Ok(out + rest)
}

fn reached<'a>(object: &'a Value, path: &str) -> Result<Vec<&'a Value>, KubectlStop> {
    let mut found = vec![object];
    let known = "only names, numbers and * are known here";
    let unknown = || KubectlStop::Failed(format!("error: error parsing jsonpath {{{path}}}: {known}"));
    for step in steps(path).ok_or_else(unknown)? {
        found = found
            .into_iter()
            .flat_map(|value| -> Vec<&Value> {
                match (step.as_str(), value) {
                    ("*", Value::Array(items)) => items.iter().collect(),
                    ("*", Value::Object(members)) => members.values().collect(),
                    (name, Value::Object(members)) => members.get(name).into_iter().collect(),
                    (number, Value::Array(items)) => {
                        number.parse::<usize>().ok().and_then(|at| items.get(at)).into_iter().collect()
                    }
                    _ => vec![],
                }
            })
            .collect();
    }
    Ok(found)
}

/// `.a.b[0]['c.d']`; a backslash before a dot makes it part of a name.
fn steps(path: &str) -> Option<Vec<String>> {
    let path = path.trim().trim_start_matches('$');
    let mut steps = vec![];
    let mut name = String::new();
    let mut letters = path.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '.' | '[' if !name.is_empty() => steps.push(std::mem::take(&mut name)),
            _ => {}
        }
        match letter {
            '.' => {}
            '[' => {
                let inner: String = letters.by_ref().take_while(|letter| *letter != ']').collect();
                let inner = inner.trim_matches(['\'', '"']).to_owned();
                if inner.contains(['?', ':', ',']) {
                    return None;
                }
                steps.push(inner);
            }
            '\\' => name.extend(letters.next()),
            letter => name.push(letter),
        }
    }
    steps.extend(Some(name).filter(|name| !name.is_empty()));
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_followed() {
        let list = json!({"items": [{"metadata": {"name": "a", "labels": {"app.io/x": "1"}}, "n": 3},
            {"metadata": {"name": "b"}}]});
        let said = |template: &str| by_path(&list, template).ok();
        assert_eq!(said("{.items[*].metadata.name}").as_deref(), Some("a b"));
        assert_eq!(said("n={.items[0].n}{\"\\n\"}").as_deref(), Some("n=3\n"));
        assert_eq!(said("{.items[0].metadata.labels.app\\.io/x}").as_deref(), Some("1"));
        assert_eq!(said("{$.items[1]['metadata'].name}{.none}").as_deref(), Some("b"));
        assert!(said("{.items[?(@.n==3)]}").is_none() && said("{.items").is_none());
    }

    #[test]
    fn columns_stand_below_each_other() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        assert_eq!(aligned(&[row(["NAME", "AGE"]), row(["web-0", "5s"])]), "NAME    AGE\nweb-0   5s\n");
    }
}
