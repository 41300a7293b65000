//! Patches: the merge alone, without the write around it.

use criterion::{Criterion, criterion_group};
use kubarium::apimachinery::patch::{PatchType, apply};
use kubarium::apimachinery::schema::Schemas;
use serde_json::json;

use crate::pod;

fn patches(criterion: &mut Criterion) {
    let (tree, schema) = (pod::running(), Schemas::builtin().get("io.k8s.api.core.v1.Pod").unwrap());
    let condition = json!({"type": "Ready", "status": "False", "reason": "ContainersNotReady"});
    let status = json!({"status": {"phase": "Running", "conditions": [condition]}}).to_string();
    let label = json!([{"op": "add", "path": "/metadata/labels/a", "value": "b"}]).to_string();
    for (name, patch_type, patch) in [
        ("strategic merge patch of a Pod's status", PatchType::StrategicMerge, &status),
        ("merge patch of the same", PatchType::Merge, &status),
        ("JSON patch of a label", PatchType::Json, &label),
    ] {
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| apply(&schema, patch_type, tree.clone(), patch.as_bytes()).unwrap());
        });
    }
}

criterion_group!(benches, patches);
