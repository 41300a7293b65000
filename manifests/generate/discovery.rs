//! `tests/fixtures/discovery.tsv`: what a real server's discovery says, from `api/discovery`.

use serde_json::Value;

use crate::checkout::{Checkout, Problem};
use crate::table::Table;

/// The folder of published documents.
const FOLDER: &str = "api/discovery";

/// The verbs of what is kept, in the order in which they are published.
const ALL: &str = "create,delete,deletecollection,get,list,patch,update,watch";

/// # Errors
/// No published documents, or one that is no JSON.
pub(crate) fn make(checkout: &Checkout, before: &str) -> Result<String, Problem> {
    let names = checkout.names(FOLDER)?;
    let lists: Vec<&String> = names.iter().filter(|name| is_list_of_resources(name)).collect();
    if lists.is_empty() {
        return Err(Problem::Missing(format!("{FOLDER}/apis__GROUP__VERSION.json")));
    }
    let mut table = Table::with_head_of(before);
    for name in lists {
        let list = checkout.json(&format!("{FOLDER}/{name}"))?;
        let version = list["groupVersion"].as_str().unwrap_or_default();
        for resource in list["resources"].as_array().into_iter().flatten() {
            let cells = row(version, resource);
            table.add(&cells.each_ref().map(String::as_str));
        }
    }
    Ok(table.to_string())
}

/// `api__v1.json`, `apis__apps__v1.json`; the others name groups and versions.
fn is_list_of_resources(name: &str) -> bool {
    let parts = name.strip_suffix(".json").unwrap_or_default().split("__").count();
    match name.starts_with("apis__") {
        true => parts == 3,
        false => name.starts_with("api__") && parts == 2,
    }
}

fn row(version: &str, resource: &Value) -> [String; 9] {
    let text = |key: &str| resource[key].as_str().unwrap_or_default().to_owned();
    let list = |key: &str| {
        let texts = resource[key].as_array().into_iter().flatten().filter_map(Value::as_str);
        texts.collect::<Vec<_>>().join(",")
    };
    let scope = if resource["namespaced"] == true { "ns" } else { "cluster" };
    let verbs = list("verbs");
    let hash = text("storageVersionHash");
    [
        version.to_owned(),
        text("name"),
        kind(resource),
        scope.to_owned(),
        text("singularName"),
        list("shortNames"),
        list("categories"),
        if verbs == ALL { "all".to_owned() } else { verbs },
        if hash.is_empty() { "-".to_owned() } else { hash },
    ]
}

/// With group and version where they are not those of the list.
fn kind(resource: &Value) -> String {
    let text = |key: &str| resource[key].as_str().unwrap_or_default();
    let parts = [text("group"), text("version"), text("kind")];
    parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join("/")
}
