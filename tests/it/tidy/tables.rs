//! The tables of the house: who may import whom, and what may stand where. Each may only get tighter.

/// Which room of the apiserver may import which, beside itself: among crates Cargo refuses what their manifests do
/// not name. The longest matching room of a file decides; a room that is named allows everything below it.
pub(crate) const IMPORTS: &[(&str, &[&str])] = &[
    (
        "apiserver::storage",
        &[
            // Flags, and what they are by default.
            "component_base",
            "apimachinery",
            "apis",
            "etcd",
            "etcd_client",
            "clock",
            "entropy",
            "flow",
            "client_go::reflector",
        ],
    ),
    (
        "apiserver::registry",
        &[
            "component_base",
            "apimachinery",
            "apis",
            "apiserver::storage",
            "apiserver::request",
            // What of a claim's status somebody may write.
            "apiserver::authorizer",
            "clock",
            "entropy",
        ],
    ),
    // What an authorizer is: the interface between rooms that must not know each other.
    ("apiserver::authorizer", &["apimachinery", "apis", "apiserver::request"]),
    // Hands on what is not for the API.
    ("apiserver::beside", &["apimachinery", "apiserver::authorizer", "apiserver::request"]),
    ("apiserver::dynamic_file_content", &["clock"]),
    // Entropy names the volume of a service account's token.
    (
        "apiserver::admission",
        &[
            "component_base",
            "apimachinery",
            "apis",
            "cel",
            "apiserver::authorizer",
            // How long plugins, webhooks and policies take.
            "apiserver::registry",
            "apiserver::request",
            // Webhooks are asked through the one client to the outside.
            "apiserver::webhook",
            "clock",
            "entropy",
        ],
    ),
    // Services are looked up in the registry; entropy chooses among their endpoints.
    ("apiserver::webhook", &["apimachinery", "apis", "apiserver::registry", "clock", "entropy"]),
    (
        "apiserver::aggregator",
        &[
            "apimachinery",
            "apis",
            "component_base::metrics",
            "openapi",
            "apiserver::registry",
            "apiserver::request",
            "apiserver::webhook",
            "clock",
            // What is told of requests that are passed on.
            "flow",
        ],
    ),
    (
        "apiserver::audit",
        &[
            "component_base",
            "apimachinery",
            "apiserver::audit_context",
            // What could not be told is counted.
            "apiserver::registry",
            "apiserver::request",
            // Events are sent to a webhook, whose Service the registry knows.
            "apiserver::webhook",
            "clock",
            "entropy",
        ],
    ),
    (
        "apiserver::authentication",
        &[
            "component_base",
            "apimachinery",
            "apis",
            "cel",
            // Files of issuers and of authorizers, which may change.
            "apiserver::dynamic_file_content",
            // How a metric is headed.
            "apiserver::registry",
            "apiserver::request",
            // Token and access reviews by webhook.
            "apiserver::webhook",
            "clock",
            // Draws the ids of service account tokens.
            "entropy",
        ],
    ),
    (
        "apiserver::authorization",
        &[
            "component_base",
            "apimachinery",
            "apis",
            "cel",
            "apiserver::authorizer",
            // Files of issuers and of authorizers, which may change.
            "apiserver::dynamic_file_content",
            // How a metric is headed.
            "apiserver::registry",
            "apiserver::request",
            // Token and access reviews by webhook.
            "apiserver::webhook",
            "clock",
        ],
    ),
    // Reads FlowSchemas and priority levels; a request's turn depends on nothing else.
    (
        "apiserver::flow_control",
        // What it counts has histograms like everybody else's.
        &["component_base", "apimachinery", "apis", "apiserver::registry", "apiserver::request", "clock"],
    ),
    (
        "apiserver::filters",
        &[
            "apimachinery",
            "apiserver::authentication",
            "apiserver::authorization",
            "apiserver::authorizer",
            "apiserver::audit",
            // Who decides whose turn it is.
            "apiserver::flow_control",
            "apiserver::metrics",
            "component_base",
            "apiserver::request",
            "apiserver::shutdown",
            "apiserver::traffic",
            "clock",
            // Draws the id of an audited request.
            "entropy",
        ],
    ),
    (
        "apiserver::endpoints",
        &[
            "apimachinery",
            "apis",
            "openapi",
            // Streams into pods, and requests to them.
            "network",
            "spdy",
            // Which pod stands behind a Service.
            "apiserver::webhook",
            "apiserver::admission",
            "apiserver::beside",
            // Who is told which values of the record.
            "apiserver::authorizer",
            // Service account tokens are issued, and told of, by who believes them.
            "apiserver::authentication",
            // The order of groups, and who else serves some.
            "apiserver::aggregator",
            "apiserver::registry",
            "apiserver::request",
            "apiserver::audit_context",
            // A request for a kind that is not known waits for the definitions of a restarted server.
            "apiserver::crd_handler",
            // How priority levels are just now.
            "apiserver::flow_control",
            // Who is asked for logs.
            "apiserver::kubelet_client",
            "apiserver::metrics",
            "component_base",
            "clock",
            // Spreads the ends of watches.
            "entropy",
            // `flowz` alone, which the list below says.
            "flow",
        ],
    ),
    // Writes what it is given, and knows neither who asks nor what serves.
    (
        "apiserver::endpoints::response",
        // Of the network the frames of websockets; what a watch sends is counted where it is written.
        &[
            "apimachinery",
            "apis",
            "apiserver::endpoints::query",
            "apiserver::metrics",
            "apiserver::request",
            "clock",
            "network",
        ],
    ),
    (
        "apiserver::crd_handler",
        // Entropy draws the uids of conversion reviews, which go to webhooks.
        &[
            "apimachinery",
            "apis",
            "apiserver::registry",
            "apiserver::request",
            "apiserver::webhook",
            "clock",
            "entropy",
        ],
    ),
    ("apiserver::audit_context", &["apimachinery"]),
    (
        "apiserver::config",
        &[
            "apiserver::options",
            "apiserver::post_start_hooks",
            "apimachinery",
            "apis",
            "apiserver::admission",
            "apiserver::aggregator",
            "apiserver::audit",
            "apiserver::authentication",
            "apiserver::authorization",
            "apiserver::beside",
            "apiserver::endpoints",
            // What browsers are told.
            "apiserver::filters",
            "apiserver::flow_control",
            "apiserver::kubelet_client",
            "apiserver::registry",
            "apiserver::shutdown",
            "apiserver::traffic",
            // Where pods are reached.
            "apiserver::webhook",
            "clock",
            "entropy",
        ],
    ),
    ("apiserver::post_start_hooks", &["apiserver::crd_handler", "apiserver::endpoints"]),
    (
        "apiserver::handler_chain",
        &[
            "apimachinery",
            "apis",
            "apiserver::admission",
            "apiserver::aggregator",
            "apiserver::audit",
            "apiserver::authentication",
            "apiserver::authorization",
            "apiserver::authorizer",
            "apiserver::config",
            "apiserver::crd_handler",
            "apiserver::endpoints",
            "apiserver::filters",
            "apiserver::flow_control",
            "apiserver::metrics",
            "apiserver::post_start_hooks",
            "component_base",
            "apiserver::request",
            "apiserver::shutdown",
            "apiserver::traffic",
            "apiserver::webhook",
        ],
    ),
    ("apiserver::kubelet_client", &["apimachinery"]),
    ("apiserver::kubelet_options", &[]),
    ("apiserver::metrics", &["apimachinery", "apiserver::request", "clock", "component_base"]),
    // The flags of all rooms.
    (
        "apiserver::options",
        &[
            "apimachinery",
            "apis",
            "apiserver::admission",
            "apiserver::aggregator",
            "apiserver::audit",
            "apiserver::authentication",
            "apiserver::authorization",
            // What of it is shown for debugging.
            "apiserver::endpoints",
            "apiserver::filters",
            "apiserver::flow_control",
            "apiserver::kubelet_options",
            "apiserver::registry",
            "apiserver::server",
            "apiserver::shutdown",
            "apiserver::storage",
            "component_base",
        ],
    ),
    // Who asks for what just now, in real time.
    ("apiserver::traffic", &["clock"]),
    ("apiserver::request", &["apimachinery", "apiserver::audit_context", "clock"]),
    // Sends the bodies of lists and watches as they are made.
    ("apiserver::server", &["apimachinery", "apiserver::endpoints::response", "clock", "network", "pki"]),
    ("apiserver", &[]),
];

/// The machinery that may mention the flow record; a controller, a plugin, a strategy never does, nor a filter
/// but the one that keeps it.
pub(crate) const FLOW_USERS: &[&str] = &[
    "src/lib.rs",
    "src/cluster",
    "src/cli/trace",
    "src/cli/watch",
    "src/cli/terminal.rs",
    "src/witness/why/record.rs",
    "src/witness/why/told.rs",
    "src/witness/why/traffic.rs",
    "src/apiserver/filters/exchange.rs",
    "src/apiserver/filters/flow_asked.rs",
    "src/apiserver/filters/flow_record.rs",
    "src/apiserver/filters/stepping.rs",
    "src/apiserver/aggregator/passing_on.rs",
    "src/apiserver/request/context.rs",
    "src/apiserver/request/passed_on.rs",
    "src/apiserver/request/seen_body.rs",
    "src/apiserver/request/field_changes.rs",
    "src/apiserver/request/told_values.rs",
    "src/apiserver/storage/recorder.rs",
    "src/apiserver/storage/store.rs",
    "src/apiserver/endpoints/handlers/request_scope.rs",
    "src/apiserver/endpoints/routes/flowz.rs",
    "src/apiserver/endpoints/mod.rs",
    "src/apiserver/config.rs",
    "src/client_go/",
    "src/controllers/controller.rs",
    "src/scheduler/schedule_one.rs",
    "src/scheduler/schedule_pod.rs",
    "src/scheduler/told.rs",
    "src/kubelet/kubelet.rs",
    "src/kubelet/events.rs",
];

/// Words with their homes; a file's tests are free.
pub(crate) const WORDS: &[(&str, &str, &[&str])] = &[
    (r"\bsled::", "only the store knows sled", &["src/etcd/sled_log.rs"]),
    (
        r"\b(TcpListener|TcpStream|TlsAcceptor|TlsConnector)\b",
        "only the server knows sockets and TLS, and the command line that asks it",
        // And what a pod has behind it, and a Service before it, when the user says so (`--forward-pods`,
        // `--publish`).
        &[
            "src/apiserver/server.rs",
            "src/cli/connection.rs",
            // To an etcd that is not ours.
            "src/etcd_client/grpc/connection.rs",
            "src/cluster/publishing.rs",
            "src/kubelet/container_runtime/declared/forward.rs",
            // Over connections in memory: servers of pods that speak TLS, and who asks them.
            "src/network/tls.rs",
        ],
    ),
    (
        r"\b(SystemTime|Instant::now|Utc::now|Local::now|tokio::time)\b",
        "only the clock reads or waits for time",
        &[
            "src/clock/lib.rs",
            "src/clock/limits.rs",
            "src/clock/pauses.rs",
            "src/clock/profile.rs",
            "src/clock/waits.rs",
            "src/apiserver/server.rs",
            "src/apiserver/server/bad_requests.rs",
            "src/apiserver/server/request_body.rs",
        ],
    ),
    (
        r"\bserde_yaml::(from_|Deserializer)",
        "aliases are counted before YAML is read",
        // What a simulated program reads has none at all.
        &["src/apimachinery/yaml/read.rs", "src/machine/programs/net/kubectl/apply.rs"],
    ),
    (
        r"\bpoisoned\b|\bPoisonError\b|\bstd::sync::(\{.*)?\b(Mutex|RwLock)\b",
        "a lock does not fail: `sync::Mutex` and `sync::RwLock` say what a panic means for what they guard",
        &["src/sync/lib.rs"],
    ),
    (r"\b(fastrand|rand)::", "only the entropy draws numbers", &["src/entropy/lib.rs"]),
    (
        r"\b(thread_local|task_local)!",
        "many clusters share a process: nothing is ambient",
        // What is polled on a thread just now, while somebody looks; nothing goes by it.
        &["src/clock/profile.rs"],
    ),
    (r"\bstatic\s+mut\b", "many clusters share a process: no state in statics", &[]),
    (
        r"\bstatic\s+\w+\s*:[^=]*\b(Mutex|RwLock|Atomic\w+|OnceLock)\b",
        "many clusters share a process: no state in statics",
        &[],
    ),
    (r"\b(todo|unimplemented)!", "a stub is not done", &[]),
    (r"\bunsafe\s*(\{|fn|impl)", "nothing here needs it", &[]),
    (r"/work/|/root/", "no path of any machine", &[]),
];

/// Files over [`MAX_FILE_LINES`]: may only shrink.
pub(crate) const LONG_FILES: &[(&str, usize)] = &[];
/// Functions over [`MAX_FUNCTION_LINES`]: may only shrink.
pub(crate) const LONG_FUNCTIONS: &[(&str, usize)] = &[];
pub(crate) const MAX_FILE_LINES: usize = 500;
pub(crate) const MAX_FUNCTION_LINES: usize = 70;
pub(crate) const MAX_COLUMNS: usize = 110;

/// Circles of files that import each other, by room: how many, and of how many files. May only shrink, to 0.
pub(crate) const CIRCLES: &[(&str, usize, usize)] = &[("apimachinery", 3, 9), ("apis", 1, 3)];

/// Ways of writing that tire a reader, and how often they stand: may only become fewer.
pub(crate) const IDIOMS: &[(&str, &str, usize)] = &[
    (r"^\s*//[/!] The same\b", "a doc leans on its neighbour, and breaks when something comes between", 0),
    (r"^\s*(?:[^/\s].*)?\n\s*/// \w+\.$", "a doc of one word says nothing that its item does not", 0),
    (r"^\s*true => ", "`if` is the word for bools", 0),
    (
        r#"^\s*let \((?:mut )?\w+(?:, (?:mut )?\w+)+\) = \((?:[\w.]+|"[^"]*"|\w+(?:::\w+)*\(\)|vec!\[\])(?:, (?:[\w.]+|"[^"]*"|\w+(?:::\w+)*\(\)|vec!\[\]))+\);$"#,
        "one statement a line: a tuple of plain values only saves lines",
        0,
    ),
    (
        r"\bpub(?:\([a-z ]+\))? (?:async )?fn [^;{]*-> [^;{]*Result<[^;{]*, String>",
        "an error between rooms is a type of its own",
        2,
    ),
];
/// How many names stand for several types.
pub(crate) const MAX_REPEATED_TYPE_NAMES: usize = 3;

/// Where field paths are written as texts.
pub(crate) const FIELD_ROOMS: &[&str] = &["src/apis/", "src/apiserver/admission/", "src/controllers/"];
/// Names in such texts that no schema has: of resources and quotas, of keys in ConfigMaps, of CEL's variables, of a
/// kind that is history, and where upstream's own errors and selectors name a field as nobody writes it.
pub(crate) const NOT_FIELDS: &[&str] = &[
    "attachedRequired",
    "authorizer",
    "boundVolumeSnapshotContentName",
    "ca",
    "cpu",
    "crt",
    "initializers",
    "kubernetes",
    "loadbalancers",
    "memory",
    "nodeports",
    "patch",
    "persistentvolumesource",
    "requestResource",
    "response",
    "result",
    "services",
    "successful",
    "webhookClientConfig",
];
