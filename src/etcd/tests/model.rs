//! Random operations on the store and on a plain map; then every revision of both is compared.

use std::collections::BTreeMap;

use super::*;

type Keys = BTreeMap<String, String>;

/// What the store should be: all keys, as of each revision; the first one is revision 1.
struct Model(Vec<Keys>);

impl Model {
    fn newest(&self) -> Keys {
        self.0.last().unwrap().clone()
    }

    fn at(&self, revision: Revision) -> &Keys {
        &self.0[usize::try_from(revision).unwrap() - 1]
    }
}

/// A watch and what its events amount to.
struct Follower {
    prefix: &'static str,
    watch: Watch,
    keys: Keys,
}

impl Follower {
    fn new(kv: &Kv, model: &Model, prefix: &'static str, after: Revision) -> Follower {
        let keys = with_prefix(model.at(after), prefix);
        Follower { prefix, watch: kv.watch(prefix, after).unwrap(), keys }
    }

    /// Reads all there is. Each event must fit to what was there before.
    fn catch_up(&mut self) {
        while let Some(batch) = self.watch.try_next().unwrap() {
            for event in batch.events {
                let (key, value) = text(&event.kv);
                let before = match event.kind {
                    EventKind::Put => self.keys.insert(key, value),
                    EventKind::Delete => self.keys.remove(&key),
                };
                assert_eq!(before, event.previous.map(|kv| text(&kv).1));
            }
        }
    }
}

fn with_prefix(keys: &Keys, prefix: &str) -> Keys {
    keys.iter().filter(|(key, _)| key.starts_with(prefix)).map(|(k, v)| (k.clone(), v.clone())).collect()
}

fn compare(kv: &Kv, model: &Model, seed: u64) {
    assert_eq!(kv.revision(), model.0.len() as u64, "seed {seed}");
    for revision in kv.compact_revision().max(1)..=kv.revision() {
        for prefix in ["/", "/1/", "/2/"] {
            let range = kv.range(prefix, None, None, Some(revision)).unwrap();
            let expected: Vec<_> = with_prefix(model.at(revision), prefix).into_iter().collect();
            assert_eq!(texts(&range), expected, "seed {seed}, {prefix} at {revision}");
            assert_eq!(range.count, expected.len());
        }
    }
}

/// One random write, compared with what the model says must come of it.
async fn write(kv: &Kv, model: &mut Model, numbers: &mut Numbers) {
    let key = format!("/{}/{}", numbers.below(3), numbers.below(6));
    let mut keys = model.newest();
    let there = keys.contains_key(&key);
    let current = kv.get(&key, None).unwrap().0;
    assert_eq!(current.as_ref().map(|kv| text(kv).1), keys.get(&key).cloned());
    let found = current.map_or(0, |kv| kv.mod_revision);
    let (expect, matches) = match numbers.below(4) {
        0 => (Expect::ModRevision(0), !there),
        1 => (Expect::ModRevision(found), true),
        2 => (Expect::ModRevision(found + 1), false),
        _ => (Expect::Any, true),
    };
    let (op, possible) = match numbers.below(3) {
        0 => {
            keys.remove(&key);
            (Op::Delete, there)
        }
        _ => {
            let text = numbers.below(1 << 20).to_string().repeat(1 + numbers.below(40));
            keys.insert(key.clone(), text.clone());
            (value(&text), true)
        }
    };
    match kv.txn(&key, expect, op).await.unwrap() {
        Txn::Committed { revision, .. } => {
            assert!(matches && possible);
            model.0.push(keys);
            assert_eq!(revision, model.0.len() as u64);
        }
        Txn::Conflict { .. } => assert!(!(matches && possible)),
    }
}

/// Several random writes in one step: all of them at one revision, or nothing if one is not possible.
async fn write_several(kv: &Kv, model: &mut Model, numbers: &mut Numbers) {
    let before = model.newest();
    let mut keys = before.clone();
    let mut wanted: BTreeMap<String, Option<String>> = BTreeMap::new();
    for _ in 0..1 + numbers.below(5) {
        let key = format!("/{}/{}", numbers.below(3), numbers.below(6));
        let text = numbers.below(1 << 20).to_string().repeat(1 + numbers.below(40));
        wanted.insert(key, (numbers.below(3) > 0).then_some(text));
    }
    for (key, text) in &wanted {
        match text {
            Some(text) => drop(keys.insert(key.clone(), text.clone())),
            None => drop(keys.remove(key)),
        }
    }
    let fails = numbers.below(5) == 0;
    let done = kv.transact(move |txn| {
        for (key, text) in wanted {
            let previous = match text {
                Some(text) => txn.put(&key, text.into(), None)?,
                None => txn.delete(&key)?,
            };
            assert_eq!(previous.map(|kv| text_of(&kv)), before.get(&key).cloned());
        }
        let all = txn.range(&KeySpan::ALL, usize::MAX, None)?;
        let read = (txn.revision(), texts(&all));
        if fails { Err(StoreError::Closed) } else { Ok(read) }
    });
    match done.await {
        Ok((revision, read)) => {
            if keys != model.newest() || revision > model.0.len() as u64 {
                model.0.push(keys.clone());
            }
            assert_eq!(revision, model.0.len() as u64);
            assert_eq!(read, keys.into_iter().collect::<Vec<_>>());
        }
        Err(error) => assert!(fails, "{error}"),
    }
}

fn text_of(kv: &KeyValue) -> String {
    text(kv).1
}

async fn run(seed: u64, dir: &Path) {
    let mut numbers = Numbers(seed);
    let on_disk = seed.is_multiple_of(2);
    let open = || if on_disk { super::on_disk(dir) } else { overflowing() };
    let mut kv = open();
    let mut model = Model(vec![Keys::new()]);
    let mut followers = Vec::new();
    for _ in 0..400 {
        match numbers.below(60) {
            0 => {
                // Compaction would overtake those that are behind.
                followers.iter_mut().for_each(Follower::catch_up);
                kv.compact(kv.revision().saturating_sub(numbers.below(40) as u64)).await.unwrap();
            }
            1 if on_disk => {
                followers.clear();
                if numbers.below(2) == 0 {
                    kv.compact(kv.revision()).await.unwrap();
                }
                let (revision, compact_revision) = (kv.revision(), kv.compact_revision());
                drop(kv);
                kv = open();
                assert_eq!((kv.revision(), kv.compact_revision()), (revision, compact_revision));
            }
            2 => {
                let oldest = kv.compact_revision().max(1);
                let after =
                    oldest + numbers.below(usize::try_from(kv.revision() - oldest).unwrap() + 1) as u64;
                followers.push(Follower::new(
                    &kv,
                    &model,
                    ["/", "/0/", "/1/", "/2/"][numbers.below(4)],
                    after,
                ));
            }
            3..16 => write_several(&kv, &mut model, &mut numbers).await,
            _ => write(&kv, &mut model, &mut numbers).await,
        }
        // Not each time, so that there is something to catch up with.
        if numbers.below(8) == 0 {
            followers.iter_mut().for_each(Follower::catch_up);
        }
    }
    for mut follower in followers {
        follower.catch_up();
        assert_eq!(follower.keys, with_prefix(&model.newest(), follower.prefix), "seed {seed}");
    }
    compare(&kv, &model, seed);
    kv.close().await;
}

#[tokio::test]
async fn the_store_does_what_a_map_with_a_history_does() {
    for seed in 1..=12 {
        let dir = tempfile::tempdir().unwrap();
        run(seed, dir.path()).await;
    }
}
