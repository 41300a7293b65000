//! What is done with one object again and again: reading its metadata, a view of it, a tree; writing it;
//! matching a selector; decoding a body by its schema.

use bytes::BytesMut;
use criterion::{Criterion, criterion_group};
use kubarium::apimachinery::decode::{BodyFormat, DecodeTarget, decode};
use kubarium::apimachinery::labels::Selector;
use kubarium::apimachinery::object::encode_for_storage;
use kubarium::apimachinery::schema::Schemas;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::views::pod::Pod;
use serde_json::Value;

use crate::pod;

fn objects(criterion: &mut Criterion) {
    let tree = pod::running();
    let stored = encode_for_storage(&tree).unwrap();
    let object = || PODS.object(stored.clone(), 4711).unwrap();
    criterion.bench_function("metadata and fields of a stored Pod", |bencher| bencher.iter(object));
    criterion.bench_function("the same from its tree", |bencher| {
        bencher.iter(|| PODS.object_of_tree(&tree, stored.clone(), 4711).unwrap());
    });
    criterion.bench_function("a view of a Pod", |bencher| {
        let object = object();
        // Another view takes the one place for views, so that this one is read each time.
        object.view::<Value>();
        bencher.iter(|| object.view::<Pod>());
    });
    let object = object();
    criterion.bench_function("a Pod as a tree", |bencher| bencher.iter(|| object.to_value()));
    criterion
        .bench_function("a tree as bytes", |bencher| bencher.iter(|| encode_for_storage(&tree).unwrap()));
    criterion.bench_function("a Pod written", |bencher| {
        let mut out = BytesMut::new();
        bencher.iter(|| {
            out.clear();
            object.write(&mut out);
        });
    });
    let selector = Selector::parse("app=web,tier in (frontend, backend),!canary").unwrap();
    criterion.bench_function("match a selector of three terms", |bencher| {
        bencher.iter(|| selector.matches(&object.metadata.labels));
    });
}

fn bodies(criterion: &mut Criterion) {
    let text = pod::running().to_string();
    let schema = Schemas::builtin().get("io.k8s.api.core.v1.Pod").unwrap();
    let is_registered = |_: &str, _: &str, _: &str| true;
    criterion.bench_function("decode a Pod by its schema", |bencher| {
        let target = DecodeTarget {
            group: "",
            version: "v1",
            kind: "Pod",
            schema: &schema,
            typed: true,
            is_registered: &is_registered,
        };
        bencher.iter(|| decode(&target, text.as_bytes(), BodyFormat::Json).unwrap());
    });
}

criterion_group!(benches, objects, bodies);
