//! Stores of earlier versions, which kept objects below `/registry/deployments.apps/` and their like: their
//! keys become upstream's, `/registry/deployments/`, before anything is read.
//!
//! Each kind moves in one step, so that a start that is broken off goes on with the next one. A moved object
//! has a new revision, as after any write.

use apis::scheme::Scheme;
use etcd::{KeySpan, KeyValue, Kv, StoreError};

/// Where definitions of custom kinds were.
const DEFINITIONS: &str = "/registry/customresourcedefinitions.apiextensions.k8s.io/";

/// Moves what is where earlier versions kept it. What is new or forked has nothing there.
pub(super) async fn move_all(kv: &Kv, is_forked: bool) -> Result<(), StoreError> {
    if is_forked || kv.revision() == 1 {
        return Ok(());
    }
    // Of custom kinds first: once their definitions are gone from there, nobody knows them.
    let definitions = kv.range(DEFINITIONS, None, None, None)?.kvs;
    for definition in &definitions {
        if let Some((plural, group)) = definition.key[DEFINITIONS.len()..].split_once('.') {
            let to = format!("/registry/{group}/{plural}/");
            move_prefix(kv, format!("/registry/{plural}.{group}/"), to, None).await?;
        }
    }
    for kind in Scheme::builtin().storage_kinds() {
        let from = format!("/registry/{}/", kind.group_resource());
        if from != **kind.storage_prefix() {
            let slashes = usize::from(kind.namespaced);
            move_prefix(kv, from, kind.storage_prefix().to_string(), Some(slashes)).await?;
        }
    }
    Ok(())
}

/// `slashes`: how many a key has behind its prefix. Services were in the folder above the one in which they
/// are now, which has others in it, too.
async fn move_prefix(kv: &Kv, from: String, to: String, slashes: Option<usize>) -> Result<(), StoreError> {
    let start = from.len();
    let is_earlier =
        move |key: &str| slashes.is_none_or(|slashes| key[start..].matches('/').count() == slashes);
    if !kv.range(&from, None, None, None)?.kvs.iter().any(|kv| is_earlier(&kv.key)) {
        return Ok(());
    }
    tracing::info!(from, to, "an earlier version has kept objects under other keys: they are moved");
    kv.transact(move |txn| {
        let kept = txn.range(&KeySpan::prefix(&from), usize::MAX, None)?.kvs;
        for kept in kept.into_iter().filter(|kept| is_earlier(&kept.key)) {
            let KeyValue { key, value, lease, .. } = kept;
            txn.delete(&key)?;
            txn.put(&format!("{to}{}", &key[from.len()..]), value, lease)?;
        }
        Ok(())
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use clock::Clock;
    use etcd::{Expect, Op, Options};

    #[tokio::test]
    async fn keys_of_an_earlier_version_become_upstreams_and_others_stay() {
        let kv = Kv::open(Options::default(), Clock::real()).unwrap();
        let crontabs = "crontabs.stable.example.com";
        let definition = format!("{DEFINITIONS}{crontabs}");
        let custom = format!("/registry/{crontabs}/n/a");
        let earlier = [
            "/registry/pods/n/a",
            "/registry/deployments.apps/n/a",
            "/registry/nodes/a",
            "/registry/services/n/a",
            "/registry/services/specs/n/b",
            "/elsewhere/deployments.apps/a",
            &definition,
            &custom,
        ];
        for key in earlier {
            let put = Op::Put { value: key.as_bytes().to_vec().into(), lease: None };
            kv.txn(key, Expect::Any, put).await.unwrap();
        }
        move_all(&kv, false).await.unwrap();
        let moved = kv.range("", None, None, None).unwrap().kvs;
        let value = |kv: &KeyValue| String::from_utf8(kv.value.to_vec()).unwrap();
        let moved: Vec<(String, String)> = moved.iter().map(|kv| (kv.key.to_string(), value(kv))).collect();
        let to = [
            ("/elsewhere/deployments.apps/a", earlier[5]),
            (
                "/registry/apiextensions.k8s.io/customresourcedefinitions/crontabs.stable.example.com",
                earlier[6],
            ),
            ("/registry/deployments/n/a", earlier[1]),
            ("/registry/minions/a", earlier[2]),
            ("/registry/pods/n/a", earlier[0]),
            ("/registry/services/specs/n/a", earlier[3]),
            ("/registry/services/specs/n/b", earlier[4]),
            ("/registry/stable.example.com/crontabs/n/a", earlier[7]),
        ];
        assert_eq!(moved, to.map(|(key, value)| (key.to_owned(), value.to_owned())));
        let revision = kv.revision();
        move_all(&kv, false).await.unwrap();
        assert_eq!(kv.revision(), revision, "once is enough");
    }

    /// Else a list of one would have objects of the other.
    #[test]
    fn no_kind_is_kept_within_another() {
        let mut prefixes: Vec<String> = Vec::new();
        for kind in Scheme::builtin().storage_kinds() {
            let prefix = kind.storage_prefix().to_string();
            let other =
                prefixes.iter().find(|other| other.starts_with(&prefix) || prefix.starts_with(&**other));
            assert_eq!(other, None, "{prefix}");
            prefixes.push(prefix);
        }
        assert!(prefixes.len() > 50);
    }
}
