//! The store: compare-and-put in memory and on disk, a read, a watch of many that hears of one change.

use bytes::Bytes;
use criterion::{BatchSize, Criterion, criterion_group};
use kubarium::clock::Clock;
use kubarium::etcd::{Expect, Kv, Op, Options};
use tokio::runtime::Runtime;

/// Keys that are there before anything is measured.
const KEYS: u64 = 10_000;

fn put() -> Op {
    Op::Put { value: Bytes::from(vec![b'x'; 3000]), lease: None }
}

fn key(number: u64) -> String {
    format!("/registry/pods/default/web-5d4f7c9b8-{number:05}")
}

fn transactions(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let on_disk = Options { data_dir: Some(folder.path().to_owned()), ..Options::default() };
    for (name, options) in [("put 3 KB, in memory", Options::default()), ("put 3 KB, on disk", on_disk)] {
        let kv = runtime.block_on(async { Kv::open(options, Clock::real()).unwrap() });
        let mut number = 0;
        criterion.bench_function(name, |bencher| {
            let next = || {
                number += 1;
                (key(number), put())
            };
            let kv = &kv;
            bencher.to_async(&runtime).iter_batched(
                next,
                |(key, op)| async move { kv.txn(&key, Expect::ModRevision(0), op).await.unwrap() },
                BatchSize::SmallInput,
            );
        });
    }
}

fn reads(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let kv = runtime.block_on(async {
        let kv = Kv::open(Options::default(), Clock::real()).unwrap();
        for number in 0..KEYS {
            kv.txn(&key(number), Expect::Any, put()).await.unwrap();
        }
        kv
    });
    criterion.bench_function("get one of 10,000", |bencher| {
        bencher.iter(|| kv.get("/registry/pods/default/web-5d4f7c9b8-09999", None).unwrap());
    });
    criterion.bench_function("the same, which lies in the overflow", |bencher| {
        bencher.iter(|| kv.get("/registry/pods/default/web-5d4f7c9b8-00001", None).unwrap());
    });
    let prefix = |at: usize| format!("/registry/resource-{at}/");
    let watches: Vec<_> = (0..200).map(|at| kv.watch(&prefix(at), kv.revision()).unwrap()).collect();
    criterion.bench_function("put beside 200 watches of other resources", |bencher| {
        bencher
            .to_async(&runtime)
            .iter(|| async { kv.txn("/registry/pods/a", Expect::Any, put()).await.unwrap() });
    });
    drop(watches);
}

criterion_group!(benches, transactions, reads);
