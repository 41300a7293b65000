//! `kubectl describe`: an object as people read it, and what was told of it.

mod page;

mod metadata;
mod resources;

mod containers;
mod events;
mod volumes;

mod pods;

mod nodes;
mod others;
mod services;
mod workloads;

use serde_json::Value;

use self::metadata::{list, selector, text};
use self::nodes::NodeSurroundings;
use self::page::TabbedPage;
use super::client::{ApiAnswer, ApiClient};
use super::known::{BUILTIN, KnownResource};
use super::objects::named;
use super::options::KubectlOptions;
use super::resources::find;
use super::stop::{KubectlRun, KubectlStop};
use crate::interpreter::player::Player;

/// Kinds with pages of their own, by their plurals; those of custom resources are told by their fields.
const KNOWN: &[&str] = &[
    "pods",
    "deployments",
    "replicasets",
    "statefulsets",
    "daemonsets",
    "jobs",
    "services",
    "nodes",
    "configmaps",
    "secrets",
    "serviceaccounts",
];
/// Of these no events are told.
const WITHOUT_EVENTS: &[&str] = &["secrets"];

type Described = Result<String, KubectlStop>;

/// `describe TYPE [NAME_PREFIX]`, `TYPE/NAME`, with `-l`, `-A`, `--show-events`
pub(super) fn describe(player: &mut Player<'_>, client: &ApiClient, options: &KubectlOptions) -> KubectlRun {
    let mut found: Vec<(KnownResource, Value)> = vec![];
    for one in named(player, client, options)? {
        check_kind(&one.resource)?;
        let path = client.path(&one.resource, one.name.as_deref(), options);
        match (client.get(player, &path)?, &one.name) {
            (ApiAnswer { code: 404, body }, Some(name)) if options.words.len() == 3 => {
                let missing = ApiAnswer { code: 404, body };
                return beginning_with(player, client, options, (&one.resource, name), missing);
            }
            (answer, Some(_)) => found.push((one.resource, answer.well()?)),
            (answer, None) => {
                let items = items(&answer.well()?);
                found.extend(items.into_iter().map(|item| (one.resource.clone(), item)));
            }
        }
    }
    let shows_events = options.shows_events.unwrap_or(found.len() <= 1);
    if found.is_empty() {
        let place = client.own_namespace().filter(|_| !options.is_everywhere);
        let place = place.map(|namespace| format!(" in {namespace} namespace.")).unwrap_or_default();
        player.complain(&format!("No resources found{place}\n"));
    }
    for (at, (resource, object)) in found.iter().enumerate() {
        let page = page(player, client, resource, object, shows_events)?;
        player.say(&format!("{}{page}", if at == 0 { "" } else { "\n\n" }));
    }
    Ok(())
}

/// The objects of a list, which do not say themselves of which kind they are.
fn items(list_of: &Value) -> Vec<Value> {
    let kind = text(list_of, "kind").trim_end_matches("List");
    let with_kind = |item: &Value| {
        let mut item = item.clone();
        item["apiVersion"] = list_of["apiVersion"].clone();
        item["kind"] = kind.into();
        item
    };
    list(&list_of["items"]).iter().map(with_kind).collect()
}

/// All whose names begin so.
fn beginning_with(
    player: &mut Player<'_>,
    client: &ApiClient,
    options: &KubectlOptions,
    (resource, prefix): (&KnownResource, &str),
    missing: ApiAnswer,
) -> KubectlRun {
    let answer = client.get(player, &client.path(resource, None, options))?.well()?;
    let is_meant = |item: &&Value| text(&item["metadata"], "name").starts_with(prefix);
    let items = items(&answer);
    let found: Vec<&Value> = items.iter().filter(is_meant).collect();
    if found.is_empty() {
        return missing.well().map(drop);
    }
    for object in found {
        let page = page(player, client, resource, object, options.shows_events.unwrap_or(false))?;
        player.say(&format!("{page}\n"));
    }
    Ok(())
}

fn check_kind(resource: &KnownResource) -> KubectlRun {
    let is_builtin = BUILTIN.iter().any(|row| (row.0, row.2) == (&*resource.group, &*resource.plural));
    if !is_builtin || KNOWN.contains(&resource.plural.as_str()) {
        return Ok(());
    }
    let known = KNOWN.join(", ");
    let why =
        format!("error: no description of {} is known here: this one describes {known}", resource.plural);
    Err(KubectlStop::Failed(format!("{why} and custom resources")))
}

fn page(
    player: &mut Player<'_>,
    client: &ApiClient,
    resource: &KnownResource,
    object: &Value,
    shows_events: bool,
) -> Described {
    let now = player.now();
    let mut page = TabbedPage::default();
    let kind = if resource.group.contains('.') { "" } else { resource.plural.as_str() };
    let about = ObjectOf { client, object };
    match kind {
        "pods" => pods::pod(&mut page, object, now),
        "deployments" => workloads::deployment(&mut page, object, &about.selected(player, "replicasets")?),
        "replicasets" => workloads::replica_set(&mut page, object, &about.selected(player, "pods")?),
        "statefulsets" => workloads::stateful_set(&mut page, object, &about.selected(player, "pods")?),
        "daemonsets" => workloads::daemon_set(&mut page, object, &about.selected(player, "pods")?),
        "jobs" => workloads::job(&mut page, object),
        "services" => services::service(&mut page, object, &about.slices(player)?),
        "nodes" => nodes::node(&mut page, object, &about.of_node(player)?, now),
        "configmaps" => others::config_map(&mut page, object),
        "secrets" => others::secret(&mut page, object),
        "serviceaccounts" => others::service_account(&mut page, object),
        _ => others::anything(&mut page, object),
    }
    if shows_events
        && !WITHOUT_EVENTS.contains(&kind)
        && let Some(told) = about.events(player)?
    {
        events::events(&mut page, &told, now);
    }
    Ok(page.finish())
}

/// An object, and who asks for what belongs to it.
struct ObjectOf<'a> {
    client: &'a ApiClient,
    object: &'a Value,
}

impl ObjectOf<'_> {
    fn metadata(&self, field: &str) -> &str {
        text(&self.object["metadata"], field)
    }

    /// What is of a kind in its namespace and fits a selector; nothing where that may not be seen.
    fn all(
        &self,
        player: &mut Player<'_>,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Vec<Value>, KubectlStop> {
        let answer = self.client.select(player, path, query)?;
        Ok(if answer.code < 400 { events::of_list(&answer.body) } else { vec![] })
    }

    /// Pods or ReplicaSets that its selector means.
    fn selected(&self, player: &mut Player<'_>, kind: &str) -> Result<Vec<Value>, KubectlStop> {
        let kind = find(player, self.client, kind)?;
        let path = kind.path(Some(self.metadata("namespace")));
        let selector = selector(&self.object["spec"]["selector"]);
        self.all(player, &path, &[("labelSelector", &selector)])
    }

    fn slices(&self, player: &mut Player<'_>) -> Result<Vec<Value>, KubectlStop> {
        let namespace = self.metadata("namespace");
        let path = format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices");
        let selector = format!("kubernetes.io/service-name={}", self.metadata("name"));
        self.all(player, &path, &[("labelSelector", &selector)])
    }

    fn of_node(&self, player: &mut Player<'_>) -> Result<NodeSurroundings, KubectlStop> {
        let name = self.metadata("name");
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}");
        let lease = self.client.get(player, &path)?;
        let lease = match lease.code {
            200 => Ok(lease.body),
            _ => Err(text(&lease.body, "message").to_owned()),
        };
        let fields = format!("spec.nodeName={name},status.phase!=Failed,status.phase!=Succeeded");
        let pods = self.client.select(player, "/api/v1/pods", &[("fieldSelector", &fields)])?;
        let pods = match pods.code {
            403 => None,
            _ => Some(events::of_list(&pods.well()?)),
        };
        Ok(NodeSurroundings { lease, pods })
    }

    /// Nothing where they may not be seen. Those of nodes name them by their names, too, in place of a uid.
    fn events(&self, player: &mut Player<'_>) -> Result<Option<Vec<Value>>, KubectlStop> {
        let (kind, name) = (text(self.object, "kind"), self.metadata("name"));
        let namespace = self.metadata("namespace");
        let path = match namespace {
            "" => "/api/v1/events".to_owned(),
            namespace => format!("/api/v1/namespaces/{namespace}/events"),
        };
        let mut uids = vec![self.metadata("uid")];
        uids.extend((kind == "Node").then_some(name));
        let mut all = vec![];
        for uid in uids {
            let of = |field: &str, value: &str| format!("involvedObject.{field}={value}");
            let mut terms = vec![of("kind", kind), of("name", name), of("uid", uid)];
            terms.extend((!namespace.is_empty()).then(|| of("namespace", namespace)));
            let answer = self.client.select(player, &path, &[("fieldSelector", &terms.join(","))])?;
            if answer.code >= 400 {
                return Ok(None);
            }
            all.extend(events::of_list(&answer.body));
        }
        Ok(Some(all))
    }
}
