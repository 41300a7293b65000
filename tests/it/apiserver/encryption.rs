//! Encryption at rest: what the files of a data dir hold, before and after keys are changed.

use std::fs;
use std::path::Path;

use kubarium::apis::core::secret::SECRETS;
use kubarium::apiserver::storage::encryption::Encryption;
use kubarium::clock::Clock;
use kubarium::cluster::Components;
use kubarium::{Cluster, Config};
use serde_json::json;

const KEY_1: &str = "{name: key1, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}";
const KEY_2: &str = "{name: key2, secret: ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=}";

async fn cluster(dir: &Path, providers: &str) -> Cluster {
    let text = format!(
        "{{apiVersion: apiserver.config.k8s.io/v1, kind: EncryptionConfiguration, resources: [{{resources: \
         [secrets], providers: [{providers}]}}]}}"
    );
    let encryption = Encryption::parse(&text).unwrap();
    let mut config = Config::new().nodes(0).components(Components::NONE).data_dir(dir);
    config.apiserver.encryption.made = Some(encryption);
    Cluster::start(config).await.unwrap()
}

/// Whether any file below holds these bytes.
fn holds(dir: &Path, bytes: &[u8]) -> bool {
    fs::read_dir(dir).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => holds(&path, bytes),
            false => fs::read(&path).unwrap().windows(bytes.len()).any(|window| window == bytes),
        }
    })
}

async fn create(cluster: &Cluster, name: &str, password: &str) {
    let secret = json!({"metadata": {"name": name}, "data": {"password": password}});
    cluster.client().create(&SECRETS, "default", secret).await.unwrap();
}

async fn password(cluster: &Cluster, name: &str) -> Result<String, String> {
    let found = cluster.client().get(&SECRETS, "default", name).await;
    let tree = found.map_err(|status| status.message)?.to_value();
    Ok(tree["data"]["password"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn secrets_are_not_in_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let (open, closed) = (folder.path().join("open"), folder.path().join("closed"));
    let (clear, hidden) = ("Y2xlYXJ0ZXh0cGFzc3dvcmQ=", "aGlkZGVucGFzc3dvcmRvZm91cnM=");
    let cluster_of = cluster(&open, "{identity: {}}").await;
    create(&cluster_of, "s", clear).await;
    cluster_of.stop().await;
    assert!(holds(&open, clear.as_bytes()), "the search finds what is there");
    let cluster_of = cluster(&closed, &format!("{{aescbc: {{keys: [{KEY_1}]}}}}")).await;
    create(&cluster_of, "s", hidden).await;
    assert_eq!(password(&cluster_of, "s").await.unwrap(), hidden);
    cluster_of.stop().await;
    assert!(!holds(&closed, hidden.as_bytes()));
    assert!(holds(&closed, b"k8s:enc:aescbc:v1:key1:"));
}

#[tokio::test]
async fn keys_are_changed_over_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let hidden = "aGlkZGVucGFzc3dvcmRvZm91cnM=";
    let (old, both) =
        (format!("{{aesgcm: {{keys: [{KEY_1}]}}}}"), format!("{{aesgcm: {{keys: [{KEY_2}, {KEY_1}]}}}}"));
    // From nothing to the first key: the identity reads what is there already.
    let first = cluster(folder.path(), "{identity: {}}").await;
    create(&first, "s", hidden).await;
    first.stop().await;
    let second = cluster(folder.path(), &format!("{old}, {{identity: {{}}}}")).await;
    assert_eq!(password(&second, "s").await.unwrap(), hidden);
    rewrite(&second, "s").await;
    second.stop().await;
    // And to the second key; what was not written again is read with the first.
    let third = cluster(folder.path(), &both).await;
    assert_eq!(password(&third, "s").await.unwrap(), hidden);
    rewrite(&third, "s").await;
    third.stop().await;
    let fourth = cluster(folder.path(), &format!("{{aesgcm: {{keys: [{KEY_2}]}}}}")).await;
    assert_eq!(password(&fourth, "s").await.unwrap(), hidden);
    fourth.stop().await;
    // Without the key nothing is read, and nobody is told what is there.
    let fifth = cluster(folder.path(), &old).await;
    let error = password(&fifth, "s").await.unwrap_err();
    let wanted = "unable to transform key \"/registry/secrets/default/s\": no matching key was found for the \
        provided AES transformer";
    assert!(error.contains(wanted), "{error}");
}

/// `kubectl get secret -o json | kubectl replace -f -`: changes nothing, and is kept under the new key.
async fn rewrite(cluster: &Cluster, name: &str) {
    let secret = cluster.client().get(&SECRETS, "default", name).await.unwrap().to_value();
    cluster.client().update(&SECRETS, "default", name, secret).await.unwrap();
}

#[tokio::test]
async fn a_file_that_changes_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (file, data) = (folder.path().join("encryption"), folder.path().join("data"));
    let config = |keys: &str| {
        format!(
            "{{apiVersion: apiserver.config.k8s.io/v1, kind: EncryptionConfiguration, resources: \
             [{{resources: [secrets], providers: [{{aesgcm: {{keys: [{keys}]}}}}]}}]}}"
        )
    };
    let first = config(KEY_1);
    let clock = Clock::stepped(chrono::DateTime::UNIX_EPOCH + chrono::TimeDelta::days(20_000));
    let mut config_of_cluster =
        Config::new().nodes(0).components(Components::NONE).data_dir(data.clone()).clock(clock.clone());
    let encryption = Encryption::parse(&first).unwrap().following(&file, &first);
    config_of_cluster.apiserver.encryption.made = Some(encryption);
    let cluster = Cluster::start(config_of_cluster).await.unwrap();
    let secret = "aGlkZGVucGFzc3dvcmRvZm91cnM=";
    create(&cluster, "s", secret).await;
    // A wrong file changes nothing.
    for text in ["nonsense".to_owned(), config(&format!("{KEY_2}, {KEY_1}"))] {
        fs::write(&file, text).unwrap();
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        clock.advance(std::time::Duration::from_secs(61));
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        assert_eq!(password(&cluster, "s").await.unwrap(), secret);
    }
    let mut number = 0;
    while !holds(&data, b"k8s:enc:aesgcm:v1:key2:") {
        create(&cluster, &format!("s-{number}"), secret).await;
        assert!(number < 100, "the second key is never used");
        number += 1;
    }
    cluster.stop().await;
}
