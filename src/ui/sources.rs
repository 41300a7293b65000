//! The code that does a step: its file, the line in it, what the real component calls it, and the file itself
//! to be looked at, as it stood when this program was built.

use serde_json::{Map, Value, json};

/// Where the files are shown.
pub(crate) const ROOT: &str = "/source/";

/// A file of ours, below `src`.
struct SourceFile {
    name: &'static str,
    text: &'static str,
}

/// Where a step is done.
struct DoneAt {
    step: &'static str,
    /// One of [`FILES`].
    file: &'static str,
    /// What stands in that line and in no other one.
    line_with: &'static str,
    /// What does it in Kubernetes.
    real: &'static str,
}

macro_rules! files {
    ($($name:literal,)*) => {
        const FILES: &[SourceFile] =
            &[$(SourceFile { name: $name, text: include_str!(concat!("../", $name)) }),*];
    };
}

files! {
    "apiserver/admission/chain.rs",
    "apiserver/admission/webhook/call.rs",
    "apiserver/aggregator/remote.rs",
    "apiserver/endpoints/handlers/form.rs",
    "apiserver/endpoints/installer.rs",
    "apiserver/endpoints/response/writers.rs",
    "apiserver/endpoints/routes/discovery.rs",
    "apiserver/filters/authentication.rs",
    "apiserver/filters/authorization.rs",
    "apiserver/filters/flow_record.rs",
    "apiserver/filters/impersonation/mod.rs",
    "apiserver/filters/request_info.rs",
    "apiserver/registry/create.rs",
    "apiserver/registry/custom_versions.rs",
    "apiserver/registry/deletion.rs",
    "apiserver/storage/cacher.rs",
    "client_go/event_recorder.rs",
    "client_go/reflector.rs",
    "client_go/shared_informer.rs",
    "client_go/workqueue/queue.rs",
    "cluster/starting.rs",
    "controllers/controller.rs",
    "etcd/writer.rs",
    "kubelet/kuberuntime/container.rs",
    "kubelet/kuberuntime/image_manager.rs",
    "kubelet/pod_sandbox.rs",
    "kubelet/pod_workers.rs",
    "scheduler/framework/runtime.rs",
    "scheduler/plugins/default_binder.rs",
    "scheduler/schedule_one.rs",
}

macro_rules! steps {
    ($($step:ident $file:literal $line_with:literal $real:literal,)*) => {
        const STEPS: &[DoneAt] = &[$(DoneAt {
            step: stringify!($step),
            file: $file,
            line_with: $line_with,
            real: $real,
        }),*];
    };
}

steps! {
    Started "cluster/starting.rs" "fn built(" "controlplane CreateServerChain, InstallAPIs",
    Discovered "apiserver/endpoints/routes/discovery.rs" "fn api_group_list(" "discovery, handlers/openapi",
    Routed "apiserver/endpoints/installer.rs" "async fn handle(scope" "installer.registerResourceHandlers, audit",
    Decoded "apiserver/endpoints/handlers/form.rs" "pub(crate) fn decode(" "handlers.CreateResource: decoder.Decode",
    ReadBack "apiserver/registry/custom_versions.rs" "pub(super) async fn read_back(" "registry.Store: AfterCreate, Decorator",
    PodPrepared "kubelet/pod_sandbox.rs" "fn ensure_sandbox(" "kubelet canAdmitPod, SyncPod",
    RequestReceived "apiserver/filters/request_info.rs" "fn resolve_request_info(" "filters.WithRequestInfo",
    TraceContinued "apiserver/filters/flow_record.rs" "fn asked(" "filters.WithTracing",
    Authenticated "apiserver/filters/authentication.rs" "fn authenticate(" "filters.WithAuthentication",
    NotAuthenticated "apiserver/filters/authentication.rs" "fn authenticate(" "filters.WithAuthentication",
    Impersonated "apiserver/filters/impersonation/mod.rs" "fn impersonate(" "filters.WithImpersonation",
    Authorized "apiserver/filters/authorization.rs" "fn authorize(" "filters.WithAuthorization",
    NotAuthorized "apiserver/filters/authorization.rs" "let mut answer = refuse(" "filters.WithAuthorization",
    Admitted "apiserver/admission/chain.rs" "fn admit(" "admission.MutationInterface",
    WebhookCalled "apiserver/admission/webhook/call.rs" "fn call(" "admission/plugin/webhook",
    Denied "apiserver/admission/chain.rs" "fn passed(" "admission.ValidationInterface",
    Validated "apiserver/registry/create.rs" "fn validate(" "rest.BeforeCreate",
    Stored "etcd/writer.rs" "fn stage_write(" "etcd, an mvcc write",
    Terminating "apiserver/registry/deletion.rs" "fn plan(" "rest.BeforeDelete",
    PassedOn "apiserver/aggregator/remote.rs" "fn proxy(" "kube-aggregator proxyHandler",
    Responded "apiserver/endpoints/response/writers.rs" "fn write_bytes(" "handlers/responsewriters",
    DryRun "apiserver/registry/create.rs" "if ctx.dry_run {" "registry.DryRunnableStorage",
    Refused "apiserver/filters/flow_record.rs" "fn outcome(" "responsewriters.ErrorNegotiated",
    WatchDelivered "apiserver/storage/cacher.rs" "fn process(" "storage/cacher dispatchEvents",
    Listed "client_go/reflector.rs" "async fn list(&mut self" "client-go Reflector.list",
    InformerUpdated "client_go/shared_informer.rs" "fn apply(" "client-go SharedIndexInformer.HandleDeltas",
    Enqueued "client_go/workqueue/queue.rs" "fn add_held_back(" "client-go workqueue.Add",
    ReconcileStarted "controllers/controller.rs" "async fn reconcile(&self, key" "syncHandler",
    ReconcileEnded "controllers/controller.rs" "async fn run(&self)" "processNextWorkItem",
    SchedulingAttempt "scheduler/schedule_one.rs" "async fn schedule_one(" "ScheduleOne",
    Filtered "scheduler/framework/runtime.rs" "pub fn run_filter(" "RunFilterPlugins",
    Scored "scheduler/framework/runtime.rs" "pub fn run_score(" "RunScorePlugins",
    Assumed "scheduler/schedule_one.rs" "async fn scheduling_cycle(" "assume",
    Bound "scheduler/plugins/default_binder.rs" "async fn bind(" "DefaultBinder",
    PodWorkerSync "kubelet/pod_workers.rs" "pub fn sync(" "podWorkers",
    SandboxCreated "kubelet/pod_sandbox.rs" ".run_pod_sandbox(" "CRI RunPodSandbox",
    ImagePulled "kubelet/kuberuntime/image_manager.rs" ".pull_image(" "CRI PullImage",
    ContainerCreated "kubelet/kuberuntime/container.rs" ".create_container(" "CRI CreateContainer",
    ContainerStarted "kubelet/kuberuntime/container.rs" ".start_container(" "CRI StartContainer",
    ContainerExited "kubelet/kuberuntime/container.rs" "fn end(" "CRI ContainerStatus, StopContainer",
    SandboxStopped "kubelet/pod_sandbox.rs" ".stop_pod_sandbox(" "CRI StopPodSandbox",
    EventRecorded "client_go/event_recorder.rs" "fn tell(" "client-go EventRecorder",
}

/// By the step's name: the file, the line, what does it in Kubernetes, and where to look at it.
pub(crate) fn as_json() -> String {
    let told = STEPS.iter().filter_map(|done| {
        let line = line_of(find(done.file)?.text, done.line_with)?;
        let DoneAt { step, file, real, .. } = done;
        let link = format!("{ROOT}src/{file}#L{line}");
        let place = json!({"file": format!("src/{file}"), "line": line, "real": real, "link": link});
        Some(((*step).to_owned(), place))
    });
    Value::Object(told.collect::<Map<String, Value>>()).to_string()
}

/// The file that is shown at a path, as HTML: each line is `#L` and its number.
pub(crate) fn page(path: &str) -> Option<String> {
    let name = path.strip_prefix(ROOT)?.strip_prefix("src/")?;
    let lines = find(name)?.text.lines().zip(1..);
    let rows: String =
        lines.map(|(line, at)| format!("<li id=\"L{at}\"><code>{}</code></li>\n", escaped(line))).collect();
    Some(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>src/{name}</title>\n<link rel=\"icon\" href=\"/page/icon.svg\">\n<link rel=\"stylesheet\" \
         href=\"/page/style.css\">\n</head>\n<body>\n<main>\n<h1>src/{name}</h1>\n<ol class=\"source\">\n{rows}\
         </ol>\n</main>\n</body>\n</html>\n"
    ))
}

fn find(name: &str) -> Option<&'static SourceFile> {
    FILES.iter().find(|file| file.name == name)
}

/// Counted from 1.
fn line_of(text: &str, part: &str) -> Option<usize> {
    text.lines().position(|line| line.contains(part)).map(|before| before + 1)
}

fn escaped(line: &str) -> String {
    line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of the variants of `flow::Step`.
    fn steps() -> Vec<&'static str> {
        let text = include_str!("../flow/step.rs");
        let body = text.split_once("pub enum Step {").unwrap().1.split_once("\n}").unwrap().0;
        let lines = body.lines().filter_map(|line| line.strip_prefix("    "));
        let variants = lines.filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()));
        variants.map(|line| line.split([' ', '(', ',']).next().unwrap()).collect()
    }

    #[test]
    fn each_step_leads_to_the_one_line_that_does_it() {
        let named: Vec<&str> = STEPS.iter().map(|done| done.step).collect();
        assert!(named.len() > 30, "{named:?}");
        let mut sorted = (steps(), named.clone());
        sorted.0.sort_unstable();
        sorted.1.sort_unstable();
        assert_eq!(sorted.0, sorted.1);
        for DoneAt { step, file, line_with, .. } in STEPS {
            let text = find(file).unwrap_or_else(|| panic!("{step}: no {file}")).text;
            let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
            let found = code.lines().filter(|line| line.contains(line_with)).count();
            assert_eq!(found, 1, "{step}: {line_with} in {file}");
        }
        let is_used = |file: &&SourceFile| STEPS.iter().any(|done| done.file == file.name);
        assert!(FILES.iter().all(|file| is_used(&file)));
    }

    #[test]
    fn a_link_ends_at_its_line_in_the_page_of_its_file() {
        let told: Value = serde_json::from_str(&as_json()).unwrap();
        assert_eq!(told.as_object().unwrap().len(), STEPS.len());
        let (path, line) = told["Stored"]["link"].as_str().unwrap().split_once('#').unwrap();
        let shown = page(path).unwrap();
        let begin = format!("<li id=\"{line}\"><code>    fn stage_write(&amp;self");
        assert!(shown.contains(&begin), "no {begin} in {shown}");
        assert!(shown.contains("Result&lt;") && !shown.contains("Result<"), "it is text, whatever is in it");
    }

    #[test]
    fn nothing_else_is_shown() {
        for path in ["/source/", "/source/src/", "/source/etcd/writer.rs", "/source/src/../Cargo.toml", "/"] {
            assert!(page(path).is_none(), "{path}");
        }
    }
}
