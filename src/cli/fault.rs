//! `kubarium fault add`, `list`, `rm`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use faults::{Fault as Rule, FaultAnswer, FaultCut, NetworkFault, Span, StaleReads, WatchEnd, WatchFault};
use http::Method;
use serde_json::{Value, json};

use super::asked::{WhichCluster, encoded};
use super::{Failure, say};
use apimachinery::yaml;

/// Make requests, watches and components go wrong on purpose.
#[derive(Subcommand)]
pub enum FaultCommand {
    /// Add a fault; the first that hits a request decides.
    Add(Box<AddFault>),
    /// List the faults and what they have hit.
    #[command(alias = "ls")]
    List {
        #[command(flatten)]
        which: WhichCluster,
        /// How: a table, or JSON.
        #[arg(short, long, default_value = "table", value_parser = ["table", "json"])]
        output: String,
    },
    /// Remove faults; what they stopped starts again.
    #[command(alias = "remove")]
    Rm {
        #[command(flatten)]
        which: WhichCluster,
        /// Their names.
        #[arg(required_unless_present = "all", value_name = "FAULT")]
        names: Vec<String>,
        /// All of them.
        #[arg(long, conflicts_with = "names")]
        all: bool,
    },
}

/// What a file says, and nobody beside it; which cluster is meant may be said.
const IN_FILE: [&str; 28] = [
    "called",
    "user",
    "user_agent",
    "verb",
    "resource",
    "namespace",
    "object",
    "probability",
    "nth",
    "count",
    "after",
    "lasting",
    "latency",
    "answer",
    "cut",
    "cut_after",
    "close_watch",
    "expire_watch",
    "after_events",
    "duplicate_events",
    "delay_events",
    "stale",
    "stale_by",
    "silent_webhook",
    "lost_leases",
    "partition",
    "stop",
    "between",
];

/// What to add. Patterns may have `*`; each may be given several times.
#[derive(Args)]
pub struct AddFault {
    #[command(flatten)]
    which: WhichCluster,
    /// A file that holds one fault or several as YAML, as `kubarium fault list -o json` shows them.
    #[arg(short, long, value_name = "FILE", conflicts_with_all = IN_FILE)]
    filename: Option<PathBuf>,
    /// What it is called.
    #[arg(value_name = "FAULT", default_value = "")]
    called: String,
    /// Requests of this user; else of all but the cluster's own components.
    #[arg(long)]
    user: Vec<String>,
    /// Of this program: kubectl/*.
    #[arg(long)]
    user_agent: Vec<String>,
    /// With this verb: get, list, watch, create, ..., read, write.
    #[arg(long)]
    verb: Vec<String>,
    /// For this resource: pods, pods/status, deployments.apps.
    #[arg(long)]
    resource: Vec<String>,
    /// In this namespace.
    #[arg(short, long)]
    namespace: Vec<String>,
    /// For objects of this name.
    #[arg(long)]
    object: Vec<String>,
    /// Hits each with this probability: 0.3.
    #[arg(long)]
    probability: Option<f64>,
    /// Hits this one alone, counted from 1.
    #[arg(long)]
    nth: Option<u64>,
    /// Hits at most so many.
    #[arg(long)]
    count: Option<u64>,
    /// Begins so long from now: 30s.
    #[arg(long)]
    after: Option<Span>,
    /// Lasts for so long: 1m.
    #[arg(long = "for", value_name = "DURATION")]
    lasting: Option<Span>,
    #[command(flatten)]
    effect: EffectFlags,
}

/// What goes wrong.
#[derive(Args)]
#[group(id = "effect", required = false, multiple = true)]
struct EffectFlags {
    /// Requests wait for so long: 2s.
    #[arg(long, value_name = "DURATION")]
    latency: Option<Span>,
    /// Requests are answered with this code: 409, 429, 500, 503.
    #[arg(long, value_name = "CODE")]
    answer: Option<u16>,
    /// With --answer: when to come again, in seconds.
    #[arg(long, value_name = "SECONDS", requires = "answer")]
    retry_after: Option<u32>,
    /// With --answer: requests are carried out first.
    #[arg(long, requires = "answer")]
    executed: bool,
    /// Requests are carried out, and the connection ends before the answer.
    #[arg(long)]
    cut: bool,
    /// The connection ends behind so many bytes of the answer.
    #[arg(long, value_name = "BYTES", conflicts_with = "cut")]
    cut_after: Option<u64>,
    /// Watches end; those that are open, too, oldest first.
    #[arg(long)]
    close_watch: bool,
    /// Watches end with 410; those that are open end, and may not begin again where they were.
    #[arg(long, conflicts_with = "close_watch")]
    expire_watch: bool,
    /// With --close-watch or --expire-watch: behind so many events, of watches that begin from now on.
    #[arg(long, value_name = "EVENTS")]
    after_events: Option<u64>,
    /// Watches say things twice.
    #[arg(long)]
    duplicate_events: bool,
    /// Watches are late by so much.
    #[arg(long, value_name = "DURATION")]
    delay_events: Option<Span>,
    /// Gets and lists that take any state get the present one for ever.
    #[arg(long)]
    stale: bool,
    /// Gets and lists that take any state get one of so many revisions ago.
    #[arg(long, value_name = "REVISIONS", conflicts_with = "stale")]
    stale_by: Option<u64>,
    /// This admission webhook does not answer in time.
    #[arg(long, value_name = "WEBHOOK")]
    silent_webhook: Vec<String>,
    /// Leases cannot be renewed.
    #[arg(long, conflicts_with_all = ["verb", "resource", "answer"])]
    lost_leases: bool,
    /// Nothing of theirs arrives.
    #[arg(long)]
    partition: bool,
    /// This component stands still: kube-scheduler, kubelet/node-1.
    #[arg(long, value_name = "COMPONENT")]
    stop: Option<String>,
    #[command(flatten)]
    network: NetworkFlags,
}

/// What goes wrong between pods.
#[derive(Args)]
struct NetworkFlags {
    /// Between pods, not requests: with --latency, --loss, --refuse or --partition. A side is SELECTOR,
    /// NAMESPACE/SELECTOR, an address range, or '*'.
    #[arg(long, value_name = "SIDE")]
    between: Option<String>,
    /// With --between: the other side; else everybody.
    #[arg(long, value_name = "SIDE", requires = "between")]
    and: Option<String>,
    /// With --between: what part is lost and sent again: 0.1.
    #[arg(long, value_name = "PART", requires = "between")]
    loss: Option<f64>,
    /// With --between: connections are refused.
    #[arg(long, requires = "between")]
    refuse: bool,
}

impl FaultCommand {
    /// Asks for it.
    pub fn run(self) -> Result<(), Failure> {
        match self {
            FaultCommand::Add(add) => add.run(),
            FaultCommand::List { which, output } => list(&which, &output),
            FaultCommand::Rm { which, names, all: false } => names.iter().try_for_each(|name| {
                let path = format!("/faults/{}", encoded(name));
                let removed: Value = which.ask(Method::DELETE, &path, &Value::Null)?;
                say(format!("removed {}, which has hit {}", text(&removed["name"]), removed["hits"]));
                Ok(())
            }),
            FaultCommand::Rm { which, .. } => {
                which.ask::<Value>(Method::DELETE, "/faults", &Value::Null)?;
                say("removed all faults");
                Ok(())
            }
        }
    }
}

impl AddFault {
    fn run(self) -> Result<(), Failure> {
        let faults = match &self.filename {
            Some(file) => read(file)?,
            None => vec![serde_json::to_value(self.rule()).map_err(|error| Failure(error.to_string()))?],
        };
        for fault in faults {
            let added: Value = self.which.ask(Method::POST, "/faults", &fault)?;
            let warning = added["warning"].as_str().map(|warning| format!("; {warning}")).unwrap_or_default();
            say(format!("added {}{warning}", text(&added["name"])));
        }
        Ok(())
    }

    fn rule(&self) -> Rule {
        let mut rule = Rule {
            name: self.called.clone(),
            users: self.user.clone(),
            user_agents: self.user_agent.clone(),
            verbs: self.verb.clone(),
            resources: self.resource.clone(),
            namespaces: self.namespace.clone(),
            names: self.object.clone(),
            probability: self.probability,
            nth: self.nth,
            count: self.count,
            after: self.after,
            lasting: self.lasting,
            ..Rule::default()
        };
        self.effect.write(&mut rule);
        rule
    }
}

impl EffectFlags {
    fn write(&self, rule: &mut Rule) {
        rule.latency = self.latency;
        let EffectFlags { retry_after, executed, .. } = *self;
        rule.answer =
            self.answer.map(|code| FaultAnswer { code, retry_after, executed, ..FaultAnswer::default() });
        if self.cut || self.cut_after.is_some() {
            rule.cut = Some(FaultCut { after_bytes: self.cut_after });
        }
        rule.watch = self.watch();
        if self.stale || self.stale_by.is_some() {
            rule.stale = Some(StaleReads { revisions: self.stale_by });
        }
        rule.silent_webhooks = self.silent_webhook.clone();
        rule.partition = self.partition;
        rule.stop = self.stop.clone();
        if let Some(between) = &self.network.between {
            rule.network = Some(NetworkFault {
                between: between.clone(),
                and: self.network.and.clone().unwrap_or_default(),
                latency: rule.latency.take(),
                loss: self.network.loss,
                refuse: self.network.refuse,
                partition: std::mem::take(&mut rule.partition),
            });
        }
        if self.lost_leases {
            let leases = Rule::lost_leases("");
            (rule.answer, rule.resources, rule.verbs) = (leases.answer, leases.resources, leases.verbs);
        }
    }

    fn watch(&self) -> Option<WatchFault> {
        let watch = WatchFault {
            end: match (self.close_watch, self.expire_watch) {
                (_, true) => Some(WatchEnd::Expire),
                (true, false) => Some(WatchEnd::Close),
                (false, false) => None,
            },
            after_events: self.after_events.unwrap_or(0),
            duplicate: self.duplicate_events,
            delay: self.delay_events,
        };
        Some(watch).filter(|watch| *watch != WatchFault::default())
    }
}

/// The faults of a file: documents of YAML.
fn read(file: &std::path::Path) -> Result<Vec<Value>, Failure> {
    let shown = file.display();
    let text =
        std::fs::read_to_string(file).map_err(|error| Failure::new(format!("cannot read {shown}"), error))?;
    let documents =
        yaml::documents(&text).map_err(|error| Failure::new(format!("{shown} is not YAML"), error))?;
    let documents: Vec<Value> = documents.into_iter().filter(|document| !document.is_null()).collect();
    if documents.is_empty() {
        return Err(Failure(format!(
            "{shown} is empty; `kubarium fault list -o json` shows what it may hold"
        )));
    }
    Ok(documents.into_iter().flat_map(faults_of).collect())
}

/// Those of one document: a list of them, kubectl's or what holds one, or one alone, as an object or plain.
fn faults_of(mut document: Value) -> Vec<Value> {
    let Some(fields) = document.as_object_mut() else {
        return if let Value::Array(faults) = document { faults } else { vec![document] };
    };
    if let Some(Value::Array(faults)) = fields.get_mut("faults").map(Value::take) {
        return faults;
    }
    if let Some(Value::Array(items)) = fields.get_mut("items").map(Value::take) {
        return items.into_iter().flat_map(faults_of).collect();
    }
    if fields.get("kind").and_then(Value::as_str) == Some("Fault") {
        let mut fault = fields.remove("spec").unwrap_or_else(|| json!({}));
        let name = fields.get("metadata").and_then(|metadata| metadata.get("name"));
        if let Some((name, spec)) = name.zip(fault.as_object_mut()) {
            spec.insert("name".into(), name.clone());
        }
        return vec![fault];
    }
    vec![document]
}

fn list(which: &WhichCluster, output: &str) -> Result<(), Failure> {
    let listed: Value = which.ask(Method::GET, "/faults", &Value::Null)?;
    if output == "json" {
        say(serde_json::to_string_pretty(&listed).unwrap_or_default());
        return Ok(());
    }
    let faults = listed["faults"].as_array().map(Vec::as_slice).unwrap_or_default();
    if faults.is_empty() {
        say("There are no faults; add one with: kubarium fault add --verb update --answer 409");
        return Ok(());
    }
    say(format!("{:<20} {:>7} {:>5}  {}", "NAME", "MATCHED", "HIT", "FAULT"));
    for fault in faults {
        let mut rest = fault.clone();
        let mut take = |field: &str| rest.as_object_mut().and_then(|fields| fields.remove(field));
        let [name, matched, hits] = ["name", "matched", "hits"].map(|field| take(field).unwrap_or_default());
        let over = if take("over") == Some(Value::Bool(true)) { "(over) " } else { "" };
        say(format!("{:<20} {:>7} {:>5}  {over}{rest}", text(&name), matched.to_string(), hits.to_string()));
    }
    Ok(())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// So that a fault is the same whichever way it is said.
#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    #[derive(Parser)]
    struct FaultLine {
        #[command(flatten)]
        add: AddFault,
    }

    fn rule(line: &str) -> Rule {
        FaultLine::parse_from(format!("add {line}").split(' ')).add.rule()
    }

    #[test]
    fn a_file_holds_one_fault_or_several_in_whatever_way_they_are_shown() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("faults.yaml");
        let held = |text: &str| {
            std::fs::write(&file, text).unwrap();
            read(&file).map_err(|Failure(why)| why)
        };
        let (one, other) = (json!({"name": "a", "answer": {"code": 409}}), json!({"latency": "1s"}));
        for text in [
            "name: a\nanswer: {code: 409}\n---\nlatency: 1s\n---\n",
            "- {name: a, answer: {code: 409}}\n- {latency: 1s}\n",
            r#"{"faults": [{"name": "a", "answer": {"code": 409}}, {"latency": "1s"}]}"#,
            "kind: Fault\nmetadata: {name: a}\nspec: {answer: {code: 409}}\n---\nlatency: 1s\n",
            "items:\n- {kind: Fault, metadata: {name: a}, spec: {answer: {code: 409}}}\n- latency: 1s\n",
        ] {
            assert_eq!(held(text), Ok(vec![one.clone(), other.clone()]), "{text}");
        }
        assert_eq!(held("name: a\nanswer: {code: 409}\n"), Ok(vec![one]));
        assert_eq!(held("faults: []\n"), Ok(vec![]));
        assert!(held("").unwrap_err().contains("is empty"));
    }

    #[test]
    fn of_flags_that_contradict_each_other_none_is_forgotten() {
        for line in [
            "--cut --cut-after 3",
            "--close-watch --expire-watch",
            "--stale --stale-by 3",
            "--lost-leases --verb get",
            "--lost-leases --resource pods",
            "--lost-leases --answer 409",
        ] {
            let refused = FaultLine::try_parse_from(format!("add {line}").split(' ')).err();
            let refused = refused.map(|error| error.to_string()).unwrap_or_default();
            assert!(refused.contains("cannot be used with"), "{line}: {refused}");
        }
    }

    #[test]
    fn each_flag_of_a_fault_is_known_beside_a_file() {
        let others = ["filename", "cluster", "retry_after", "executed", "and", "loss", "refuse"];
        let known: Vec<&str> = IN_FILE.into_iter().chain(others).collect();
        let command = FaultLine::command();
        let flags: Vec<&str> = command.get_arguments().map(|flag| flag.get_id().as_str()).collect();
        let unknown: Vec<&&str> = flags.iter().filter(|flag| !known.contains(flag)).collect();
        assert!(flags.len() > 20 && unknown.is_empty(), "{unknown:?} of {flags:?}");
    }

    #[test]
    fn beside_a_file_the_cluster_is_said_and_no_part_of_a_fault() {
        let typed = |line: &str| FaultLine::try_parse_from(format!("add -f x {line}").trim().split(' '));
        for line in ["", "--name c"] {
            assert!(typed(line).is_ok(), "{line}");
        }
        for line in [
            "called",
            "--user a",
            "--user-agent a",
            "--verb get",
            "--resource pods",
            "-n a",
            "--object a",
            "--probability 0.5",
            "--nth 1",
            "--count 1",
            "--after 1s",
            "--for 1s",
            "--latency 1s",
            "--answer 409",
            "--cut",
            "--cut-after 3",
            "--close-watch",
            "--expire-watch",
            "--after-events 3",
            "--duplicate-events",
            "--delay-events 1s",
            "--stale",
            "--stale-by 3",
            "--silent-webhook a",
            "--lost-leases",
            "--partition",
            "--stop kube-scheduler",
            "--between app=web",
        ] {
            let refused = typed(line).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(refused.contains("cannot be used with"), "{line}: {refused}");
        }
    }

    #[test]
    fn flags_say_what_rust_says() {
        let seconds = std::time::Duration::from_secs;
        let cases = [
            ("x --user a --verb write --answer 409", Rule::answer(409).named("x").user("a").verb("write")),
            ("--answer 429 --retry-after 3 --for 1m", Rule::too_many_requests(3).lasting(seconds(60))),
            ("--answer 500 --executed", Rule::lost_answer(500)),
            ("--expire-watch --after-events 2", Rule::expire_watch(2)),
            ("--delay-events 5s", Rule::delay_events(seconds(5))),
            ("--cut-after 10 --count 1", Rule::cut_after(10).count(1)),
            ("--stop kubelet/node-1", Rule::stop("kubelet/node-1")),
            ("--lost-leases --user a", Rule::lost_leases("a")),
            (
                "--between app=web --and db/ --latency 2s --loss 0.5",
                Rule::network(NetworkFault {
                    between: "app=web".into(),
                    and: "db/".into(),
                    latency: Some(seconds(2).into()),
                    loss: Some(0.5),
                    ..NetworkFault::default()
                }),
            ),
            ("--latency 2s --probability 0.5", Rule::latency(seconds(2)).probability(0.5)),
        ];
        for (line, expected) in cases {
            assert_eq!(rule(line), expected, "{line}");
        }
    }
}
