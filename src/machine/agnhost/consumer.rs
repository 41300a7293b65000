//! agnhost's `resource-consumer`, which uses as much as it is told to, and `resource-consumer-controller`,
//! which spreads that among those behind a Service.

use std::fmt::Write;
use std::time::Duration;

use super::asking::{AskFirst, Backing, MARK};
use super::flags::flag;
use super::klog_line;
use crate::consumption::{BumpedMetrics, ConsumedSpan, MAX_SPANS};
use crate::requests::{WebAnswer, WebRequest, parameter};
use crate::server_state::ServerState;
use chrono::{DateTime, Utc};

const CONSUME_CPU: &str = "/ConsumeCPU";
const CONSUME_MEMORY: &str = "/ConsumeMem";
const BUMP_METRIC: &str = "/BumpMetric";
const NO_POST: &str = "Bad request. Not a POST request";
const UNKNOWN: &str = "unknown function";
const NOT_GIVEN: &str = "not given function argument";
const INCORRECT: &str = "incorrect function argument";
/// `stress` takes this for a megabyte.
const MEGABYTE: f64 = 1_048_576.0;
/// So many requests one makes of one that it is told; more are refused, as no server here asks more.
const MAX_REQUESTS: i64 = 300;
/// Where a controller finds its consumers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConsumerController {
    host: String,
    port: String,
}

/// What is asked: the parameters of the path and of a form.
struct ConsumerForm<'a> {
    query: &'a str,
    body: String,
}

impl ConsumerForm<'_> {
    fn of<'a>(asked: &'a WebRequest<'_>) -> (&'a str, ConsumerForm<'a>) {
        let (path, query) = asked.target.split_once('?').unwrap_or((asked.target, ""));
        let kind = asked.header("content-type").unwrap_or_default();
        let is_form = kind.starts_with("application/x-www-form-urlencoded");
        let body = if is_form { String::from_utf8_lossy(asked.body).into_owned() } else { String::new() };
        (path, ConsumerForm { query, body })
    }

    fn text(&self, name: &str) -> Result<String, WebAnswer> {
        let found = parameter(&self.body, name).or_else(|| parameter(self.query, name));
        found.ok_or_else(|| WebAnswer::error(400, NOT_GIVEN))
    }

    /// Whole numbers; all of them have to be given before one of them is looked at.
    fn numbers<const COUNT: usize>(&self, names: [&str; COUNT]) -> Result<[i64; COUNT], WebAnswer> {
        let mut numbers = [0; COUNT];
        let texts = names.iter().map(|name| self.text(name)).collect::<Result<Vec<_>, _>>()?;
        for (number, text) in numbers.iter_mut().zip(texts) {
            *number = text.parse().map_err(|_| WebAnswer::error(400, INCORRECT))?;
        }
        Ok(numbers)
    }
}

/// What a consumer answers.
pub(crate) fn answer(asked: &WebRequest<'_>, state: &mut ServerState) -> WebAnswer {
    let (path, form) = ConsumerForm::of(asked);
    if path.eq_ignore_ascii_case("/metrics") {
        return WebAnswer::text(200, metrics(&state.bumped, asked.uptime));
    }
    if asked.method != "POST" {
        return WebAnswer::error(400, NO_POST);
    }
    let answered = match path {
        CONSUME_CPU => consume(asked, state, &form, ("millicores", 0.001, 0.0)),
        CONSUME_MEMORY => consume(asked, state, &form, ("megabytes", 0.0, MEGABYTE)),
        "/GetCurrentStatus" => Ok("Warning: not implemented!\nGetCurrentStatus".to_owned()),
        BUMP_METRIC => bump(asked, state, &form),
        path => Err(WebAnswer::error(404, format!("{UNKNOWN}: {path}"))),
    };
    answered.map_or_else(|refused| refused, |said| WebAnswer::text(200, said))
}

fn consume(
    asked: &WebRequest<'_>,
    state: &mut ServerState,
    form: &ConsumerForm<'_>,
    (unit, cores, bytes): (&str, f64, f64),
) -> Result<String, WebAnswer> {
    let [seconds, amount] = form.numbers(["durationSec", unit])?;
    let (begins, count) = (asked.uptime, amount.max(0) as f64);
    let ends = begins + Duration::from_secs(seconds.clamp(0, u32::MAX.into()) as u64);
    let span = ConsumedSpan { begins, ends, cores: cores * count, bytes: bytes * count };
    if !state.consumption.add(span) {
        return Err(full());
    }
    let name = asked.target.split('?').next().unwrap_or_default().trim_start_matches('/');
    Ok(format!("{name}\n{amount} {unit}\n{seconds} durationSec\n"))
}

fn full() -> WebAnswer {
    WebAnswer::error(503, format!("no more than {MAX_SPANS} are under way at once here"))
}

fn bump(
    asked: &WebRequest<'_>,
    state: &mut ServerState,
    form: &ConsumerForm<'_>,
) -> Result<String, WebAnswer> {
    let texts = [form.text("durationSec")?, form.text("metric")?, form.text("delta")?];
    let [seconds, metric, delta] = texts;
    let wrong = || WebAnswer::error(400, INCORRECT);
    let (seconds, number): (u32, f64) =
        (seconds.parse().map_err(|_| wrong())?, delta.parse().map_err(|_| wrong())?);
    let now = asked.uptime;
    for bumps in state.bumped.values_mut() {
        bumps.retain(|(_, ends)| *ends > now);
    }
    if state.bumped.values().map(|bumps| bumps.len() + 1).sum::<usize>() >= MAX_SPANS {
        return Err(full());
    }
    let ends = now + Duration::from_secs(seconds.into());
    state.bumped.entry(metric.clone()).or_default().push((number, ends));
    Ok(format!("BumpMetric\n{metric} metric\n{number} delta\n{seconds} durationSec\n"))
}

/// One that was bumped for a while is there from then on.
fn metrics(bumped: &BumpedMetrics, now: Duration) -> String {
    let mut text = String::new();
    for (name, bumps) in bumped {
        let value: f64 = bumps
            .iter()
            .filter(|(_, ends)| *ends > now)
            .map(|(delta, _)| delta)
            .fold(0.0, |sum, delta| sum + delta);
        let _ = write!(text, "# HELP {name} info message.\n# TYPE {name} gauge\n{name} {value:.6}\n");
    }
    text
}

/// What a consumer writes into its log.
pub(crate) fn log_line(asked: &WebRequest<'_>, answered: &WebAnswer, at: DateTime<Utc>) -> Option<String> {
    let (path, form) = ConsumerForm::of(asked);
    let (name, unit) = match path {
        CONSUME_CPU => ("ConsumeCPU", "millicores"),
        CONSUME_MEMORY => ("ConsumeMem", "megabytes"),
        "/GetCurrentStatus" => return Some(klog_line::of("GetCurrentStatus".to_owned(), at)),
        _ => return None,
    };
    let [seconds, amount] = form.numbers(["durationSec", unit]).ok().filter(|_| answered.code == 200)?;
    Some(klog_line::of(format!("{name} {unit}: {amount}, durationSec: {seconds}"), at))
}

/// What a controller is to spread: by which path and parameter, in which words, in pieces of which size.
struct Spread<'a> {
    path: &'a str,
    metric: Option<String>,
    parameter: &'a str,
    unit: &'a str,
    amount: i64,
    piece: i64,
    seconds: i64,
}

impl ConsumerController {
    /// As its flags say.
    pub(crate) fn of(words: &[String]) -> ConsumerController {
        let named = |name: &str, usual: &str| flag(words, name).unwrap_or(usual).to_owned();
        let (service, namespace) = (
            named("consumer-service-name", "resource-consumer"),
            named("consumer-service-namespace", "default"),
        );
        // It looks for the cluster's domain among those of its pod, which is this one here.
        let host = format!("{service}.{namespace}.svc.cluster.local");
        ConsumerController { host, port: named("consumer-port", "8080") }
    }

    pub(crate) fn answer(
        &self,
        asked: &WebRequest<'_>,
        backing: Backing<'_>,
    ) -> Result<WebAnswer, Box<AskFirst>> {
        match wanted(asked) {
            Ok(spread) => self.spread(&spread, backing),
            Err(refused) => Ok(refused),
        }
    }

    fn spread(&self, spread: &Spread<'_>, backing: Backing<'_>) -> Result<WebAnswer, Box<AskFirst>> {
        let Spread { path, metric, parameter, unit, amount, piece, seconds } = spread;
        let (count, rest) = (amount / piece, amount % piece);
        if count > MAX_REQUESTS {
            let why = format!("it makes {MAX_REQUESTS} requests for one at most here, not {count}");
            return Ok(WebAnswer::error(500, why));
        }
        let sizes = std::iter::repeat_n(*piece, usize::try_from(count).unwrap_or(0));
        let sizes: Vec<i64> = sizes.chain((rest > 0).then_some(rest)).collect();
        let told: Vec<String> = sizes.iter().map(i64::to_string).collect();
        let metric_form = metric.as_ref().map(|_| "-d \"metric=$METRIC\" ").unwrap_or_default();
        let script = format!(
            "for size in {}; do curl -s -o /dev/null --max-time 30 {metric_form}-d \"{parameter}=$size\" \
             -d durationSec={seconds} \"http://$TO{path}\"; printf '%s' \"$?{MARK}\"; done",
            told.join(" ")
        );
        let to = format!("{}:{}", self.host, self.port);
        let variables = [("TO", to.as_str()), ("METRIC", metric.as_deref().unwrap_or_default())];
        let codes = if sizes.is_empty() { String::new() } else { backing.run(&script, &variables)?.out };
        let what = match metric {
            Some(_) => {
                format!("requests to bump custom metric by {piece} each and 1 request to bump by {rest}")
            }
            None => format!("requests to consume {piece} {unit} each and 1 request to consume {rest} {unit}"),
        };
        let mut said = format!("RC manager: sending {count} {what}\n");
        for (size, code) in sizes.iter().zip(codes.split(MARK)) {
            let long = if *unit == "MB" { "megabytes" } else { unit };
            said.push_str(&match (code, metric) {
                ("0", Some(metric)) => format!("Bumped metric {metric} by {size}\n"),
                ("0", None) => format!("Consumed {size} {long}\n"),
                (code, _) => format!("Failed to connect to consumer: {}\n", self.failed(path, code)),
            });
        }
        Ok(WebAnswer::text(200, said))
    }

    /// In the words of Go's client, by the code of what asked.
    fn failed(&self, path: &str, code: &str) -> String {
        let (host, port) = (&self.host, &self.port);
        let why = match code {
            "6" => format!("dial tcp: lookup {host}: no such host"),
            "7" => format!("dial tcp {host}:{port}: connect: connection refused"),
            "28" => format!("dial tcp {host}:{port}: i/o timeout"),
            _ => "EOF".to_owned(),
        };
        format!("Post \"http://{host}:{port}{path}\": {why}")
    }
}

fn wanted<'a>(asked: &'a WebRequest<'_>) -> Result<Spread<'a>, WebAnswer> {
    if asked.method != "POST" {
        return Err(WebAnswer::error(400, NO_POST));
    }
    let (path, form) = ConsumerForm::of(asked);
    let (parameter, unit, size) = match path {
        CONSUME_CPU => ("millicores", "millicores", "requestSizeMillicores"),
        CONSUME_MEMORY => ("megabytes", "MB", "requestSizeMegabytes"),
        BUMP_METRIC => ("delta", "", "requestSizeMetrics"),
        _ => return Err(WebAnswer::error(404, UNKNOWN)),
    };
    let metric = if path == BUMP_METRIC { Some(form.text("metric")?) } else { None };
    let [seconds, amount, piece] = form.numbers(["durationSec", parameter, size])?;
    if piece <= 0 {
        return Err(WebAnswer::error(400, INCORRECT));
    }
    Ok(Spread { path, metric, parameter, unit, amount, piece, seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn posted<'a>(target: &'a str, body: &'a str, seconds: u64) -> WebRequest<'a> {
        WebRequest {
            method: "POST",
            target,
            headers: vec![("content-type", "application/x-www-form-urlencoded")],
            uptime: Duration::from_secs(seconds),
            body: body.as_bytes(),
            ..WebRequest::default()
        }
    }

    #[test]
    fn it_uses_what_it_is_told_to() {
        let mut state = ServerState::default();
        let mut asks = |target: &str, body: &str, at: u64| {
            let answered = answer(&posted(target, body, at), &mut state);
            (answered.code, answered.body)
        };
        let cpu = asks("/ConsumeCPU", "millicores=250&durationSec=30", 10);
        assert_eq!(cpu, (200, "ConsumeCPU\n250 millicores\n30 durationSec\n".to_owned()));
        let memory = asks("/ConsumeMem?megabytes=3&durationSec=30", "", 10);
        assert_eq!(memory, (200, "ConsumeMem\n3 megabytes\n30 durationSec\n".to_owned()));
        assert_eq!(asks("/ConsumeCPU", "millicores=1", 0), (400, format!("{NOT_GIVEN}\n")));
        assert_eq!(asks("/ConsumeCPU", "millicores=x&durationSec=1", 0), (400, format!("{INCORRECT}\n")));
        assert_eq!(asks("/Sing", "", 0), (404, "unknown function: /Sing\n".to_owned()));
        let bumped = asks("/BumpMetric", "metric=qps&delta=1.5&durationSec=20", 10);
        assert_eq!(bumped, (200, "BumpMetric\nqps metric\n1.5 delta\n20 durationSec\n".to_owned()));
        assert!(asks("/metrics", "", 20).1.ends_with("\nqps 1.500000\n"));
        assert!(asks("/metrics", "", 31).1.ends_with("# TYPE qps gauge\nqps 0.000000\n"));
        assert_eq!(state.consumption.core_seconds(10.0, 20.0), 2.5);
        assert_eq!(state.consumption.bytes(20.0), 3.0 * MEGABYTE);
        let get = WebRequest { method: "GET", target: "/ConsumeCPU", ..WebRequest::default() };
        assert_eq!(answer(&get, &mut state).code, 400);
        for _ in 0..2 * MAX_SPANS {
            answer(&posted("/BumpMetric", "metric=m&delta=1&durationSec=99", 10), &mut state);
        }
        assert!(state.bumped["m"].len() <= MAX_SPANS);
    }

    #[test]
    fn a_controller_divides_what_it_is_told() {
        let wanted_of = |target: &'static str, body: &'static str| {
            let asked = posted(target, body, 0);
            wanted(&asked).map(|spread| (spread.amount, spread.piece, spread.seconds)).map_err(|no| no.code)
        };
        let body = "millicores=250&durationSec=30&requestSizeMillicores=100";
        assert_eq!(wanted_of("/ConsumeCPU", body), Ok((250, 100, 30)));
        assert_eq!(wanted_of("/ConsumeCPU", "millicores=250&durationSec=30"), Err(400));
        assert_eq!(wanted_of("/ConsumeCPU", "millicores=1&durationSec=1&requestSizeMillicores=0"), Err(400));
        assert_eq!(wanted_of("/", ""), Err(404));
        let controller = ConsumerController::of(&["--consumer-service-name=rc".to_owned()]);
        let why = "Post \"http://rc.default.svc.cluster.local:8080/ConsumeCPU\": dial tcp: lookup \
            rc.default.svc.cluster.local: no such host";
        assert_eq!(controller.failed("/ConsumeCPU", "6"), why);
    }
}
