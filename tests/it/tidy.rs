//! The invariants of the house, held as tests: who may import whom, words that have one home, the reading
//! path, and ratchets on size.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// Which room may import which, beside itself. The longest matching room of a file decides; a room that is
/// named allows everything below it.
const IMPORTS: &[(&str, &[&str])] = &[
    ("clock", &[]),
    ("entropy", &[]),
    ("files", &[]),
    ("apimachinery", &[]),
    ("pki", &["apimachinery", "files"]),
    ("flow", &["clock"]),
    ("apis", &["apimachinery"]),
    ("etcd", &["clock"]),
    ("client_go", &["apimachinery", "apis", "clock", "entropy", "flow"]),
    (
        "apiserver::storage",
        &["apimachinery", "apis", "etcd", "clock", "entropy", "flow", "client_go::reflector"],
    ),
    (
        "apiserver::registry",
        &["apimachinery", "apis", "apiserver::storage", "apiserver::request", "clock", "entropy"],
    ),
    // What an authorizer and a review are: interfaces between rooms that must not know each other.
    ("apiserver::authorizer", &["apimachinery", "apis", "apiserver::request"]),
    ("apiserver::review", &["apimachinery", "apiserver::request"]),
    ("apiserver::followed_file", &["clock"]),
    // Entropy names the volume of a service account's token.
    (
        "apiserver::admission",
        &[
            "apimachinery",
            "apis",
            "apiserver::authorizer",
            // How long plugins, webhooks and policies take.
            "apiserver::metrics",
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
            "apiserver::registry",
            "apiserver::request",
            "apiserver::webhook",
            "clock",
            "entropy",
        ],
    ),
    (
        "apiserver::audit",
        &[
            "apimachinery",
            "apis",
            // What could not be told is counted.
            "apiserver::metrics",
            "apiserver::registry",
            "apiserver::request",
            // Events are sent to a webhook, whose Service the registry knows.
            "apiserver::webhook",
            "clock",
            "entropy",
        ],
    ),
    ("apiserver::authentication", SECURITY),
    ("apiserver::authorization", SECURITY),
    // Reads FlowSchemas and priority levels; a request's turn depends on nothing else.
    (
        "apiserver::flow_control",
        // What it counts has histograms like everybody else's.
        &["apimachinery", "apis", "apiserver::metrics", "apiserver::registry", "apiserver::request", "clock"],
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
            "apiserver::request",
            "clock",
        ],
    ),
    (
        "apiserver::endpoints",
        &[
            "apimachinery",
            "apis",
            "apiserver::admission",
            // Service account tokens are issued, and told of, by who believes them.
            "apiserver::authentication",
            // The order of groups, and who else serves some.
            "apiserver::aggregator",
            "apiserver::registry",
            "apiserver::request",
            "apiserver::review",
            "apiserver::audit",
            // A request for a kind that is not known waits for the definitions of a restarted server.
            "apiserver::crd_handler",
            // How priority levels are just now.
            "apiserver::flow_control",
            "apiserver::metrics",
            // Aggregation proxies through the one client to the outside.
            "apiserver::webhook",
            "clock",
            // Spreads the ends of watches.
            "entropy",
            // `flowz` alone, which the list below says.
            "flow",
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
    ("apiserver", &["apimachinery", "apis", "clock", "entropy", "flow", "pki"]),
    ("controllers", COMPONENT),
    ("scheduler", COMPONENT),
    ("kubelet", COMPONENT),
    ("cluster", &["*"]),
    ("cli", &["*"]),
];

const SECURITY: &[&str] = &[
    "apimachinery",
    "apis",
    "apiserver::authorizer",
    // Files of issuers and of authorizers, which may change.
    "apiserver::followed_file",
    // How a metric is headed.
    "apiserver::metrics",
    "apiserver::registry",
    "apiserver::request",
    "apiserver::review",
    // Token and access reviews by webhook.
    "apiserver::webhook",
    "clock",
    // Draws the ids of service account tokens.
    "entropy",
];
const COMPONENT: &[&str] = &["client_go", "apis", "apimachinery", "clock", "entropy"];

/// The machinery that may mention the flow record; a controller, a plugin, a filter, a strategy never does.
const FLOW_USERS: &[&str] = &[
    "src/lib.rs",
    "src/flow/",
    "src/cluster",
    "src/cli/trace",
    "src/apiserver/mod.rs",
    "src/apiserver/handler_chain.rs",
    "src/apiserver/flow_record.rs",
    "src/apiserver/request.rs",
    "src/apiserver/storage/recorder.rs",
    "src/apiserver/storage/store.rs",
    "src/apiserver/endpoints/flowz.rs",
    "src/apiserver/endpoints/mod.rs",
    "src/apiserver/config.rs",
    "src/client_go/",
    "src/controllers/controller.rs",
    "src/scheduler/schedule_one.rs",
    "src/kubelet/kubelet.rs",
    "src/kubelet/telling.rs",
    "src/kubelet/pod_workers.rs",
];

/// Words with their homes; a file's tests are free.
const WORDS: &[(&str, &str, &[&str])] = &[
    (r"\bsled::", "only the store knows sled", &["src/etcd/sled_log.rs"]),
    (
        r"\b(TcpListener|TcpStream|TlsAcceptor|TlsConnector)\b",
        "only the server knows sockets and TLS, and the command line that asks it",
        &["src/apiserver/server.rs", "src/cli/connection.rs"],
    ),
    (
        r"\b(SystemTime|Instant::now|Utc::now|Local::now|tokio::time)\b",
        "only the clock reads or waits for time",
        &[
            "src/clock.rs",
            "src/apiserver/server.rs",
            "src/apiserver/refusals.rs",
            "src/apiserver/unread_body.rs",
        ],
    ),
    (
        r"\bserde_yaml::(from_|Deserializer)",
        "aliases are counted before YAML is read",
        &["src/apimachinery/yaml/read.rs", "src/apimachinery/decode/yaml.rs"],
    ),
    (r"\b(fastrand|rand)::", "only the entropy draws numbers", &["src/entropy.rs"]),
    (r"\b(thread_local|task_local)!", "many clusters share a process: nothing is ambient", &[]),
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
const LONG_FILES: &[(&str, usize)] = &[("src/client_go/shared_informer.rs", 503)];
/// Functions over [`MAX_FUNCTION_LINES`]: may only shrink.
const LONG_FUNCTIONS: &[(&str, usize)] = &[];
const MAX_FILE_LINES: usize = 500;
const MAX_FUNCTION_LINES: usize = 70;
const MAX_COLUMNS: usize = 110;

#[test]
fn nothing_imports_what_it_may_not() {
    let import = Regex::new(r"crate::([a-z_]+)(?:::([a-z_]+))?").unwrap();
    let mut wrong = Vec::new();
    for source in Source::all() {
        let room = source.room();
        let Some((_, allowed)) = IMPORTS.iter().find(|(name, _)| *name == room) else { continue };
        for (number, line) in source.code() {
            for found in import.captures_iter(line) {
                let inner = found.get(2).map(|inner| format!("::{}", inner.as_str())).unwrap_or_default();
                let target = format!("{}{inner}", &found[1]);
                let is_listed = found[1] == *"flow" && source.may_record_flow();
                if !is_listed && !may(&room, allowed, &target) {
                    wrong.push(format!("{}:{number}: {room} imports {target}", source.path));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "see the table in tests/it/tidy.rs:\n{}", wrong.join("\n"));
}

#[test]
fn words_stay_in_their_homes() {
    let mut wrong = Vec::new();
    for (pattern, why, homes) in WORDS {
        let pattern = Regex::new(pattern).unwrap();
        let strangers = |source: &Source| !homes.iter().any(|home| source.path.starts_with(home));
        for source in Source::all().into_iter().filter(strangers) {
            for (number, line) in source.code().filter(|(_, line)| pattern.is_match(line)) {
                wrong.push(format!("{}:{number}: {why}: {}", source.path, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_machinery_mentions_the_flow_record() {
    let flow = Regex::new(r"\bcrate::flow\b").unwrap();
    let mut wrong = Vec::new();
    for source in Source::all().into_iter().filter(|source| !source.may_record_flow()) {
        let found = source.code().filter(|(_, line)| flow.is_match(line));
        wrong.extend(found.map(|(number, _)| format!("{}:{number}", source.path)));
    }
    assert!(wrong.is_empty(), "these files must not know the flow record:\n{}", wrong.join("\n"));
}

#[test]
fn the_reading_path_leads_from_main_to_the_kubelet() {
    let mut at = "main.rs".to_owned();
    let mut seen: Vec<String> = Vec::new();
    loop {
        assert!(!seen.contains(&at), "the path turns in a circle at {at}: {seen:?}");
        let text = fs::read_to_string(root().join("src").join(&at))
            .unwrap_or_else(|error| panic!("{seen:?} leads to {at}: {error}"));
        seen.push(at);
        match text.lines().nth(1).and_then(|line| line.strip_prefix("//! Next: ")) {
            Some(next) => at = next.trim().trim_start_matches("src/").to_owned(),
            None => break,
        }
    }
    assert_eq!(seen.last().unwrap(), "kubelet/pod_workers.rs", "the path stops too early: {seen:?}");
    let stations = [
        "apiserver/handler_chain.rs",
        "apiserver/registry/store.rs",
        "etcd/kv.rs",
        "scheduler/schedule_one.rs",
    ];
    for station in stations {
        assert!(seen.iter().any(|file| file == station), "{station} is not on the path: {seen:?}");
    }
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let shown: Vec<&str> = readme.split("](src/").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    assert_eq!(shown, seen, "the guided walk in the README is not the reading path");
}

#[test]
fn files_say_what_they_are_and_stay_small() {
    let mut wrong = Vec::new();
    for source in Source::all() {
        if !source.text.starts_with("//! ") {
            wrong.push(format!("{}: the first line does not say what it is", source.path));
        }
        let lines = source.text.lines().count();
        let bound = ratchet(LONG_FILES, &source.path).unwrap_or(MAX_FILE_LINES);
        if lines > bound {
            wrong.push(format!("{}: {lines} lines, at most {bound}", source.path));
        }
        // A text may be too long to break; everything else has no excuse.
        let is_text = |line: &str| line.contains('"') || line.ends_with('\\');
        let is_wide = |line: &str| line.chars().count() > MAX_COLUMNS && !is_text(line);
        let wide = source.text.lines().enumerate().filter(|(_, line)| is_wide(line));
        wrong.extend(wide.map(|(at, _)| format!("{}:{}: over {MAX_COLUMNS} columns", source.path, at + 1)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn functions_stay_small() {
    let head = Regex::new(r"^(\s*)(?:pub(?:\([a-z]+\))? )?(?:const )?(?:async )?fn (\w+)").unwrap();
    let mut wrong = Vec::new();
    for source in Source::all() {
        let lines: Vec<&str> = source.text.lines().collect();
        for (start, line) in lines.iter().enumerate() {
            let Some(found) = head.captures(line) else { continue };
            let close = format!("{}}}", &found[1]);
            let Some(length) = lines[start..].iter().position(|line| *line == close) else { continue };
            let name = format!("{}:{}", source.path, &found[2]);
            let bound = ratchet(LONG_FUNCTIONS, &name).unwrap_or(MAX_FUNCTION_LINES);
            if length + 1 > bound {
                wrong.push(format!("{name}: {} lines, at most {bound}", length + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_ratchets_name_only_files_that_are_there() {
    let paths: Vec<String> = Source::all().into_iter().map(|source| source.path).collect();
    for (name, _) in LONG_FILES.iter().chain(LONG_FUNCTIONS) {
        let path = name.split(':').next().unwrap();
        assert!(paths.iter().any(|known| known == path), "{name} is gone: take it off the list");
    }
}

fn ratchet(list: &[(&str, usize)], name: &str) -> Option<usize> {
    list.iter().find(|(known, _)| *known == name).map(|(_, bound)| *bound)
}

fn may(room: &str, allowed: &[&str], target: &str) -> bool {
    let below = |outer: &str| target == outer || target.starts_with(&format!("{outer}::"));
    below(room) || allowed.iter().any(|name| *name == "*" || below(name))
}

struct Source {
    /// From the repository's root.
    path: String,
    text: String,
}

impl Source {
    fn all() -> Vec<Source> {
        let mut files = Vec::new();
        collect(&root().join("src"), &mut files);
        assert!(files.len() > 20, "the sources are not where they should be");
        files.sort();
        let read = |path: &PathBuf| Source {
            path: path.strip_prefix(root()).unwrap().to_string_lossy().into_owned(),
            text: fs::read_to_string(path).unwrap(),
        };
        files.iter().map(read).collect()
    }

    /// The longest room in the table that the file lies in.
    fn room(&self) -> String {
        let inside = self.path.trim_start_matches("src/").trim_end_matches(".rs").replace('/', "::");
        let lies_in = |room: &&str| inside == **room || inside.starts_with(&format!("{room}::"));
        let rooms = IMPORTS.iter().map(|(room, _)| *room).filter(lies_in);
        rooms.max_by_key(|room| room.len()).unwrap_or_default().to_owned()
    }

    fn may_record_flow(&self) -> bool {
        FLOW_USERS.iter().any(|user| self.path.starts_with(user))
    }

    /// Numbered lines without comments, up to the file's tests.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate().map(|(at, line)| (at + 1, line));
        let is_test = self.path.ends_with("/tests.rs") || self.path.contains("/tests/");
        let until_tests = lines.take_while(move |(_, line)| !is_test && *line != "#[cfg(test)]");
        until_tests.filter(|(_, line)| !line.trim_start().starts_with("//"))
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
