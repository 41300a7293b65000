//! Stores of earlier versions, which kept objects below `/registry/deployments.apps/` and their like: their
//! keys become upstream's, `/registry/deployments/`, before anything is read.
//!
//! Each kind moves in one step, so that a start that is broken off goes on with the next one. A moved object
//! has a new revision, as after any write.

use apis::kind::Kind;
use apis::scheme::Scheme;
use etcd::{Error, KeySpan, KeyValue, Kv};

/// Where definitions of custom kinds were.
const DEFINITIONS: &str = "/registry/customresourcedefinitions.apiextensions.k8s.io/";

/// Moves what is where earlier versions kept it.
pub(super) async fn move_all(kv: &Kv) -> Result<(), Error> {
    // Of custom kinds first: once their definitions are gone from there, nobody knows them.
    let definitions = kv.range(DEFINITIONS, None, None, None)?.kvs;
    for definition in &definitions {
        if let Some((plural, group)) = definition.key[DEFINITIONS.len()..].split_once('.') {
            let to = format!("/registry/{group}/{plural}/");
            move_prefix(kv, format!("/registry/{plural}.{group}/"), to).await?;
        }
    }
    for kind in Scheme::builtin().all() {
        let kind: &Kind = kind.storage_kind();
        let from = format!("/registry/{}/", kind.group_resource());
        if from != **kind.storage_prefix() {
            move_prefix(kv, from, kind.storage_prefix().to_string()).await?;
        }
    }
    Ok(())
}

async fn move_prefix(kv: &Kv, from: String, to: String) -> Result<(), Error> {
    if kv.is_empty(&from)? {
        return Ok(());
    }
    tracing::info!(from, to, "an earlier version has kept objects under other keys: they are moved");
    kv.transact(move |txn| {
        for kept in txn.range(&KeySpan::prefix(&from), usize::MAX, None)?.kvs {
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
            "/elsewhere/deployments.apps/a",
            &definition,
            &custom,
        ];
        for key in earlier {
            let put = Op::Put { value: key.as_bytes().to_vec().into(), lease: None };
            kv.txn(key, Expect::Any, put).await.unwrap();
        }
        move_all(&kv).await.unwrap();
        let moved = kv.range("", None, None, None).unwrap().kvs;
        let value = |kv: &KeyValue| String::from_utf8(kv.value.to_vec()).unwrap();
        let moved: Vec<(String, String)> = moved.iter().map(|kv| (kv.key.to_string(), value(kv))).collect();
        let to = [
            ("/elsewhere/deployments.apps/a", earlier[3]),
            (
                "/registry/apiextensions.k8s.io/customresourcedefinitions/crontabs.stable.example.com",
                earlier[4],
            ),
            ("/registry/deployments/n/a", earlier[1]),
            ("/registry/minions/a", earlier[2]),
            ("/registry/pods/n/a", earlier[0]),
            ("/registry/stable.example.com/crontabs/n/a", earlier[5]),
        ];
        assert_eq!(moved, to.map(|(key, value)| (key.to_owned(), value.to_owned())));
        let revision = kv.revision();
        move_all(&kv).await.unwrap();
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
