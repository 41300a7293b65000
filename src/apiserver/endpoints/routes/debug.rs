//! `/debug/pprof` and `/debug/flags` (`server/routes/profiling.go`, `flags.go`), with `--profiling`. Who may
//! see them is for the authorizers to say, as upstream: nobody but administrators, unless a role names the
//! path.
//!
//! The profiles are those of Go's runtime, which is not here. What can truthfully be said of this process is
//! said in the same form, so that `go tool pprof` reads it (`profiles.rs` says what each is), and with
//! `?debug=1` people do; `trace` alone is answered 501, with a word on what tells it instead. All clusters of
//! a process share its threads and its memory; tasks, processor time and what is kept are told of one
//! cluster, and what else there is in the process is told as one.

use std::sync::Arc;
use std::time::Duration;

use clap::{ArgAction, Args};
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt, Limited};

use super::command_line::without_secrets;
use super::kept_memory::KeptMemory;
use super::pprof_text;
use super::profiles::{self, NamedProfile, Profiled, refused};
use crate::endpoints::query::Query;
use crate::request::is_below;
use apimachinery::wire::{ApiRequest, ApiResponse, text_response};
use clock::{Clock, RuntimeWaits};

/// A level is written with fewer bytes; a longer body is none.
const MAX_LEVEL_BYTES: usize = 64;
/// Parameters in a body that is longer do not count, as in Go, which reads more.
const MAX_FORM_BYTES: usize = 64 << 10;
/// For how many seconds is looked when nobody says it, as in Go.
const PROFILE_SECONDS: u64 = 30;
const FORM: &str = "application/x-www-form-urlencoded";
/// What the index says of each.
const PROFILES: &[(&str, &str)] = &[
    ("allocs", "As heap; go tool pprof shows all that is known to have been allocated"),
    ("block", "How often the runtime's threads wait, and how long: with --contention-profiling"),
    ("cmdline", "The command line of this process"),
    (
        "goroutine",
        "Tasks, which are the nearest to goroutines, by component and name; with debug=2 each alone",
    ),
    ("heap", "What is kept in memory and by whom, and what else this process has of it"),
    ("mutex", "Waits for locks, which nobody counts: none"),
    (
        "profile",
        "What the processor's time goes to in 30 seconds, or ?seconds, by task, request, filter and plugin",
    ),
    ("threadcreate", "Threads of this process, by name"),
    ("trace", "Not here: this is no Go program"),
];

/// What is shown for debugging (`DebuggingConfiguration`).
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "APIs")]
pub struct DebuggingOptions {
    /// Serve /debug/pprof, as far as there is something to say of this process, and /debug/flags.
    #[arg(id = "profiling", long, action = ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_value_t = true, default_missing_value = "true")]
    pub is_profiled: bool,
    /// With --profiling, tell at /debug/pprof/block how often the threads of the runtime wait, and for how
    /// long: of the whole process, whatever runs in it.
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
    /// None where nobody says what is kept.
    pub memory: Option<KeptMemory>,
    /// How the runtime's threads wait, from when that is asked for; see [`Debugging::begin`].
    waits: Option<Arc<RuntimeWaits>>,
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
    /// What the flags say, of a process in which nobody says what is kept.
    pub fn new(options: DebuggingOptions, verbosity: Option<Verbosity>) -> Debugging {
        Debugging { options, verbosity, ..Debugging::default() }
    }

    /// What a kubelet of its own process shows, which has no flag for it (`enableProfilingHandler`,
    /// `enableDebugFlagsHandler`).
    pub fn of_kubelet(verbosity: Option<Verbosity>) -> Debugging {
        Debugging { verbosity, ..Debugging::default() }
    }

    /// With what is noted from now on because the flags ask for it (`SetBlockProfileRate`).
    #[must_use]
    pub fn begin(self) -> Debugging {
        let is_asked_for = self.options.is_profiled && self.options.tells_contention;
        let waits = if is_asked_for { RuntimeWaits::begin().map(Arc::new) } else { None };
        Debugging { waits, ..self }
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
        match path.trim_start_matches("/debug/") {
            "pprof" => found("/debug/pprof/"),
            "pprof/" => html(&self.index(clock)),
            "flags/v" => flag(self, request).await,
            flags if flags.starts_with("flags") => html(FLAGS),
            profile => self.profile(profile.trim_start_matches("pprof/"), request, clock).await,
        }
    }

    async fn profile(&self, name: &str, request: ApiRequest, clock: &Clock) -> ApiResponse {
        if let Some(profile) = NamedProfile::named(name) {
            return profile.respond(&parameters(request).await, self.profiled(clock)).await;
        }
        match name {
            "cmdline" => text_response(StatusCode::OK, without_secrets(std::env::args()).join("\0")),
            // To Go's pprof 0 is: there are none. Profiles bring theirs.
            "symbol" => text_response(StatusCode::OK, "num_symbols: 0\n"),
            "profile" => processor_time(&parameters(request).await, clock).await,
            "trace" => refused(StatusCode::NOT_IMPLEMENTED, &instead_of_trace()),
            _ => refused(StatusCode::NOT_FOUND, "Unknown profile"),
        }
    }

    fn profiled<'a>(&'a self, clock: &'a Clock) -> Profiled<'a> {
        Profiled { clock, memory: self.memory.as_ref(), waits: self.waits.as_deref() }
    }

    /// What there is, and how much of it.
    fn index(&self, clock: &Clock) -> String {
        let of = self.profiled(clock);
        let count = |name: &str| NamedProfile::named(name).map_or(0, |profile| profile.count(of));
        // Both are of the same, which costs a look at each object.
        let heap = count("heap");
        let row = |(name, _): &(&str, &str)| {
            let count = if matches!(*name, "allocs" | "heap") { heap } else { count(name) };
            format!("<tr><td>{count}</td><td><a href='{name}?debug=1'>{name}</a></td></tr>\n")
        };
        let told = |(name, words): &(&str, &str)| format!("<li>{name}: {words}</li>\n");
        format!(
            "<html>\n<head>\n<title>/debug/pprof/</title>\n</head>\n<body>\n/debug/pprof/\n<p>With debug=1 as \
             text, else for go tool pprof.</p>\n<table>\n<thead><td>Count</td><td>Profile</td></thead>\n{}\
             </table>\n<ul>\n{}</ul>\n</body>\n</html>\n",
            PROFILES.iter().map(row).collect::<String>(),
            PROFILES.iter().map(told).collect::<String>()
        )
    }
}

/// Those of the URL, behind those of a form in the body (`Request.FormValue`).
async fn parameters(request: ApiRequest) -> Query {
    let in_url = request.uri().query().unwrap_or_default().to_owned();
    let sends = matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH);
    let content_type = request.headers().get(CONTENT_TYPE).and_then(|one| one.to_str().ok());
    let is_form = content_type.is_some_and(|one| one.split(';').next().unwrap_or_default().trim() == FORM);
    if !(sends && is_form) {
        return Query::parse(&in_url);
    }
    let form = Limited::new(request.into_body(), MAX_FORM_BYTES).collect().await;
    let form = form.map(|form| String::from_utf8_lossy(&form.to_bytes()).into_owned());
    Query::parse(&format!("{}&{in_url}", form.unwrap_or_default()))
}

/// What upstream's page of flags lists: the one.
const FLAGS: &str = "<html>\n<head>\n<title>/debug/flags/</title>\n</head>\n<body>\n/debug/flags/<br>\n<br>\n\
                     flags:<br>\n<table>\n\n<tr>v<br>\n\n</table>\n<br>\nfull flags configurable<br>\n</body>\n</html>\n";

/// `pprof/profile`: looks for as long as is wanted, and until whoever wants it is gone.
async fn processor_time(query: &Query, clock: &Clock) -> ApiResponse {
    let seconds = query.get("seconds").and_then(|seconds| seconds.parse().ok());
    let seconds = seconds.filter(|seconds| *seconds > 0).unwrap_or(PROFILE_SECONDS);
    let profiling = match clock.profile() {
        Ok(profiling) => profiling,
        Err(error) => {
            let text = format!("Could not enable CPU profiling: {error}");
            return refused(StatusCode::INTERNAL_SERVER_ERROR, &text);
        }
    };
    let began = clock.now().timestamp_nanos_opt().unwrap_or_default();
    profiling.look_for(Duration::from_secs(seconds)).await;
    let profile = profiles::cpu(&profiling.end(), began);
    if query.get("debug").is_some_and(|debug| debug != "0") {
        return text_response(StatusCode::OK, pprof_text::table(&profile));
    }
    profiles::file("profile", &profile)
}

/// What to do where there is none.
fn instead_of_trace() -> String {
    let id = std::process::id();
    format!(
        "there is no profile \"trace\": this is no Go program. On Linux `perf record -g -p {id}` samples what it \
         does"
    )
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
    use std::io::Read as _;
    use std::sync::atomic::{AtomicU32, Ordering};

    use axum::body::Body;

    use super::super::kept_memory::HeapCount;
    use super::*;

    async fn asked(debugging: &Debugging, line: &str, body: &str) -> (u16, String) {
        asked_by(&Clock::real(), debugging, line, body).await
    }

    async fn asked_by(clock: &Clock, debugging: &Debugging, line: &str, body: &str) -> (u16, String) {
        let response = respond(clock, debugging, line, body).await;
        let (code, bytes) = (response.status().as_u16(), bytes(response).await);
        (code, String::from_utf8(bytes).unwrap())
    }

    async fn respond(clock: &Clock, debugging: &Debugging, line: &str, body: &str) -> ApiResponse {
        let (method, uri) = line.split_once(' ').unwrap();
        let request = http::Request::builder().method(method).uri(uri).header(CONTENT_TYPE, FORM);
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let path = request.uri().path().to_owned();
        assert!(is_of_debug(&path), "{path}");
        debugging.respond(&path, request, clock).await
    }

    async fn bytes(response: ApiResponse) -> Vec<u8> {
        response.into_body().collect().await.unwrap().to_bytes().to_vec()
    }

    /// The name of the file that is answered, and the texts of the profile in it.
    async fn file(clock: &Clock, debugging: &Debugging, path: &str) -> (String, Vec<String>) {
        let response = respond(clock, debugging, &format!("GET /debug/pprof/{path}"), "").await;
        assert_eq!(response.status(), 200, "{path}");
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(header("content-type"), "application/octet-stream");
        assert_eq!(header("x-content-type-options"), "nosniff");
        let name = header("content-disposition");
        let mut profile = Vec::new();
        flate2::read::GzDecoder::new(&*bytes(response).await).read_to_end(&mut profile).unwrap();
        let pieces = apimachinery::protobuf::pieces(&profile).unwrap();
        let texts = pieces.iter().filter(|(number, _)| *number == 6);
        (name, texts.map(|(_, text)| String::from_utf8_lossy(text).into_owned()).collect())
    }

    fn keeps_a_pod() -> Debugging {
        let pod: Arc<[u8]> = vec![b'x'; 100].into();
        let memory = move |count: &mut HeapCount| {
            let share = [&pod, &pod].map(|pod| count.share_of(pod)).into_iter().sum();
            count.add(&["kube-apiserver", "watch cache", "pods"], share);
        };
        Debugging { memory: Some(KeptMemory(Arc::new(memory))), ..Debugging::default() }
    }

    #[tokio::test]
    async fn each_profile_is_a_file_for_pprof_with_gos_names_and_units() {
        let (clock, debugging) = (Clock::real().named("kubelet"), keeps_a_pod());
        let waiting = clock.spawn(std::future::pending::<()>());
        tokio::task::yield_now().await;
        let heap =
            ["alloc_objects", "count", "alloc_space", "bytes", "inuse_objects", "inuse_space"].as_slice();
        for (profile, first, others) in [
            ("goroutine", &["goroutine", "count"][..], &["kubelet"][..]),
            ("threadcreate", &["threadcreate", "count"], &[]),
            ("heap", heap, &["pods", "watch cache", "kube-apiserver", "(elsewhere in this process)"]),
            ("allocs", heap, &["pods", "space"]),
            ("mutex", &["contentions", "count", "delay", "nanoseconds"], &[]),
            ("block", &["contentions", "count", "delay", "nanoseconds"], &[]),
        ] {
            let (name, texts) = file(&clock, &debugging, profile).await;
            assert_eq!(name, format!("attachment; filename=\"{profile}\""));
            assert!(
                texts[0].is_empty() && texts.iter().skip(1).zip(first).all(|(text, first)| text == first),
                "{texts:?}"
            );
            assert!(others.iter().all(|other| texts.iter().any(|text| text == other)), "{texts:?}");
            // Nothing waits for a lock that anybody counts.
            assert!(texts.len() == 5 || !matches!(profile, "mutex" | "block"), "{texts:?}");
        }
        let (name, texts) = file(&clock, &debugging, "heap?seconds=1").await;
        assert_eq!(name, "attachment; filename=\"heap-delta\"");
        assert!(!texts.contains(&"pods".to_owned()), "it is kept as before: {texts:?}");
        waiting.abort();
    }

    #[tokio::test]
    async fn people_read_the_same_as_text() {
        let (clock, debugging) = (Clock::real().named("kubelet"), keeps_a_pod());
        let waiting = clock.spawn(clock.tracked(std::future::pending::<()>()).called("sync loop"));
        tokio::task::yield_now().await;
        let ask =
            async |path: &str| asked_by(&clock, &debugging, &format!("GET /debug/pprof/{path}"), "").await;
        let index = ask("").await.1;
        assert!(index.contains("<tr><td>0</td><td><a href='mutex?debug=1'>mutex</a></td></tr>"), "{index}");
        assert!(index.contains("<tr><td>2</td><td><a href='heap?debug=1'>heap</a></td></tr>"), "{index}");
        assert_eq!(index.matches("<li>").count(), 9, "{index}");
        for (path, words) in [
            ("cmdline", "kubarium"),
            ("symbol", "num_symbols: 0\n"),
            ("goroutine?debug=1", "1 @\n#\tsync loop\n#\tkubelet\n\n"),
            ("goroutine?debug=2", " [waiting]:\nsync loop\nkubelet\n\n"),
            ("threadcreate?debug=1", "threadcreate profile: total "),
            ("heap?debug=1", "\n1: 100 [1: 100] @\n#\tpods\n#\twatch cache\n#\tkube-apiserver\n\n"),
            ("heap?debug=1&gc=1", "\n# MaxRSS = "),
            ("allocs?debug=1", "heap profile: 1: "),
            ("mutex?debug=1", "--- mutex:\ncycles/second=1000000000\nsampling period=0\n"),
            ("block?debug=1", "--- contention:\ncycles/second=1000000000\n"),
        ] {
            let (code, text) = ask(path).await;
            assert!(code == 200 && text.contains(words), "{path}: {text}");
        }
        waiting.abort();
    }

    #[tokio::test]
    async fn what_cannot_be_told_says_so_to_pprof() {
        let clock = Clock::real();
        let debugging = Debugging::default();
        for (path, code, words) in [
            ("trace?seconds=1", 501, "perf record"),
            ("nothing", 404, "Unknown profile\n"),
            ("heap/", 404, "Unknown profile\n"),
            ("heap?seconds=-1", 400, "invalid value for \"seconds\" - must be a positive integer\n"),
            ("mutex?seconds=soon", 400, "invalid value for \"seconds\" - must be a positive integer\n"),
            ("goroutine?seconds=1&debug=1", 400, "seconds and debug params are incompatible\n"),
        ] {
            let response = respond(&clock, &debugging, &format!("GET /debug/pprof/{path}"), "").await;
            assert!(response.status() == code && response.headers()["x-go-pprof"] == "1", "{path}");
            assert_eq!(response.headers()[CONTENT_TYPE], "text/plain; charset=utf-8", "{path}");
            let text = String::from_utf8(bytes(response).await).unwrap();
            assert!(text.contains(words), "{path}: {text}");
        }
        assert_eq!(asked(&debugging, "GET /debug/pprof", "").await.0, 302);
        for other in ["/debug/pprofx", "/debug/api_priority_and_fairness/dump_queues", "/debug"] {
            assert!(!is_of_debug(other), "{other}");
        }
    }

    #[tokio::test]
    async fn a_form_counts_before_the_url_and_not_when_it_is_too_long() {
        let debugging = Debugging::default();
        let line = "POST /debug/pprof/mutex?debug=0";
        assert!(asked(&debugging, line, "debug=1").await.1.starts_with("--- mutex:"));
        let too_long = format!("debug=1&x={}", "x".repeat(MAX_FORM_BYTES));
        let binary = respond(&Clock::real(), &debugging, line, &too_long).await;
        assert_eq!(binary.headers()[CONTENT_TYPE], "application/octet-stream");
        let binary = respond(&Clock::real(), &debugging, "GET /debug/pprof/mutex", "debug=1").await;
        assert_eq!(binary.headers()[CONTENT_TYPE], "application/octet-stream");
    }

    #[tokio::test]
    async fn waits_are_told_from_when_the_flag_asks_for_them() {
        let options = DebuggingOptions { tells_contention: true, ..DebuggingOptions::default() };
        let telling = Debugging { options, ..Debugging::default() };
        let (_, text) = asked(&telling, "GET /debug/pprof/block?debug=1", "").await;
        assert!(!text.contains("runtime"), "nobody has begun: {text}");
        let telling = telling.begin();
        let (code, text) = asked(&telling, "GET /debug/pprof/block?debug=1", "").await;
        assert!(code == 200 && text.contains(" @\n#\tthread 0\n#\truntime\n\n"), "{text}");
        assert!(text.ends_with(" taken up yet = 0\n"), "{text}");
        let (_, texts) = file(&Clock::real(), &telling, "block").await;
        assert_eq!(texts[5..], ["thread 0", "runtime"]);
        let (_, text) = asked(&telling, "GET /debug/pprof/mutex?debug=1", "").await;
        assert!(text.ends_with("sampling period=0\n"), "{text}");
        let options = DebuggingOptions { is_profiled: false, ..options };
        let off = Debugging { options, ..Debugging::default() }.begin();
        for line in ["GET /debug/pprof/", "GET /debug/pprof/block?debug=1", "PUT /debug/flags/v"] {
            assert_eq!(asked(&off, line, "2").await.0, 404, "{line}");
        }
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
