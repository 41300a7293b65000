//! Random writes from many clients while informers watch: when it is over, what the informers hold, what their
//! handlers were told and what the server stores are the same.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use kubarium::apimachinery::fields::FieldSelector;
use kubarium::apimachinery::object::Object;
use kubarium::apimachinery::options::{DeleteOptions, ListOptions, PatchType};
use kubarium::apimachinery::status::Status;
use kubarium::apis::core::config_map::CONFIG_MAPS;
use kubarium::apis::core::namespace::NAMESPACES;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::kind::Kind;
use kubarium::client_go::client::Client;
use kubarium::client_go::informer_factory::SharedInformerFactory;
use kubarium::client_go::shared_informer::{Deleted, ResourceEventHandler, SharedInformer};
use kubarium::client_go::tasks::Tasks;
use kubarium::cluster::Components;
use kubarium::entropy::Entropy;
use kubarium::{Cluster, Config};
use serde_json::{Value, json};
use tokio::task::JoinSet;

const CLIENTS: u64 = 6;
const OPERATIONS: usize = 400;
const NAMESPACE_NAMES: [&str; 3] = ["one", "two", "three"];
const NODES: [&str; 3] = ["", "alpha", "beta"];

/// What a handler was told, as the state that it amounts to.
#[derive(Clone, Default)]
struct Account(Arc<Mutex<BTreeMap<String, u64>>>);

impl Account {
    fn state(&self) -> BTreeMap<String, u64> {
        self.0.lock().unwrap().clone()
    }
}

impl ResourceEventHandler for Account {
    fn on_add(&self, new: &Arc<Object>, _: bool) {
        let before = self.0.lock().unwrap().insert(new.key(), new.metadata.resource_version);
        assert_eq!(before, None, "{new:?} was added twice");
    }

    fn on_update(&self, old: &Arc<Object>, new: &Arc<Object>) {
        let before = self.0.lock().unwrap().insert(new.key(), new.metadata.resource_version);
        assert_eq!(
            before,
            Some(old.metadata.resource_version),
            "{new:?} did not follow what was told before"
        );
        assert!(new.metadata.resource_version > old.metadata.resource_version, "{new:?} came after {old:?}");
    }

    fn on_delete(&self, last: &Deleted) {
        let before = self.0.lock().unwrap().remove(&last.last().key());
        assert!(before.is_some(), "{:?} was deleted, but never there", last.last());
    }
}

/// An informer, what it is about, and what one of its handlers made of it.
struct Watched {
    informer: Arc<SharedInformer>,
    account: Account,
    kind: Arc<Kind>,
    namespace: &'static str,
    fields: &'static str,
}

impl Watched {
    fn new(
        factory: &SharedInformerFactory,
        kind: &Arc<Kind>,
        namespace: &'static str,
        fields: &'static str,
    ) -> Watched {
        let informer = factory.informer_for(kind, namespace, FieldSelector::parse(fields).unwrap());
        let account = Account::default();
        informer.add_handler(account.clone());
        Watched { informer, account, kind: kind.clone(), namespace, fields }
    }

    /// Waits until cache, handler and server agree.
    async fn agrees(&self, client: &Client, cluster: &Cluster) {
        let mut options = ListOptions::default();
        options.predicate.fields = FieldSelector::parse(self.fields).unwrap();
        let stored = client.list(&self.kind, self.namespace, &options).await.unwrap();
        let stored = revisions(stored.items.iter());
        for _ in 0..1000 {
            let cached = self.informer.lister().all();
            if revisions(cached.iter()) == stored && self.account.state() == stored {
                return;
            }
            cluster.clock().sleep(std::time::Duration::from_millis(5)).await;
        }
        assert_eq!(
            revisions(self.informer.lister().all().iter()),
            stored,
            "{} {}",
            self.kind.plural,
            self.fields
        );
        assert_eq!(self.account.state(), stored, "{} {}", self.kind.plural, self.fields);
    }
}

fn revisions<'a>(objects: impl Iterator<Item = &'a Arc<Object>>) -> BTreeMap<String, u64> {
    objects.map(|object| (object.key(), object.metadata.resource_version)).collect()
}

/// Does random things to a few objects, so that clients get in each other's way.
async fn hammer(client: Client, mut random: fastrand::Rng) {
    for _ in 0..OPERATIONS {
        let namespace = NAMESPACE_NAMES[random.usize(..NAMESPACE_NAMES.len())];
        let name = format!("o{}", random.usize(..12));
        let kind: &Arc<Kind> = if random.bool() { &PODS } else { &CONFIG_MAPS };
        let object = object(kind, &name, &mut random);
        let outcome = match random.usize(..10) {
            0..4 => client.create(kind, namespace, object).await.map(drop),
            4..6 => {
                let patch = json!({"metadata": {"labels": {"round": random.u32(..).to_string()}}});
                client.patch(kind, namespace, &name, PatchType::Merge, &patch).await.map(drop)
            }
            6 => relabel(&client, kind, namespace, &name, &mut random).await,
            7 if random.usize(..10) == 0 => {
                let all = ListOptions::default();
                client.delete_collection(kind, namespace, &DeleteOptions::default(), &all).await
            }
            _ => {
                let now = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
                client.delete(kind, namespace, &name, &now).await
            }
        };
        if let Err(status) = outcome {
            assert!(is_expected(&status), "{status:?}");
        }
    }
}

/// Reads, changes and writes back: refused when somebody else was faster.
async fn relabel(
    client: &Client,
    kind: &Kind,
    namespace: &str,
    name: &str,
    random: &mut fastrand::Rng,
) -> Result<(), Status> {
    let mut tree = client.get(kind, namespace, name).await?.to_value();
    tree["metadata"]["labels"] = json!({"round": random.u32(..).to_string()});
    client.update(kind, namespace, name, tree).await.map(drop)
}

fn is_expected(status: &Status) -> bool {
    status.is_not_found() || status.is_already_exists() || status.is_conflict()
}

fn object(kind: &Kind, name: &str, random: &mut fastrand::Rng) -> Value {
    let metadata = json!({"name": name, "labels": {"round": "0"}});
    match &*kind.kind {
        "Pod" => {
            let node = NODES[random.usize(..NODES.len())];
            let containers = json!([{"name": "c", "image": "nginx"}]);
            json!({"metadata": metadata, "spec": {"nodeName": node, "containers": containers}})
        }
        _ => json!({"metadata": metadata, "data": {"padding": "x".repeat(random.usize(..2000))}}),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn informers_end_up_with_what_the_server_stores() {
    for seed in 0..4 {
        eprintln!("seed {seed}");
        let config = Config::new().components(Components::NONE).entropy(Entropy::seeded(seed));
        let cluster = Cluster::start(config).await.unwrap();
        let client = cluster.client();
        for name in NAMESPACE_NAMES {
            client.create(&NAMESPACES, "", json!({"metadata": {"name": name}})).await.unwrap();
            let account = json!({"metadata": {"name": "default"}});
            client
                .create(&kubarium::apis::core::service_account::SERVICE_ACCOUNTS, name, account)
                .await
                .unwrap();
        }
        let entropy = Entropy::seeded(seed);
        let factory =
            SharedInformerFactory::new(client.clone(), "hammer", cluster.clock().clone(), entropy.clone());
        let watched = [
            Watched::new(&factory, &PODS, "", ""),
            Watched::new(&factory, &PODS, "", "spec.nodeName=alpha"),
            Watched::new(&factory, &PODS, "two", "spec.nodeName!=beta"),
            Watched::new(&factory, &CONFIG_MAPS, "", ""),
            Watched::new(&factory, &CONFIG_MAPS, "one", ""),
            Watched::new(&factory, &CONFIG_MAPS, "", "metadata.name=o3"),
        ];
        let tasks = Tasks::new(cluster.clock().clone(), entropy);
        let _stop = tasks.stop_on_drop();
        factory.start(&tasks);
        let mut clients = JoinSet::new();
        for number in 0..CLIENTS {
            clients.spawn(hammer(client.clone(), fastrand::Rng::with_seed(seed * CLIENTS + number)));
        }
        clients.join_all().await;
        for watched in &watched {
            watched.agrees(&client, &cluster).await;
        }
        assert_eq!(tasks.restarts(), 0);
        cluster.stop().await;
    }
}
