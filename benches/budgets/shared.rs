//! On an etcd: our apiserver beside upstream's, in one run, on one etcd, each below a prefix of its own.
//!
//! Upstream's programs are in the folder that `make bench KUBE_BIN=FOLDER` names; without it nothing is measured
//! here, and the run says so.

use http::Method;
use kubarium::Clock;
use serde_json::json;
use tokio::runtime::Runtime;

use crate::pods::{create_pods, list_cost};
use crate::requests::{self, Costs};
use crate::server::{Process, Server};
use crate::support::upstream::{self, ControlPlane};
use crate::support::wire::Target;
use crate::table::Row;

/// Of upstream's processor time.
const SHARE: f64 = 1.0 / 3.0;
const WATCHERS: usize = 100;

/// What one server needs, in milliseconds.
struct Figures {
    costs: Costs,
    /// Verbs, and how long half of the clients wait for them at most.
    latencies: Vec<(&'static str, f64)>,
    list: f64,
    event: f64,
    resident: f64,
}

/// Both, if there is another.
pub(crate) fn measure() -> Vec<Row> {
    let Some(folder) = upstream::asked() else {
        eprintln!("  not measured: say where etcd and kube-apiserver are, as make bench KUBE_BIN=FOLDER");
        return vec![];
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let plane = runtime.block_on(ControlPlane::start(&folder, None));
    let theirs = figures(&runtime, &Process { pid: plane.processes[1].id(), target: target(&plane) });
    let own = ["--apiserver-only", "--etcd-servers", &plane.etcd, "--etcd-prefix", "/kubarium"];
    let ours = figures(&runtime, &Server::start_alone(&own).process);
    rows(&ours, &theirs)
}

fn target(plane: &ControlPlane) -> Target {
    let identity = plane.authority.client("kubernetes-admin", "system:masters", Clock::real().now()).unwrap();
    let identity = [identity.certificate_pem, identity.key_pem].map(String::into_bytes);
    let server = format!("https://{}", plane.server);
    Target::new(&server, plane.authority.certificate_pem().as_bytes(), Some(identity))
}

fn figures(runtime: &Runtime, process: &Process) -> Figures {
    process.wait_until_quiet();
    runtime.block_on(prepare(process));
    let costs = requests::costs(process);
    let latencies = runtime.block_on(requests::latencies(&process.target)).unwrap();
    let (_, event) = requests::event_cost(runtime, process, WATCHERS);
    runtime.block_on(create_pods(&process.target)).unwrap();
    process.wait_until_quiet();
    let list = list_cost(runtime, process).cpu;
    Figures { costs, latencies, list, event, resident: process.resident_mib() }
}

/// The namespace of what is measured; and the account that pods need, where no controller makes it.
async fn prepare(process: &Process) {
    let mut wire = process.target.http1().await.unwrap();
    crate::server::namespace(&mut wire, "bench").await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    let path = "/api/v1/namespaces/default/serviceaccounts";
    let answer = wire.send(Method::POST, path, &account).await.unwrap();
    assert!(matches!(answer.code, 201 | 409), "{}", answer.json());
}

fn rows(ours: &Figures, theirs: &Figures) -> Vec<Row> {
    let beside = |what: &str, unit, [own, real]: [f64; 2], share: f64| {
        Row::new(format!("on etcd: {what}"), own, unit).budget(real * share).measured(real)
    };
    let mut rows = vec![
        beside("create, CPU each", "ms", [ours.costs.create.0, theirs.costs.create.0], SHARE),
        beside("update, CPU each", "ms", [ours.costs.update.0, theirs.costs.update.0], SHARE),
        beside("list of 10,000 pods, CPU", "ms", [ours.list, theirs.list], SHARE),
        beside("event of 100 watchers, CPU each", "us", [ours.event, theirs.event], SHARE),
    ];
    for ((verb, own), (_, real)) in ours.latencies.iter().zip(&theirs.latencies) {
        rows.push(beside(&format!("one connection: {verb}, p50"), "ms", [*own, *real], 1.0));
    }
    rows.push(
        Row::new("on etcd: resident memory after all of it", ours.resident, "MiB").measured(theirs.resident),
    );
    rows
}
