//! What a test in Rust does with forks and snapshots.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use kubarium::kinds::{CONFIG_MAPS, DEPLOYMENTS, NAMESPACES};
use kubarium::{
    Clock, Cluster, Config, Entropy, Export, ForkError, Listen, PatchType, Snapshot, SnapshotError,
    StartError,
};
use serde_json::json;
use tokio::runtime::Handle;

use super::{bare, put, running, text, web};

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_has_the_same_past_and_its_own_future_with_all_components_at_work() {
    let parent = Cluster::start(Config::new()).await.unwrap();
    parent.client().create(&DEPLOYMENTS, "default", web(2)).await.unwrap();
    let before = running(&parent, 2).await;
    let (one, other) = (parent.fork().await.unwrap(), parent.fork().await.unwrap());
    assert_eq!(running(&one, 2).await, before, "no pod is restarted or made anew");
    let scaled = json!({"spec": {"replicas": 3}});
    let merge = PatchType::Merge;
    one.client().patch(&DEPLOYMENTS, "default", "web", merge, &scaled).await.unwrap();
    let after = running(&one, 3).await;
    assert!(before.iter().all(|pod| after.contains(pod)), "{before:?} {after:?}");
    other.client().delete(&DEPLOYMENTS, "default", "web", &Default::default()).await.unwrap();
    assert_eq!(running(&parent, 2).await, before);
    parent.stop().await;
    put(&one, "a", "1").await;
    let grandchild = one.fork().await.unwrap();
    one.stop().await;
    assert_eq!(text(&grandchild, "a").await.as_deref(), Some("1"), "a fork outlives its parent");
    assert_eq!(running(&grandchild, 3).await.len(), 3);
    grandchild.stop().await;
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_stopped_in_the_parent_does_not_run_in_its_fork() {
    let parent = Cluster::start(Config::new()).await.unwrap();
    parent.client().create(&DEPLOYMENTS, "default", web(1)).await.unwrap();
    running(&parent, 1).await;
    parent.stop_component("kube-scheduler").unwrap();
    let fork = parent.fork().await.unwrap();
    put(&fork, "a", "1").await;
    let scaled = json!({"spec": {"replicas": 2}});
    let merge = PatchType::Merge;
    fork.client().patch(&DEPLOYMENTS, "default", "web", merge, &scaled).await.unwrap();
    let pending = loop {
        let pods = fork.client().list(&kubarium::kinds::PODS, "default", &Default::default()).await.unwrap();
        if pods.items.len() == 2 {
            break pods.items.iter().filter(|pod| pod.to_value()["spec"]["nodeName"].is_null()).count();
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(pending, 1, "what was stopped in the parent does not run in the fork");
    fork.start_component("kube-scheduler").unwrap();
    running(&fork, 2).await;
    fork.stop().await;
    parent.stop().await;
}

#[tokio::test]
async fn a_fork_goes_back_to_a_resource_version_within_the_log() {
    let parent = Cluster::start(bare()).await.unwrap();
    let first = put(&parent, "a", "1").await;
    let second = put(&parent, "a", "2").await;
    put(&parent, "b", "3").await;
    let rewound = parent.fork_at(first).await.unwrap();
    assert_eq!((text(&rewound, "a").await.as_deref(), text(&rewound, "b").await), (Some("1"), None));
    assert_eq!(put(&rewound, "c", "4").await, first + 1);
    assert_eq!(text(&parent, "a").await.as_deref(), Some("2"));
    let newest = put(&parent, "a", "5").await;
    let future = parent.fork_at(newest + 100).await.map(drop).unwrap_err();
    assert!(matches!(future, ForkError::Future { newest: known, .. } if known == newest), "{future}");
    for early in [0, 1, 3] {
        let refused = parent.fork_at(early).await.map(drop).unwrap_err();
        assert!(matches!(refused, ForkError::NotSetUp { newest: known, .. } if known == newest), "{refused}");
    }
    assert!(second > first);
}

#[tokio::test]
async fn what_is_compacted_away_cannot_be_gone_back_to() {
    let clock = Clock::stepped("2030-01-01T00:00:00Z".parse().unwrap());
    let parent = Cluster::start(bare().clock(clock.clone())).await.unwrap();
    let first = put(&parent, "a", "1").await;
    let oldest = loop {
        // Two intervals of compaction.
        clock.advance(std::time::Duration::from_secs(300));
        put(&parent, "a", "2").await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        match parent.fork_at(first).await {
            Err(ForkError::TooOld { oldest, asked, .. }) => {
                assert_eq!(asked, first);
                break oldest;
            }
            Err(other) => panic!("{other}"),
            Ok(_) => {}
        }
    };
    let error = parent.fork_at(first).await.map(drop).unwrap_err().to_string();
    assert!(error.contains(&format!("choose one from {oldest} to ")), "{error}");
    assert!(parent.fork_at(oldest).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn forks_are_consistent_while_writers_write() {
    let parent = std::sync::Arc::new(Cluster::start(bare()).await.unwrap());
    put(&parent, "a", "0").await;
    put(&parent, "b", "0").await;
    let writer = tokio::spawn({
        let parent = parent.clone();
        async move {
            for number in 1..300 {
                put(&parent, "a", &number.to_string()).await;
                put(&parent, "b", &number.to_string()).await;
            }
        }
    });
    while !writer.is_finished() {
        let fork = parent.fork().await.unwrap();
        let number = async |name| text(&fork, name).await.unwrap().parse::<i64>().unwrap();
        let (a, b) = (number("a").await, number("b").await);
        assert!(a == b || a == b + 1, "a is written before b: {a} {b}");
        let listed = fork.client().list(&CONFIG_MAPS, "default", &Default::default()).await.unwrap();
        let of_list = |name: &str| {
            let found = listed.items.iter().find(|item| item.metadata.name == name).unwrap();
            found.to_value()["data"]["text"].as_str().unwrap().parse::<i64>().unwrap()
        };
        assert_eq!((of_list("a"), of_list("b")), (a, b), "the cache is what the store is");
    }
    writer.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_listens_on_its_own_port_and_takes_its_parents_credentials() {
    let parent = Cluster::start(bare().listen(Listen::loopback())).await.unwrap();
    let fork = parent.fork().await.unwrap();
    let (of_parent, of_fork) = (parent.access().unwrap(), fork.access().unwrap());
    assert_ne!(of_parent.server, of_fork.server);
    assert_eq!(of_parent.authority_pem, of_fork.authority_pem);
    let mixed = of_parent.kubeconfig("x").replace(&of_parent.server, &of_fork.server);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    fs::write(&path, mixed).unwrap();
    let target = crate::support::wire::Target::of_kubeconfig(&path);
    let answer = target.http1().await.unwrap().get("/api/v1/namespaces/default").await.unwrap();
    assert_eq!(answer.code, 200, "{}", answer.json());
    fork.stop().await;
    parent.stop().await;
}

#[tokio::test]
async fn forks_of_one_moment_behave_alike_when_time_is_stepped_and_chance_seeded() {
    let clock = Clock::stepped("2030-01-01T00:00:00Z".parse().unwrap());
    let parent = Cluster::start(bare().clock(clock).entropy(Entropy::seeded(5))).await.unwrap();
    let (one, other) = (parent.fork().await.unwrap(), parent.fork().await.unwrap());
    let make = async |cluster: &Cluster| {
        let map = json!({"metadata": {"generateName": "x-"}});
        let made = cluster.client().create(&CONFIG_MAPS, "default", map).await.unwrap();
        (made.metadata.name.clone(), made.metadata.uid.clone(), made.metadata.resource_version)
    };
    let made = make(&one).await;
    one.clock().advance(std::time::Duration::from_secs(60));
    assert_eq!(made, make(&other).await);
    assert_eq!(parent.clock().now(), other.clock().now());
    assert!(one.clock().now() > other.clock().now());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_forks_leave_no_task_and_no_port() {
    let parent = Cluster::start(Config::new().listen(Listen::loopback())).await.unwrap();
    let tasks = || Handle::current().metrics().num_alive_tasks();
    // What a first fork makes in its parent stays.
    parent.fork().await.unwrap().stop().await;
    let before = tasks();
    let mut forks = Vec::new();
    for number in 0..100 {
        let fork = parent.fork().await.unwrap();
        put(&fork, "a", &number.to_string()).await;
        forks.push(fork);
    }
    let addresses: Vec<_> = forks.iter().map(|fork| fork.address().unwrap()).collect();
    for (number, fork) in forks.into_iter().enumerate() {
        assert_eq!(text(&fork, "a").await, Some(number.to_string()));
        if number % 2 == 0 { fork.stop().await } else { drop(fork) }
    }
    for address in addresses {
        while std::net::TcpListener::bind(address).is_err() {
            tokio::task::yield_now().await;
        }
    }
    // The parent's own come and go.
    while tasks() > before + 20 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    parent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_is_the_whole_cluster_in_a_private_file() {
    let folder = tempfile::tempdir().unwrap();
    let (file, data_dir) = (folder.path().join("file"), folder.path().join("data"));
    let parent = Cluster::start(Config::new().nodes(2)).await.unwrap();
    parent.client().create(&DEPLOYMENTS, "default", web(2)).await.unwrap();
    let before = running(&parent, 2).await;
    parent.save(&file).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let snapshot = Snapshot::read(&file).unwrap();
    let authority = |cluster: &Cluster| cluster.access().and_then(|access| access.authority_pem);
    parent.stop().await;
    let loaded = Cluster::load(&file).await.unwrap();
    let kept = Config::new().snapshot(snapshot.clone()).data_dir(&data_dir).unsafe_no_fsync(true);
    let listening = Cluster::start(kept.listen(Listen::loopback())).await.unwrap();
    for cluster in [&loaded, &listening] {
        let names = |pods: Vec<(String, serde_json::Value)>| pods.into_iter().map(|(uid, _)| uid).collect();
        let (had, has): (Vec<String>, Vec<String>) =
            (names(before.clone()), names(running(cluster, 2).await));
        assert_eq!(has, had);
        let nodes = cluster.client().list(&kubarium::kinds::NODES, "", &Default::default()).await.unwrap();
        assert_eq!(nodes.items.len(), 2);
    }
    let trusted = authority(&listening);
    loaded.stop().await;
    listening.stop().await;
    let again = Config::new().nodes(2).data_dir(&data_dir).unsafe_no_fsync(true).listen(Listen::loopback());
    let again = Cluster::start(again).await.unwrap();
    assert_eq!(authority(&again), trusted, "its keys came along");
    again.stop().await;
    let used = Cluster::start(Config::new().snapshot(snapshot).data_dir(&data_dir)).await.map(drop);
    assert!(matches!(used, Err(StartError::Snapshot(SnapshotError::InUse(_)))));
}

#[tokio::test]
async fn what_is_no_whole_snapshot_is_refused_and_nothing_of_it_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let parent = Cluster::start(bare()).await.unwrap();
    parent.save(&file).unwrap();
    let whole = fs::read(&file).unwrap();
    let refused = |bytes: &[u8]| {
        fs::write(&file, bytes).unwrap();
        let error = Snapshot::read(&file).map(drop).unwrap_err();
        assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
        error
    };
    for cut in [20, 100, whole.len() / 2, whole.len() - 1] {
        let error = refused(&whole[..cut]);
        assert!(matches!(error, SnapshotError::CutShort(_, found, _) if found == cut), "{cut}: {error}");
    }
    for text in ["", "x", "apiVersion: v1\nkind: ConfigMap, and so on, longer than what stands in front\n"] {
        assert!(matches!(refused(text.as_bytes()), SnapshotError::NoSnapshot(_)), "{text:?}");
    }
    let mut other = whole.clone();
    other[b"kubarium snapshot\n".len() + 3] = 9;
    assert!(matches!(refused(&other), SnapshotError::OtherVersion(_, 9)));
    for at in [whole.len() / 3, whole.len() - 1] {
        let mut spoilt = whole.clone();
        spoilt[at] ^= 1;
        assert!(matches!(refused(&spoilt), SnapshotError::Damaged(_)), "{at}");
    }
    assert!(matches!(refused(&[whole, vec![0]].concat()), SnapshotError::Damaged(_)));
    assert!(matches!(Cluster::load(&file).await.map(drop), Err(StartError::Snapshot(_))));
    assert!(matches!(Snapshot::read(&folder.path().join("none")).map(drop), Err(SnapshotError::Io(..))));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_applied_to_another_cluster_and_differences_are_told() {
    let parent = Cluster::start(Config::new()).await.unwrap();
    let before = parent.snapshot().unwrap();
    let client = parent.client();
    client.create(&NAMESPACES, "", json!({"metadata": {"name": "team"}})).await.unwrap();
    client.create(&DEPLOYMENTS, "default", web(1)).await.unwrap();
    put(&parent, "a", "1").await;
    running(&parent, 1).await;
    let after = parent.snapshot().unwrap();
    let diff = before.diff(&after, false).await.unwrap();
    let added =
        |kind: &str, name: &str| diff.added.iter().any(|found| found.kind == kind && found.name == name);
    assert!(added("Namespace", "team") && added("Deployment", "web") && added("ConfigMap", "a"), "{diff}");
    assert!(diff.removed.is_empty(), "{diff}");
    put(&parent, "a", "2").await;
    let changed = after.diff(&parent.snapshot().unwrap(), false).await.unwrap().to_string();
    assert!(changed.contains("~ v1 ConfigMap default/a\n    data.text: \"1\" -> \"2\""), "{changed}");
    assert!(after.diff(&after, true).await.unwrap().is_empty());

    let text = parent.export(Export::new()).await.unwrap();
    for absent in ["kind: Pod", "kind: ReplicaSet", "status:", "uid:", "resourceVersion:", "kube-root-ca.crt"]
    {
        assert!(!text.contains(absent), "{absent}\n{text}");
    }
    assert!(text.find("kind: Namespace").unwrap() < text.find("kind: Deployment").unwrap(), "{text}");
    let all = parent.export(Export::new().all(true)).await.unwrap();
    assert!(all.contains("kind: Pod") && all.contains("kind: ReplicaSet"));
    let fresh = Cluster::start(Config::new()).await.unwrap();
    let manifest = kubarium::Manifest::parse(std::path::Path::new("export.yaml"), &text).unwrap();
    fresh.apply(&manifest, |_| {}).await.unwrap();
    running(&fresh, 1).await;
    assert_eq!(super::text(&fresh, "a").await.as_deref(), Some("2"));
    fresh.stop().await;
    parent.stop().await;
}
