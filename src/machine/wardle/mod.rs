//! sample-apiserver: an aggregated server with a store of its own (`k8s.io/sample-apiserver`), as its image
//! of the end-to-end tests runs it. Who asks is whom the headers of the aggregator name, if that shows its
//! certificate.

mod answers;
mod asking_who;
mod discovery;
mod selecting;
mod store;
mod versions;
mod writing;

use serde_json::{Value, json};

use crate::agnhost::asking::{AskFirst, Backing};
use crate::requests::{WebAnswer, WebRequest, parameter};
use answers::{GROUP, said, status};
pub(crate) use store::WardleStore;
use store::{KeptSample, WardleKey};
use versions::{WardleKind, of_version};

/// So long a watch is held open in which nothing happens: then it ends, and is begun again.
const WATCH_PAUSE: std::time::Duration = std::time::Duration::from_secs(2);

/// What is asked of it.
struct WardleQuestion<'a> {
    request: &'a WebRequest<'a>,
    query: &'a str,
    version: &'a str,
    kind: WardleKind,
    namespace: &'a str,
    name: &'a str,
}

/// Who asks is looked at first.
pub(crate) fn serve(
    request: &WebRequest<'_>,
    store: &mut WardleStore,
    backing: Backing<'_>,
) -> Result<WebAnswer, Box<AskFirst>> {
    let is_health = matches!(request.target.split('?').next(), Some("/healthz" | "/livez" | "/readyz"));
    let refusal = if is_health { None } else { asking_who::refusal(request, backing)? };
    Ok(refusal.unwrap_or_else(|| answer(request, store)))
}

/// What it answers to whoever may ask.
fn answer(request: &WebRequest<'_>, store: &mut WardleStore) -> WebAnswer {
    let (path, query) = request.target.split_once('?').unwrap_or((request.target, ""));
    if matches!(path, "/healthz" | "/livez" | "/readyz") {
        return WebAnswer::text(200, "ok");
    }
    let words: Vec<&str> = path.split('/').skip(1).filter(|word| !word.is_empty()).collect();
    let ["apis", GROUP, version, ref rest @ ..] = *words.as_slice() else { return discovery::answer(&words) };
    let (namespace, rest) = match rest {
        ["namespaces", namespace, rest @ ..] => (*namespace, rest),
        rest => ("", rest),
    };
    let (resource, name) = match rest {
        [resource] => (*resource, ""),
        [resource, name] => (*resource, *name),
        _ => return discovery::answer(&words),
    };
    let Some(kind) = WardleKind::of(version, resource) else { return WebAnswer::not_found() };
    // Of all namespaces objects are only listed.
    let is_list = name.is_empty() && request.method == "GET";
    let fits = kind.is_namespaced != namespace.is_empty() || kind.is_namespaced && is_list;
    if !fits {
        return WebAnswer::not_found();
    }
    WardleQuestion { request, query, version, kind, namespace, name }.answer(store)
}

impl WardleQuestion<'_> {
    fn answer(&self, store: &mut WardleStore) -> WebAnswer {
        match (self.request.method, self.name.is_empty()) {
            ("GET", true) if self.is_set("watch") => self.watch(store),
            ("GET", true) => self.list(store),
            ("GET", false) => match store.get(&self.key(self.name)) {
                Some(kept) => self.object(200, kept),
                None => self.missing(),
            },
            ("POST", true) => self.create(store),
            ("PUT", false) => self.update(store),
            ("PATCH", false) => self.patch(store),
            ("DELETE", false) => self.delete(store),
            ("DELETE", true) => self.delete_all(store),
            _ => status(
                405,
                "MethodNotAllowed",
                "the server does not allow this method on the requested resource",
                json!({}),
            ),
        }
    }

    fn is_set(&self, name: &str) -> bool {
        matches!(parameter(self.query, name).as_deref(), Some("1" | "true"))
    }

    fn key(&self, name: &str) -> WardleKey {
        (self.kind.plural, self.namespace.to_owned(), name.to_owned())
    }

    /// As the version has it that is asked for.
    fn shown(&self, kept: &KeptSample) -> Value {
        let whole = of_version(self.version, self.kind, kept);
        if !self.wants_metadata() {
            return whole;
        }
        json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": whole["metadata"]})
    }

    /// Clients that look at metadata alone say so first.
    fn wants_metadata(&self) -> bool {
        let accepted = self.request.header("accept").unwrap_or_default();
        accepted.contains("as=PartialObjectMetadata")
    }

    fn object(&self, code: u16, kept: &KeptSample) -> WebAnswer {
        said(code, &self.shown(kept))
    }

    fn list(&self, store: &WardleStore) -> WebAnswer {
        let items: Vec<Value> = self.selected(store).iter().map(|kept| self.shown(kept)).collect();
        let metadata = json!({"resourceVersion": store.revision().to_string()});
        let (api_version, kind) = if self.wants_metadata() {
            ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadataList".to_owned())
        } else {
            (format!("{GROUP}/{}", self.version), format!("{}List", self.kind.name))
        };
        said(200, &json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "items": items}))
    }

    fn selected<'s>(&self, store: &'s WardleStore) -> Vec<&'s KeptSample> {
        let all = store.all(self.kind.plural, self.namespace);
        all.filter(|kept| selecting::is_selected(&kept.object, self.query)).collect()
    }

    /// What has happened since the revision that is named. A watch ends with that; what happens later the
    /// next one says, which the client begins at once.
    fn watch(&self, store: &WardleStore) -> WebAnswer {
        let since = parameter(self.query, "resourceVersion").and_then(|text| text.parse::<u64>().ok());
        let events: Vec<(&str, Value)> = match since.filter(|since| *since > 0) {
            None => self.selected(store).iter().map(|kept| ("ADDED", self.shown(kept))).collect(),
            Some(since) => match store.since(since) {
                None => vec![("ERROR", expired(since))],
                Some(events) => events
                    .filter(|event| event.key.0 == self.kind.plural)
                    .filter(|event| self.namespace.is_empty() || event.key.1 == self.namespace)
                    .filter(|event| selecting::is_selected(&event.kept.object, self.query))
                    .map(|event| (event.what, self.shown(&event.kept)))
                    .collect(),
            },
        };
        let line =
            |(what, object): &(&str, Value)| json!({"type": what, "object": object}).to_string() + "\n";
        let delay = if events.is_empty() { WATCH_PAUSE } else { std::time::Duration::ZERO };
        let lines: String = events.iter().map(line).collect();
        WebAnswer { delay, ..WebAnswer::typed(200, "application/json", lines) }
    }

    fn missing(&self) -> WebAnswer {
        let WardleQuestion { kind, name, .. } = self;
        let why = format!("{}.{GROUP} {name:?} not found", kind.plural);
        status(404, "NotFound", &why, json!({"name": name, "group": GROUP, "kind": kind.plural}))
    }
}

fn expired(since: u64) -> Value {
    let message = format!("too old resource version: {since}");
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": "Expired", "code": 410})
}

#[cfg(test)]
mod tests;
