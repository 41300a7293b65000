//! Many clusters beside each other, in one process and in many: they start and end, and nothing is left of them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::process::Child;

use kubarium::{Cluster, Components, Config, Listen};

use crate::support::{command, eventually, texts};

/// In one process.
const CLUSTERS: usize = 100;
/// Beside each other.
const PROCESSES: usize = 20;

fn listening() -> Config {
    Config::new().components(Components::NONE).nodes(0).listen(Listen::loopback())
}

#[test]
fn a_hundred_clusters_in_one_process_leave_nothing() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut clusters = runtime.block_on(async {
        let starts = (0..CLUSTERS).map(|_| tokio::spawn(Cluster::start(listening())));
        let started = futures::future::join_all(starts).await;
        started.into_iter().map(|cluster| cluster.unwrap().unwrap()).collect::<Vec<_>>()
    });
    let addresses: BTreeSet<SocketAddr> = clusters.iter().map(|cluster| cluster.address().unwrap()).collect();
    assert_eq!(addresses.len(), CLUSTERS, "two have one port");
    // Half of them are stopped, the others only dropped.
    let dropped = clusters.split_off(CLUSTERS / 2);
    runtime.block_on(futures::future::join_all(clusters.into_iter().map(Cluster::stop)));
    runtime.block_on(async { drop(dropped) });
    eventually("every task to end", || (runtime.metrics().num_alive_tasks() == 0).then_some(()));
    for address in addresses {
        assert!(TcpStream::connect(address).is_err(), "somebody still listens on {address}");
    }
}

/// They share the folder of records and the kubeconfig, as those of one user do.
#[test]
fn twenty_processes_beside_each_other_leave_nothing() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("tmp")).unwrap();
    let names: Vec<String> = (0..PROCESSES).map(|number| format!("c{number}")).collect();
    let log = |name: &String| home.path().join(format!("{name}.log"));
    let up = |name: &String| {
        let printed = File::create(log(name)).unwrap();
        let mut up = command(home.path());
        up.env("TMPDIR", home.path().join("tmp"));
        up.args(["up", "--nodes", "1", "--name", name])
            .stdout(printed.try_clone().unwrap())
            .stderr(printed)
            .spawn()
            .unwrap()
    };
    let mut children: Vec<Child> = names.iter().map(up).collect();
    let record = |name: &String| home.path().join("state").join(format!("{name}.json"));
    // One after the other, so that the patience is with each: twenty that start at once share the machine.
    for name in &names {
        eventually(&format!("{name} to be ready"), || {
            for (name, child) in names.iter().zip(&mut children) {
                if let Some(status) = child.try_wait().unwrap() {
                    panic!("{name} ended with {status}:\n{}", fs::read_to_string(log(name)).unwrap());
                }
            }
            record(name).exists().then_some(())
        });
    }
    let kubeconfig = home.path().join(".kube/config");
    let config: serde_yaml::Value = serde_yaml::from_slice(&fs::read(&kubeconfig).unwrap()).unwrap();
    let servers: BTreeSet<&str> = config["clusters"]
        .as_sequence()
        .unwrap()
        .iter()
        .filter_map(|entry| entry["cluster"]["server"].as_str())
        .collect();
    assert_eq!(servers.len(), PROCESSES, "each has its context and its port");
    let down = command(home.path()).args(["down", "--all"]).output().unwrap();
    assert!(down.status.success(), "{}", texts(&down).1);
    for (name, child) in names.iter().zip(&mut children) {
        let status = eventually("a process to end", || child.try_wait().unwrap());
        assert!(status.success(), "{name}: {}", fs::read_to_string(log(name)).unwrap());
    }
    for folder in ["state", "tmp"] {
        let left: Vec<_> = fs::read_dir(home.path().join(folder)).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
    let config: serde_yaml::Value = serde_yaml::from_slice(&fs::read(&kubeconfig).unwrap()).unwrap();
    assert_eq!(config["contexts"].as_sequence().map_or(0, Vec::len), 0, "a context is left");
}
