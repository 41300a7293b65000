//! LimitRange: what one object in a namespace may ask for.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind};
use crate::apis::rules::{RULES, Rules};
use crate::apis::tree::*;
use serde_json::Value;

/// `limitranges`
pub static LIMIT_RANGES: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "LimitRange", "limitranges", "io.k8s.api.core.v1")
        .short(&["limits"])
        .defaulted(defaults)
        .governed_by(Rules { allow_create_on_update: true, ..RULES })
        .into()
});

/// For containers: the default limit is the maximum, the default request is the default limit, else the minimum.
fn defaults(range: &mut Value) {
    for item in items_mut(range, "spec.limits").iter_mut().filter(|item| text(item, "type") == "Container") {
        for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
            for (name, quantity) in at(item, from).as_object().cloned().unwrap_or_default() {
                object_mut(item, to).entry(name).or_insert(quantity);
            }
        }
    }
}
