//! `/debug/pprof` and `/debug/flags` (`server/routes/profiling.go`, `flags.go`), with `--profiling`. Who may
//! see them is for the authorizers to say, as upstream: nobody but administrators, unless a role names the
//! path.
//!
//! The profiles are those of Go's runtime, which is not here. What the same page can truthfully say of this
//! process it says: where its processor time goes, its command line, its threads, its tasks, its memory. The
//! others are answered 501 with a word on what tells it instead. All clusters of a process share these pages'
//! answers, since they share it, but for `profile`: that is of one cluster, and says what the others take.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use clap::{ArgAction, Args};
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, LOCATION, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt, Limited};

use super::pprof;
use crate::endpoints::query::Query;
use crate::request::is_below;
use apimachinery::wire::{ApiRequest, ApiResponse, text_response};
use clock::Clock;

/// A level is written with fewer bytes; a longer body is none.
const MAX_LEVEL_BYTES: usize = 64;
/// For how many seconds is looked when nobody says it, as in Go.
const PROFILE_SECONDS: u64 = 30;
/// Where Linux says how a process is.
const STATUS: &str = "/proc/self/status";
/// As Go has them, with what each is; those that have no words are not known of this process.
const PROFILES: &[(&str, &str)] = &[
    ("allocs", ""),
    ("block", "How long the runtime's threads work and how often they wait; with ?debug=1"),
    ("cmdline", "The command line of this process"),
    ("goroutine", "Tasks of the runtime, which are the nearest to goroutines; with ?debug=1"),
    ("heap", "What this process has of the machine's memory; with ?debug=1"),
    ("mutex", ""),
    (
        "profile",
        "What the processor's time goes to in 30 seconds, or ?seconds, by task, request, filter and plugin: for \
         `go tool pprof`, with &debug=1 for people",
    ),
    ("symbol", "Names of addresses: none here, profiles bring theirs"),
    ("threadcreate", "Threads of this process; with ?debug=1"),
    ("trace", ""),
];

/// What is shown for debugging (`DebuggingConfiguration`).
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "APIs")]
pub struct DebuggingOptions {
    /// Serve /debug/pprof, as far as there is something to say of this process, and /debug/flags.
    #[arg(id = "profiling", long, action = ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_value_t = true, default_missing_value = "true")]
    pub is_profiled: bool,
    /// With --profiling, tell at /debug/pprof/block how long the threads of the runtime work and how often
    /// they wait: of the whole process, whatever runs in it.
    #[arg(id = "contention-profiling", long, action = ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_value_t = false, default_missing_value = "true")]
    pub tells_contention: bool,
}

/// Sets how much is logged, by upstream's number: 0 is least.
#[derive(Clone)]
pub struct Verbosity(pub Arc<dyn Fn(u32) -> Result<(), String> + Send + Sync>);

/// What the pages need.
#[derive(Clone, Debug, Default)]
pub struct Debugging {
    /// What the flags say.
    pub options: DebuggingOptions,
    /// None where the log is somebody else's, as in a test.
    pub verbosity: Option<Verbosity>,
}

impl std::fmt::Debug for Verbosity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Verbosity")
    }
}

impl Default for DebuggingOptions {
    fn default() -> DebuggingOptions {
        DebuggingOptions { is_profiled: true, tells_contention: false }
    }
}

/// Whether a path is one of these pages'.
pub fn is_of_debug(path: &str) -> bool {
    ["/debug/pprof", "/debug/flags"].iter().any(|root| is_below(path, root))
}

impl Debugging {
    /// What a kubelet of its own process shows, which has no flag for it (`enableProfilingHandler`,
    /// `enableDebugFlagsHandler`).
    pub fn of_kubelet(verbosity: Option<Verbosity>) -> Debugging {
        Debugging { options: DebuggingOptions::default(), verbosity }
    }

    /// A kubelet's page at a path for which [`is_of_debug`]: it reads profiles alone, and knows one flag
    /// (`InstallDebuggingHandlers`).
    pub async fn respond_as_kubelet(&self, path: &str, request: ApiRequest, clock: &Clock) -> ApiResponse {
        let is_flag = is_below(path, "/debug/flags");
        if is_flag && path != "/debug/flags/v" {
            return text_response(StatusCode::NOT_FOUND, "404: Page Not Found");
        }
        if !is_flag && request.method() != Method::GET {
            return text_response(StatusCode::METHOD_NOT_ALLOWED, "405: Method Not Allowed");
        }
        self.respond(path, request, clock).await
    }

    /// The page at a path for which [`is_of_debug`]; profiles are of who lives by this clock.
    pub async fn respond(&self, path: &str, request: ApiRequest, clock: &Clock) -> ApiResponse {
        if !self.options.is_profiled {
            return text_response(StatusCode::NOT_FOUND, "404 page not found\n");
        }
        let query = Query::parse(request.uri().query().unwrap_or_default());
        match path.trim_start_matches("/debug/") {
            "pprof" => found("/debug/pprof/"),
            "pprof/" => html(&index()),
            "pprof/profile" => profile(&query, clock).await,
            "flags/v" => flag(self, request).await,
            flags if flags.starts_with("flags") => html(FLAGS),
            profile => {
                let debug = query.get("debug").unwrap_or("0");
                told(self.options, profile.trim_start_matches("pprof/"), debug)
            }
        }
    }
}

/// What upstream's page of flags lists: the one.
const FLAGS: &str = "<html>\n<head>\n<title>/debug/flags/</title>\n</head>\n<body>\n/debug/flags/<br>\n<br>\n\
                     flags:<br>\n<table>\n\n<tr>v<br>\n\n</table>\n<br>\nfull flags configurable<br>\n</body>\n</html>\n";

fn index() -> String {
    let told = PROFILES.iter().filter(|(_, words)| !words.is_empty());
    let rows: String = told
        .map(|(name, words)| format!("<li><a href='{name}?debug=1'>{name}</a>: {words}</li>\n"))
        .collect();
    let silent: Vec<&str> =
        PROFILES.iter().filter(|(_, words)| words.is_empty()).map(|(name, _)| *name).collect();
    format!(
        "<html>\n<head>\n<title>/debug/pprof/</title>\n</head>\n<body>\n/debug/pprof/\n<ul>\n{rows}</ul>\n<p>Of \
         {} there is nothing to tell: this is no Go program.</p>\n</body>\n</html>\n",
        silent.join(", ")
    )
}

fn told(options: DebuggingOptions, profile: &str, debug: &str) -> ApiResponse {
    let Some((name, words)) = PROFILES.iter().find(|(name, _)| *name == profile) else {
        // Go's words and code.
        return text_response(StatusCode::NOT_FOUND, "Unknown profile\n");
    };
    let text = match *name {
        "cmdline" => Some(without_secrets(std::env::args()).join("\0")),
        // To Go's pprof 0 is: there are none.
        "symbol" => Some("num_symbols: 0\n".to_owned()),
        _ if debug == "0" => None,
        "block" if options.tells_contention => waiting(),
        "block" => {
            let text = "what waits is told with --contention-profiling\n";
            return text_response(StatusCode::NOT_IMPLEMENTED, text);
        }
        "goroutine" => {
            let tasks = tokio::runtime::Handle::try_current().map(|one| one.metrics().num_alive_tasks());
            tasks.ok().map(|tasks| format!("goroutine profile: total {tasks}\n"))
        }
        "threadcreate" => {
            of_process("Threads").map(|threads| format!("threadcreate profile: total {threads}\n"))
        }
        "heap" => memory(),
        _ => None,
    };
    match text {
        Some(text) => text_response(StatusCode::OK, text),
        None => text_response(StatusCode::NOT_IMPLEMENTED, instead(name, words)),
    }
}

/// `pprof/profile`: looks for as long as is wanted, and until whoever wants it is gone.
async fn profile(query: &Query, clock: &Clock) -> ApiResponse {
    let seconds = query.get("seconds").and_then(|seconds| seconds.parse().ok());
    let seconds = seconds.filter(|seconds| *seconds > 0).unwrap_or(PROFILE_SECONDS);
    let profiling = match clock.profile() {
        Ok(profiling) => profiling,
        Err(error) => {
            let text = format!("Could not enable CPU profiling: {error}\n");
            return text_response(StatusCode::INTERNAL_SERVER_ERROR, text);
        }
    };
    let began = clock.now().timestamp_nanos_opt().unwrap_or_default();
    profiling.look_for(Duration::from_secs(seconds)).await;
    let profile = profiling.end();
    if query.get("debug").is_some_and(|debug| debug != "0") {
        return text_response(StatusCode::OK, pprof::table(&profile));
    }
    let mut response = ApiResponse::new(Body::from(pprof::encoded(&profile, began)));
    for (name, value) in [
        (CONTENT_TYPE, "application/octet-stream"),
        (CONTENT_DISPOSITION, "attachment; filename=\"profile\""),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Flags whose values have passwords in them.
const SECRET_FLAGS: &[&str] = &["--private-registries"];

/// A command line, but for passwords.
fn without_secrets(arguments: impl Iterator<Item = String>) -> Vec<String> {
    let mut hides_next = false;
    let mut shown = Vec::new();
    for argument in arguments {
        let flag = argument.split_once('=').map_or(argument.as_str(), |(flag, _)| flag);
        let is_secret = SECRET_FLAGS.contains(&flag);
        shown.push(match (hides_next, is_secret && flag.len() < argument.len()) {
            (true, _) => "...".to_owned(),
            (_, true) => format!("{flag}=..."),
            _ => argument.clone(),
        });
        hides_next = is_secret && flag.len() == argument.len();
    }
    shown
}

/// What to do where there is no such profile.
fn instead(name: &str, words: &str) -> String {
    let id = std::process::id();
    if name == "mutex" {
        return format!(
            "there is no profile \"mutex\": how long locks are waited for is counted by nobody in this process, \
             with --contention-profiling neither. On Linux `perf trace -s -e futex -p {id}` counts waits\n"
        );
    }
    if words.is_empty() {
        return format!(
            "there is no profile {name:?}: this is no Go program. On Linux `perf record -g -p {id}` samples what \
             it does\n"
        );
    }
    format!(
        "the profile {name:?} is there for people alone, with ?debug=1, and on Linux: this is no Go program\n"
    )
}

/// Where Go tells what goroutines wait for: here the runtime counts its threads' work and waits.
fn waiting() -> Option<String> {
    let metrics = tokio::runtime::Handle::try_current().ok()?.metrics();
    let mut text = format!("block profile: {} threads of the runtime\n", metrics.num_workers());
    for worker in 0..metrics.num_workers() {
        let busy = metrics.worker_total_busy_duration(worker).as_secs_f64();
        let waits = metrics.worker_park_count(worker);
        text += &format!("# {worker}: {busy:.3} s of work, waited {waits} times\n");
    }
    text += &format!("# tasks that no thread has taken up yet = {}\n", metrics.global_queue_depth());
    Some(text)
}

fn memory() -> Option<String> {
    let [now, most] = ["VmRSS", "VmHWM"].map(of_process);
    Some(format!("heap profile of the whole process\n# resident = {}\n# at most = {}\n", now?, most?))
}

/// A line of what Linux says of this process.
fn of_process(name: &str) -> Option<String> {
    let status = std::fs::read_to_string(STATUS).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

/// `/debug/flags/v`: a PUT of a number sets how much is logged (`routes.StringFlagPutHandler`,
/// `logs.GlogSetter`).
async fn flag(debugging: &Debugging, request: ApiRequest) -> ApiResponse {
    if *request.method() != Method::PUT {
        return text_response(StatusCode::NOT_ACCEPTABLE, "unsupported http method\n");
    }
    let read = Limited::new(request.into_body(), MAX_LEVEL_BYTES).collect().await;
    let outcome = match read {
        Ok(body) => set(debugging, &String::from_utf8_lossy(&body.to_bytes())),
        Err(error) => Err(format!("error reading request body: {error}")),
    };
    match outcome {
        Ok(said) => text_response(StatusCode::OK, said + "\n"),
        Err(why) => text_response(StatusCode::BAD_REQUEST, why + "\n"),
    }
}

fn set(debugging: &Debugging, level: &str) -> Result<String, String> {
    let number =
        level.parse::<u32>().map_err(|_| format!("strconv.ParseUint: parsing {level:?}: invalid syntax"))?;
    let failed = |why: &str| format!("failed set klog.logging.verbosity {level}: {why}");
    let Verbosity(set) =
        debugging.verbosity.as_ref().ok_or_else(|| failed("the log of this process is not the cluster's"))?;
    set(number).map_err(|why| failed(&why))?;
    Ok(format!("successfully set klog.logging.verbosity to {level}"))
}

/// To another page, as Go's `http.Redirect` says it.
fn found(place: &'static str) -> ApiResponse {
    let mut response = html(&format!("<a href=\"{place}\">Found</a>.\n\n"));
    *response.status_mut() = StatusCode::FOUND;
    response.headers_mut().insert(LOCATION, HeaderValue::from_static(place));
    response
}

fn html(page: &str) -> ApiResponse {
    let mut response = text_response(StatusCode::OK, page.to_owned());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    async fn asked(debugging: &Debugging, line: &str, body: &str) -> (u16, String) {
        asked_by(&Clock::real(), debugging, line, body).await
    }

    async fn asked_by(clock: &Clock, debugging: &Debugging, line: &str, body: &str) -> (u16, String) {
        let (method, uri) = line.split_once(' ').unwrap();
        let request = http::Request::builder().method(method).uri(uri).body(Body::from(body.to_owned()));
        let request = request.unwrap();
        let path = request.uri().path().to_owned();
        assert!(is_of_debug(&path), "{path}");
        let response = debugging.respond(&path, request, clock).await;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn what_can_be_told_is_and_what_cannot_says_so() {
        let debugging = Debugging::default();
        assert_eq!(asked(&debugging, "GET /debug/pprof", "").await.0, 302);
        let (code, page) = asked(&debugging, "GET /debug/pprof/", "").await;
        assert!(
            code == 200
                && page.contains("<a href='heap?debug=1'>")
                && page.contains("Of allocs, mutex, trace "),
            "{page}"
        );
        for (profile, words) in [
            ("cmdline", "kubarium"),
            ("goroutine?debug=1", "goroutine profile: total "),
            ("threadcreate?debug=1", "threadcreate profile: total "),
            ("heap?debug=1", "# resident = "),
            ("symbol", "num_symbols: 0\n"),
        ] {
            let (code, text) = asked(&debugging, &format!("GET /debug/pprof/{profile}"), "").await;
            assert!(code == 200 && text.contains(words), "{profile}: {text}");
        }
        for (profile, code, words) in [
            ("trace?seconds=1", 501, "perf record"),
            ("heap", 501, "with ?debug=1"),
            ("block", 501, "with ?debug=1"),
            ("block?debug=1", 501, "told with --contention-profiling"),
            ("mutex?debug=1", 501, "counted by nobody"),
            ("nothing", 404, "Unknown profile"),
        ] {
            let (answered, text) = asked(&debugging, &format!("GET /debug/pprof/{profile}"), "").await;
            assert!(answered == code && text.contains(words), "{profile}: {text}");
        }
        for other in ["/debug/pprofx", "/debug/api_priority_and_fairness/dump_queues", "/debug"] {
            assert!(!is_of_debug(other), "{other}");
        }
        let options = DebuggingOptions { tells_contention: true, ..DebuggingOptions::default() };
        let telling = Debugging { options, verbosity: None };
        let (code, text) = asked(&telling, "GET /debug/pprof/block?debug=1", "").await;
        assert!(code == 200 && text.contains("# 0: ") && text.contains("taken up yet = "), "{text}");
        let options = DebuggingOptions { is_profiled: false, tells_contention: true };
        let off = Debugging { options, verbosity: None };
        assert_eq!(asked(&off, "GET /debug/pprof/", "").await.0, 404);
        assert_eq!(asked(&off, "GET /debug/pprof/block?debug=1", "").await.0, 404);
        assert_eq!(asked(&off, "PUT /debug/flags/v", "2").await.0, 404);
    }

    #[tokio::test]
    async fn a_profile_is_of_who_lives_by_the_clock_and_one_at_a_time() {
        let clock = Clock::real();
        let debugging = Debugging::default();
        let worker = clock.spawn({
            let clock = clock.clone();
            async move {
                loop {
                    clock.yield_now().await;
                }
            }
        });
        let one = asked_by(&clock, &debugging, "GET /debug/pprof/profile?seconds=1&debug=1", "");
        let other = asked_by(&clock, &debugging, "GET /debug/pprof/profile?seconds=1", "");
        let ((code, text), (refused, why)) = tokio::join!(one, other);
        assert!(code == 200 && text.contains("a_profile_is_of_who_lives_by_the_clock"), "{text}");
        assert_eq!(
            (refused, why.as_str()),
            (500, "Could not enable CPU profiling: cpu profiling already in use\n")
        );
        worker.abort();
        // Whoever goes away ends it.
        let mut gone = Box::pin(asked_by(&clock, &debugging, "GET /debug/pprof/profile?seconds=1000", ""));
        assert!(futures::poll!(&mut gone).is_pending() && clock.profile().is_err());
        drop(gone);
        assert!(clock.profile().is_ok());
    }

    #[test]
    fn no_password_stands_in_the_command_line() {
        let line = "kubarium up --private-registries a.io=u:p --nodes 2 --private-registries=b.io=v:q -v=2";
        let shown = without_secrets(line.split(' ').map(str::to_owned)).join(" ");
        assert_eq!(shown, "kubarium up --private-registries ... --nodes 2 --private-registries=... -v=2");
    }

    #[tokio::test]
    async fn how_much_is_logged_is_set() {
        let level = Arc::new(AtomicU32::new(0));
        let seen = level.clone();
        let set = move |to| {
            level.store(to, Ordering::Relaxed);
            Ok(())
        };
        let debugging = Debugging { verbosity: Some(Verbosity(Arc::new(set))), ..Debugging::default() };
        let (code, said) = asked(&debugging, "PUT /debug/flags/v", "4").await;
        assert_eq!((code, said.as_str()), (200, "successfully set klog.logging.verbosity to 4\n"));
        assert_eq!(seen.load(Ordering::Relaxed), 4);
        let (code, said) = asked(&debugging, "PUT /debug/flags/v", "x").await;
        assert_eq!((code, said.as_str()), (400, "strconv.ParseUint: parsing \"x\": invalid syntax\n"));
        assert_eq!(asked(&debugging, "PUT /debug/flags/v", &"1".repeat(99)).await.0, 400);
        assert_eq!(asked(&debugging, "GET /debug/flags/v", "").await.0, 406);
        assert!(asked(&debugging, "GET /debug/flags", "").await.1.contains("<tr>v<br>"));
        let (code, said) = asked(&Debugging::default(), "PUT /debug/flags/v", "4").await;
        assert!(code == 400 && said.contains("not the cluster's"), "{said}");
    }
}
