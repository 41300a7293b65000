//! Servers that tell of themselves or of what they were asked: http-echo, whoami, hello-app, echo servers.

use std::fmt::Write;

use chrono::{DateTime, Utc};
use serde_json::json;

use crate::byte_text;
use crate::common_time::{common_time, http_time};
use crate::requests::{WebAnswer, WebRequest, canonical, parameter};
use crate::server_state::ServerState;
use crate::surroundings::Surroundings;

/// So much does whoami's `/data` say; whoever asks for more gets that.
const MAX_DATA_BYTES: usize = 4 << 20;
/// What that consists of.
const DATA_LETTERS: &[u8] = b"-ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Who says the same of itself, or says what it was asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Speaker {
    /// The text that it was started with, with this code.
    HttpEcho(String, u16),
    /// What it was asked.
    WhoAmI {
        /// What it is called.
        name: String,
        /// Whether requests are in its log.
        is_verbose: bool,
    },
    /// A greeting, with the version of its tag.
    HelloApp(String),
    /// What it was asked, as JSON.
    EalenEcho,
    /// What it was asked, as lines; those of version 1.4 are other ones.
    EchoServer(String),
    /// That it works.
    Caddy,
}

impl Speaker {
    /// The code of an answer to `GET path`; nothing where it is not known before.
    pub(crate) fn code(&self, path: &str) -> Option<u16> {
        let (plain, query) = path.split_once('?').unwrap_or((path, ""));
        match self {
            Speaker::HttpEcho(_, code) => Some(if plain == "/health" { 200 } else { *code }),
            Speaker::WhoAmI { .. } if matches!(plain, "/health" | "/echo") || !query.is_empty() => None,
            Speaker::EalenEcho if !query.is_empty() => None,
            Speaker::Caddy => Some(if matches!(plain, "/" | "/index.html") { 200 } else { 404 }),
            _ => Some(200),
        }
    }

    /// What it says, once it has begun.
    pub(crate) fn first_line(&self, port: i64) -> Option<String> {
        Some(match self {
            Speaker::HttpEcho(..) => format!("{{nginx-time}} [INFO] server is listening on :{port}"),
            Speaker::WhoAmI { .. } => format!("{{nginx-time}} Starting up on port {port}"),
            Speaker::HelloApp(_) => format!("{{nginx-time}} Server listening on port {port}"),
            Speaker::EalenEcho => format!("Listening on port {port}."),
            Speaker::EchoServer(tag) if tag != "1.4" => "Starting nginx".to_owned(),
            Speaker::EchoServer(_) | Speaker::Caddy => return None,
        })
    }

    pub(crate) fn answer(
        &self,
        asked: &WebRequest<'_>,
        state: &mut ServerState,
        around: Option<&Surroundings>,
    ) -> WebAnswer {
        match self {
            Speaker::HttpEcho(text, code) => http_echo(text, *code, asked),
            Speaker::WhoAmI { name, .. } => who_am_i(name, asked, state, around),
            Speaker::HelloApp(tag) => {
                let version = if tag.starts_with('2') { "2.0.0" } else { "1.0.0" };
                let host = asked.host_name;
                WebAnswer::text(200, format!("Hello, world!\nVersion: {version}\nHostname: {host}\n"))
            }
            Speaker::EalenEcho => ealen_echo(asked, around),
            Speaker::EchoServer(tag) => WebAnswer::typed(200, "text/plain", echo_server(tag, asked)),
            Speaker::Caddy => {
                let mut answered = match self.code(asked.target) {
                    Some(200) => WebAnswer::typed(200, "text/html; charset=utf-8", CADDY_PAGE),
                    _ => WebAnswer { code: 404, ..WebAnswer::default() },
                };
                answered.headers.push(("server", "Caddy".to_owned()));
                answered
            }
        }
    }

    /// The line of a request in its log.
    pub(crate) fn log_line(
        &self,
        asked: &WebRequest<'_>,
        answered: &WebAnswer,
        at: DateTime<Utc>,
        common: &str,
    ) -> Option<String> {
        let path = asked.target.split('?').next().unwrap_or(asked.target);
        let or_dash = |name| asked.header(name).unwrap_or("-");
        let of_go = |text: String| format!("{} {text}", at.format("%Y/%m/%d %H:%M:%S"));
        Some(match self {
            Speaker::HelloApp(_) => of_go(format!("Serving request: {path}")),
            Speaker::HttpEcho(..) if path == "/health" => return None,
            Speaker::HttpEcho(..) => of_go(format!(
                "{} {} \"{} {} HTTP/1.1\" {} {} {:?} 24.1µs",
                or_dash("host"),
                asked.from,
                asked.method,
                asked.target,
                answered.code,
                byte_text::byte_count(&answered.body),
                or_dash("user-agent"),
            )),
            Speaker::WhoAmI { is_verbose: true, .. } => of_go(format!(
                "{} - - [{}] \"{} {path} HTTP/1.1\" - -",
                asked.from,
                common_time(at),
                asked.method,
            )),
            Speaker::EchoServer(_) => {
                format!("{common} {:?} {:?}", or_dash("referer"), or_dash("user-agent"))
            }
            Speaker::EalenEcho => ealen_log(asked, at),
            Speaker::WhoAmI { .. } | Speaker::Caddy => return None,
        })
    }
}

const CADDY_PAGE: &str = "<!DOCTYPE html>\n<html>\n<head><title>Caddy works!</title></head>\n<body>\n\
    <h1>Caddy works!</h1>\n<p>If you see this page, a simulated Caddy answers.</p>\n</body>\n</html>\n";

fn http_echo(text: &str, code: u16, asked: &WebRequest<'_>) -> WebAnswer {
    let mut answered = match asked.target.split('?').next() {
        Some("/health") => WebAnswer::text(200, "{\"status\":\"ok\"}\n"),
        _ => WebAnswer::sniffed(code, &format!("{text}\n")),
    };
    answered.headers.push(("x-app-name", "http-echo".to_owned()));
    answered.headers.push(("x-app-version", "1.0.0".to_owned()));
    answered
}

fn who_am_i(
    name: &str,
    asked: &WebRequest<'_>,
    state: &mut ServerState,
    around: Option<&Surroundings>,
) -> WebAnswer {
    let (path, query) = asked.target.split_once('?').unwrap_or((asked.target, ""));
    match path {
        "/bench" => WebAnswer::typed(200, "text/plain", "1"),
        "/data" => WebAnswer::text(200, data(query)),
        "/health" if asked.method == "POST" => {
            let said = String::from_utf8_lossy(asked.body);
            match said.trim().parse() {
                Ok(code) => {
                    state.health_code = Some(code);
                    WebAnswer { code: 200, ..WebAnswer::default() }
                }
                Err(_) if said.trim().is_empty() => WebAnswer::error(400, "EOF"),
                Err(_) => WebAnswer::error(400, "json: cannot unmarshal the body into Go value of type int"),
            }
        }
        "/health" => WebAnswer { code: state.health_code.unwrap_or(200), ..WebAnswer::default() },
        "/echo" => WebAnswer::error(400, "Bad Request"),
        "/api" => who_am_i_api(name, asked, around),
        _ => {
            let wait = parameter(query, "wait").and_then(|wait| golang::duration::parse(&wait));
            let mut answered = WebAnswer::sniffed(200, &who_am_i_page(name, asked, around));
            answered.delay = wait.unwrap_or_default();
            answered
        }
    }
}

/// As many bytes as somebody asks for.
fn data(query: &str) -> String {
    let size = parameter(query, "size").and_then(|size| size.parse::<i64>().ok()).unwrap_or(1);
    let unit = parameter(query, "unit").unwrap_or_default().to_lowercase();
    let steps = ["kb", "mb", "gb", "tb"].iter().position(|own| *own == unit).map_or(0, |at| at + 1);
    let unit = 1024_usize.saturating_pow(u32::try_from(steps).unwrap_or_default());
    let size = usize::try_from(size).unwrap_or(0).saturating_mul(unit).min(MAX_DATA_BYTES);
    let letter = |at: usize| match at {
        at if at == 0 || at + 1 == size => '|',
        at => char::from(DATA_LETTERS[at % DATA_LETTERS.len()]),
    };
    (0..size).map(letter).collect()
}

/// Whether somebody wants to see the variables.
fn wants_variables(asked: &WebRequest<'_>) -> bool {
    let query = asked.target.split_once('?').map_or("", |(_, query)| query);
    parameter(query, "env")
        .is_some_and(|value| matches!(value.as_str(), "1" | "t" | "T" | "true" | "TRUE" | "True"))
}

fn who_am_i_page(name: &str, asked: &WebRequest<'_>, around: Option<&Surroundings>) -> String {
    let mut said = String::new();
    if !name.is_empty() {
        let _ = writeln!(said, "Name: {name}");
    }
    let WebRequest { host_name, address, from, method, target, .. } = asked;
    let _ = write!(said, "Hostname: {host_name}\nIP: 127.0.0.1\nIP: {address}\nRemoteAddr: {from}\n");
    // As Go writes a request: the host and the agent first, the others sorted.
    let _ = write!(said, "{method} {target} HTTP/1.1\r\n");
    let first = ["host", "user-agent", "content-length"];
    let mut headers = asked.headers.clone();
    headers.sort_by_key(|(name, _)| (first.iter().position(|own| own == name).unwrap_or(first.len()), *name));
    for (name, value) in headers {
        let _ = write!(said, "{}: {value}\r\n", canonical(name));
    }
    let _ = write!(said, "\r\n{}", byte_text::text_of(asked.body));
    if wants_variables(asked) {
        let variables = around.into_iter().flat_map(|around| &around.variables);
        variables.for_each(|(name, value)| said.push_str(&format!("{name}={value}\n")));
    }
    said
}

fn who_am_i_api(name: &str, asked: &WebRequest<'_>, around: Option<&Surroundings>) -> WebAnswer {
    let headers = asked.headers.iter().filter(|(name, _)| *name != "host");
    let headers: serde_json::Map<_, _> =
        headers.map(|(name, value)| (canonical(name), json!([value]))).collect();
    let mut members = vec![
        ("hostname", json!(asked.host_name)),
        ("ip", json!(["127.0.0.1", asked.address])),
        ("headers", json!(headers)),
        ("url", json!(asked.target)),
        ("host", json!(asked.header("host").unwrap_or_default())),
        ("method", json!(asked.method)),
        ("name", json!(name)),
        ("remoteAddr", json!(asked.from)),
    ];
    members
        .retain(|(own, value)| !(*own == "name" && value == "" || *own == "headers" && headers.is_empty()));
    if let Some(around) = around.filter(|around| !around.variables.is_empty() && wants_variables(asked)) {
        members.push(("environ", json!(around.variables)));
    }
    let mut answered = WebAnswer::typed(200, "application/json", format!("{}\n", object(&members)));
    answered.headers.push(("access-control-allow-methods", "*".to_owned()));
    answered.headers.push(("access-control-allow-origin", "*".to_owned()));
    answered
}

/// With its members in this order.
fn object(members: &[(&str, serde_json::Value)]) -> String {
    let member = |(name, value): &(&str, serde_json::Value)| format!("\"{name}\":{value}");
    format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
}

/// `ealen/echo-server`: what somebody tells it by parameters or headers goes before the usual answer.
fn ealen_echo(asked: &WebRequest<'_>, around: Option<&Surroundings>) -> WebAnswer {
    let query = asked.target.split_once('?').map_or("", |(_, query)| query);
    let told =
        |name: &str, header: &str| asked.header(header).map(str::to_owned).or_else(|| parameter(query, name));
    let codes = told("echo_code", "x-echo-code");
    let code = codes.as_deref().and_then(|codes| codes.split('-').next()?.parse().ok());
    let code = code.filter(|code| (200..600).contains(code)).unwrap_or(200);
    let wait = told("echo_time", "x-echo-time").and_then(|wait| wait.parse().ok()).unwrap_or(0);
    let variable = told("echo_env_body", "x-echo-env-body");
    let variable = variable
        .map(|name| around.and_then(|around| around.variables.get(&name)).cloned().unwrap_or_default());
    let body = match told("echo_body", "x-echo-body").or(variable) {
        Some(text) => match serde_json::from_str::<serde_json::Value>(&text) {
            Ok(value) => value.to_string(),
            Err(_) => json!(text).to_string(),
        },
        None => {
            let environment = around.map_or(json!({}), |around| json!(around.variables));
            let mut members = ealen_members(asked);
            members.push(("environment", environment));
            object(&members)
        }
    };
    let mut answered = WebAnswer::typed(code, "application/json; charset=utf-8", body);
    // It waits no longer than a minute.
    answered.delay = std::time::Duration::from_millis(u64::min(wait, 60_000));
    answered
}

fn ealen_members(asked: &WebRequest<'_>) -> Vec<(&'static str, serde_json::Value)> {
    let (path, query) = asked.target.split_once('?').unwrap_or((asked.target, ""));
    let names = query.split('&').filter_map(|pair| pair.split('=').next()).filter(|name| !name.is_empty());
    let query: serde_json::Map<_, _> =
        names.map(|name| (name.to_owned(), json!(parameter(query, name).unwrap_or_default()))).collect();
    let host = asked.header("host").unwrap_or_default();
    let (from, _) = asked.client();
    let headers: serde_json::Map<_, _> =
        asked.headers.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    vec![
        ("host", json!({"hostname": host.split(':').next(), "ip": format!("::ffff:{from}"), "ips": []})),
        (
            "http",
            json!({"method": asked.method, "baseUrl": "", "originalUrl": asked.target, "protocol": "http"}),
        ),
        (
            "request",
            json!({"params": {"0": path}, "query": query, "cookies": {}, "body": sent(asked), "headers": headers}),
        ),
    ]
}

/// What was sent: JSON and forms are read.
fn sent(asked: &WebRequest<'_>) -> serde_json::Value {
    let kind = asked.header("content-type").unwrap_or_default();
    let text = String::from_utf8_lossy(asked.body);
    if kind.starts_with("application/json") {
        return serde_json::from_str(&text).unwrap_or(json!({}));
    }
    if kind.starts_with("application/x-www-form-urlencoded") {
        let names = text.split('&').filter_map(|pair| pair.split('=').next()).filter(|name| !name.is_empty());
        let pairs = names.map(|name| (name.to_owned(), json!(parameter(&text, name).unwrap_or_default())));
        return pairs.collect::<serde_json::Map<_, _>>().into();
    }
    json!({})
}

/// A line of bunyan's.
fn ealen_log(asked: &WebRequest<'_>, at: DateTime<Utc>) -> String {
    let host = asked.header("host").unwrap_or_default();
    let message = format!("{} | [{}] - http://{host}{}", http_time(at), asked.method, asked.target);
    let mut members = vec![
        ("name", json!("echo-server")),
        ("hostname", json!(asked.host_name)),
        ("pid", json!(1)),
        ("level", json!(30)),
    ];
    members.extend(ealen_members(asked));
    members.push(("msg", json!(message)));
    members.push(("time", json!(at.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())));
    members.push(("v", json!(0)));
    object(&members)
}

/// The echoserver of Kubernetes' own examples; 1.4 wrote it in another form than those after it.
fn echo_server(tag: &str, asked: &WebRequest<'_>) -> String {
    let WebRequest { method, target, host_name, .. } = asked;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (from, _) = asked.client();
    let uri = format!("http://{}{target}", asked.header("host").unwrap_or_default());
    let headers = |indent: &str| {
        asked.headers.iter().map(|(name, value)| format!("{indent}{name}={value}\n")).collect::<String>()
    };
    let body = match asked.body {
        [] => "-no body in request-".to_owned(),
        body => byte_text::text_of(body),
    };
    if tag == "1.4" {
        let query = if query.is_empty() { "nil" } else { query };
        return format!(
            "CLIENT VALUES:\nclient_address={from}\ncommand={method}\nreal path={path}\nquery={query}\n\
             request_version=1.1\nrequest_uri={uri}\n\nSERVER VALUES:\n\
             server_version=nginx: 1.10.0 - lua: 10001\n\n\
             HEADERS RECEIVED:\n{}BODY:\n{body}",
            headers("")
        );
    }
    format!(
        "\n\nHostname: {host_name}\n\nPod Information:\n\t-no pod information available-\n\n\
         Server values:\n\tserver_version=nginx: 1.13.3 - lua: 10008\n\n\
         Request Information:\n\tclient_address={from}\n\tmethod={method}\n\treal path={path}\n\tquery={query}\n\trequest_version=1.1\n\t\
         request_scheme=http\n\trequest_uri={uri}\n\n\
         Request Headers:\n{}\nRequest Body:\n\t{body}\n\n",
        headers("\t")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked<'a>(method: &'a str, target: &'a str, body: &'a [u8]) -> WebRequest<'a> {
        WebRequest {
            method,
            target,
            headers: vec![("accept", "*/*"), ("user-agent", "curl/8"), ("host", "web")],
            from: "10.0.0.9:4000",
            host_name: "web-0",
            address: "10.0.0.1",
            body,
            ..WebRequest::default()
        }
    }

    fn say(speaker: &Speaker, asked: &WebRequest<'_>) -> WebAnswer {
        speaker.answer(asked, &mut ServerState::default(), None)
    }

    #[test]
    fn whoami_has_its_routes() {
        let joe = Speaker::WhoAmI { name: "joe".to_owned(), is_verbose: true };
        let page = say(&joe, &asked("POST", "/a?b", b"hello")).body;
        let wanted = "Name: joe\nHostname: web-0\nIP: 127.0.0.1\nIP: 10.0.0.1\nRemoteAddr: 10.0.0.9:4000\n\
            POST /a?b HTTP/1.1\r\nHost: web\r\nUser-Agent: curl/8\r\nAccept: */*\r\n\r\nhello";
        assert_eq!(page, wanted);
        assert_eq!(say(&joe, &asked("GET", "/data?size=5", b"")).body, "|ABC|");
        assert_eq!(say(&joe, &asked("GET", "/data?size=1&unit=KB", b"")).body.len(), 1024);
        assert_eq!(say(&joe, &asked("GET", "/bench", b"")).body, "1");
        assert_eq!(say(&joe, &asked("GET", "/?wait=2s", b"")).delay.as_secs(), 2);
        let api = say(&joe, &asked("GET", "/api", b""));
        let wanted = "{\"hostname\":\"web-0\",\"ip\":[\"127.0.0.1\",\"10.0.0.1\"],\"headers\":{\"Accept\":[\"*/*\"],\
            \"User-Agent\":[\"curl/8\"]},\"url\":\"/api\",\"host\":\"web\",\"method\":\"GET\",\"name\":\"joe\",\
            \"remoteAddr\":\"10.0.0.9:4000\"}\n";
        assert_eq!(api.body, wanted);
        let line = joe.log_line(&asked("GET", "/a?b", b""), &api, DateTime::UNIX_EPOCH, "");
        let wanted =
            "1970/01/01 00:00:00 10.0.0.9:4000 - - [01/Jan/1970:00:00:00 +0000] \"GET /a HTTP/1.1\" - -";
        assert_eq!(line.as_deref(), Some(wanted));
    }

    #[test]
    fn whoami_is_as_well_as_it_is_told() {
        let whoami = Speaker::WhoAmI { name: String::new(), is_verbose: false };
        let mut state = ServerState::default();
        let mut code = |asked: &WebRequest<'_>| whoami.answer(asked, &mut state, None).code;
        assert_eq!(code(&asked("GET", "/health", b"")), 200);
        assert_eq!(code(&asked("POST", "/health", b"503")), 200);
        assert_eq!(code(&asked("GET", "/health", b"")), 503);
        assert_eq!(code(&asked("POST", "/health", b"well")), 400);
    }

    #[test]
    fn echo_servers_say_what_was_sent() {
        for tag in ["1.4", "1.10"] {
            let said = say(&Speaker::EchoServer(tag.to_owned()), &asked("POST", "/", b"hello")).body;
            assert!(said.trim_end().ends_with("hello"), "{said}");
            let said = say(&Speaker::EchoServer(tag.to_owned()), &asked("GET", "/", b"")).body;
            assert!(said.trim_end().ends_with("-no body in request-"), "{said}");
        }
        let mut posted = asked("POST", "/a?echo_code=404&x=y%20z", b"{\"a\":1}");
        posted.headers.push(("content-type", "application/json"));
        let said = say(&Speaker::EalenEcho, &posted);
        let read: serde_json::Value = serde_json::from_str(&said.body).unwrap();
        assert_eq!((said.code, &read["request"]["body"]["a"]), (404, &json!(1)));
        assert_eq!(
            (&read["request"]["query"]["x"], &read["host"]["hostname"]),
            (&json!("y z"), &json!("web"))
        );
        let said = say(&Speaker::EalenEcho, &asked("GET", "/?echo_body=hi&echo_time=300", b""));
        assert_eq!((said.body.as_str(), said.delay.as_millis()), ("\"hi\"", 300));
        let line = Speaker::EalenEcho.log_line(&asked("GET", "/a", b""), &said, DateTime::UNIX_EPOCH, "");
        assert!(line.unwrap().contains("\"msg\":\"Thu, 01 Jan 1970 00:00:00 GMT | [GET] - http://web/a\""));
    }

    #[test]
    fn http_echo_has_its_code_and_its_health() {
        let echo = Speaker::HttpEcho("hi".to_owned(), 201);
        let said = say(&echo, &asked("GET", "/any", b""));
        assert_eq!((said.code, said.body.as_str(), echo.code("/any")), (201, "hi\n", Some(201)));
        assert!(said.headers.contains(&("x-app-name", "http-echo".to_owned())));
        let said = say(&echo, &asked("GET", "/health", b""));
        assert_eq!(
            (said.code, said.body.as_str(), echo.code("/health")),
            (200, "{\"status\":\"ok\"}\n", Some(200))
        );
    }
}
