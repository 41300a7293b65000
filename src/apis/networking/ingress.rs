//! Ingress: HTTP from outside to services.

use std::sync::LazyLock;

use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::kind::{Builtin, Kind, Subresource};
use crate::apis::print::{load_balancer, name};
use crate::apis::table::{Column, age};
use crate::apis::tree::{at, count, items, text};
use serde_json::{Value, json};

/// `ingresses`
pub static INGRESSES: Builtin = LazyLock::new(|| {
    Kind::builtin("networking.k8s.io", "v1", "Ingress", "ingresses", "io.k8s.api.networking.v1")
        .short(&["ing"])
        .with(&[Subresource::Status])
        .with_generation()
        .printed(columns(), cells)
        .into()
});

fn columns() -> Vec<Column> {
    let class = "The name of the IngressClass resource that should be used for additional configuration";
    let hosts = "Hosts that incoming requests are matched against before the ingress rule";
    let address = "Address is a list containing ingress points for the load-balancer";
    vec![
        Column::name(),
        Column::new("Class", "string", class),
        Column::new("Hosts", "string", hosts),
        Column::new("Address", "string", address),
        Column::new("Ports", "string", "Ports of TLS configurations that open"),
        Column::age(),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    vec![
        name(object),
        json!(at(&tree, "spec.ingressClassName").as_str().unwrap_or("<none>")),
        hosts(&tree).into(),
        load_balancer(&tree).into(),
        json!(if count(&tree, "spec.tls") > 0 { "80, 443" } else { "80" }),
        age(object, now),
    ]
}

/// At most three; the rest is counted by rules, with and without hosts.
fn hosts(tree: &Value) -> String {
    let rules = items(tree, "spec.rules");
    let (mut shown, mut more) = (Vec::new(), false);
    for host in rules.iter().map(|rule| text(rule, "host")) {
        more |= shown.len() == 3;
        if !more && !host.is_empty() {
            shown.push(host);
        }
    }
    match (shown.as_slice(), more) {
        ([], _) => "*".into(),
        (shown, false) => shown.join(","),
        (shown, true) => format!("{} + {} more...", shown.join(","), rules.len() - 3),
    }
}
