//! What `curl -v` and `curl -w` tell of a transfer.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::interpreter::player::Player;
use crate::questions::{HttpQuestion, WebReply, phrase};
use crate::url::WebUrl;

/// What `curl --version` says.
pub(super) const VERSION: &str = "curl 8.14.1 (x86_64-alpine-linux-musl) libcurl/8.14.1 OpenSSL/3.5.0 zlib/1.3.1\n\
    Release-Date: 2025-06-04\nProtocols: http https\nFeatures: IPv6 SSL UnixSockets\n";

/// What became of one page: curl's exit code and why, or the answer.
pub(super) struct Fetched {
    pub(super) url: WebUrl,
    pub(super) remote: Option<SocketAddr>,
    pub(super) redirects: usize,
    pub(super) method: String,
    /// The heads of redirects, which `-i` shows, too.
    pub(super) heads: String,
    pub(super) result: Result<WebReplyRef, (i32, String)>,
}

pub(super) type WebReplyRef = std::sync::Arc<WebReply>;

/// Whom it tries to reach, before anything has come.
pub(super) fn tell_trying(player: &mut Player<'_>, url: &WebUrl, to: SocketAddr) {
    let WebUrl { host, port, .. } = url;
    let is_name = host.parse::<std::net::IpAddr>().is_err();
    if is_name {
        let (v6, v4) = match to {
            SocketAddr::V4(_) => ("(none)".to_owned(), to.ip().to_string()),
            SocketAddr::V6(_) => (to.ip().to_string(), "(none)".to_owned()),
        };
        player.complain(&format!("* Host {host}:{port} was resolved.\n* IPv6: {v6}\n* IPv4: {v4}\n"));
    }
    player.complain(&format!("*   Trying {to}...\n"));
}

/// What was asked and what came back, line by line.
pub(super) fn tell_exchange(player: &mut Player<'_>, url: &WebUrl, asked: &HttpQuestion, web: &WebReply) {
    let WebUrl { host, port, .. } = url;
    let Some(to) = asked.to else { return };
    let mut told = format!("* Connected to {host} ({}) port {port}\n", to.ip());
    if let Some(tls) = &asked.tls {
        let unverified = "*  SSL certificate verification failed, continuing anyway.\n";
        let verified = "*  SSL certificate verified via OpenSSL.\n";
        told.push_str(if tls.everybody { unverified } else { verified });
    }
    told.push_str(&format!("* using HTTP/1.x\n> {} {} HTTP/1.1\n", asked.method, asked.target));
    for (name, value) in &asked.headers {
        told.push_str(&format!("> {name}: {value}\n"));
    }
    if !asked.body.is_empty() {
        told.push_str(&format!("> Content-Length: {}\n", asked.body.len()));
    }
    told.push_str("> \n");
    // The bytes themselves are only counted, unless they would stand among these lines anyway.
    let counts = player.terminal().is_none();
    if !asked.body.is_empty() {
        if counts {
            told.push_str(&format!("}} [{} bytes data]\n", asked.body.len()));
        }
        told.push_str(&format!("* upload completely sent off: {} bytes\n", asked.body.len()));
    } else {
        told.push_str("* Request completely sent off\n");
    }
    told.push_str(&format!("< HTTP/1.1 {} {}\n", web.code, phrase(web.code)));
    for (name, value) in &web.headers {
        told.push_str(&format!("< {name}: {value}\n"));
    }
    told.push_str("< \n");
    if counts && !web.body.is_empty() && asked.method != "HEAD" {
        told.push_str(&format!("{{ [{} bytes data]\n", web.body.len()));
    }
    told.push_str(&format!("* Connection #0 to host {host} left intact\n"));
    player.complain(&told);
}

/// What is known of a transfer by the names of `-w`.
fn variables(fetched: &Fetched, size: usize, took: Duration, status: i32) -> Map<String, Value> {
    let web = fetched.result.as_ref().ok();
    let code = web.map_or(0, |web| web.code);
    let seconds = format!("{:.6}", took.as_secs_f64()).parse::<f64>().unwrap_or_default();
    let why = fetched.result.as_ref().err().map(|(_, why)| why.clone());
    let scheme = if fetched.url.is_secure { "https" } else { "http" };
    let known = json!({
        "content_type": web.and_then(|web| web.header("content-type")),
        "errormsg": why, "exitcode": status, "filename_effective": null, "http_code": code,
        "http_connect": 0, "http_version": "1.1", "method": fetched.method, "num_connects": 1,
        "num_headers": web.map_or(0, |web| web.headers.len()), "num_redirects": fetched.redirects,
        "remote_ip": fetched.remote.map(|to| to.ip().to_string()).unwrap_or_default(),
        "remote_port": fetched.remote.map_or(0, |to| to.port()),
        "response_code": code, "scheme": scheme, "size_download": size,
        "ssl_verify_result": 0, "time_appconnect": 0.0, "time_connect": seconds, "time_namelookup": 0.0,
        "time_pretransfer": seconds, "time_redirect": 0.0, "time_starttransfer": seconds,
        "time_total": seconds, "url": fetched.url.to_string(), "url_effective": fetched.url.to_string(),
        "urlnum": 0, "curl_version": "libcurl/8.14.1",
    });
    match known {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// `-w`: variables are filled in, and what they do not know stands for nothing.
pub(super) fn written_out(
    format: &str,
    fetched: &Fetched,
    size: usize,
    took: Duration,
    status: i32,
) -> String {
    let all = variables(fetched, size, took, status);
    let mut said = String::new();
    let format = format.replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r");
    let mut rest = format.as_str();
    while let Some(at) = rest.find('%') {
        said.push_str(&rest[..at]);
        rest = &rest[at..];
        let named =
            rest.strip_prefix("%{").or(rest.strip_prefix("%header{")).and_then(|inner| inner.split_once('}'));
        let Some((name, behind)) = named else {
            said.push('%');
            rest = rest[1..].strip_prefix('%').unwrap_or(&rest[1..]);
            continue;
        };
        let is_header = rest.starts_with("%header{");
        said.push_str(&if is_header { header(fetched, name) } else { value(&all, fetched, name) });
        rest = behind;
    }
    said + rest
}

fn header(fetched: &Fetched, name: &str) -> String {
    let web = fetched.result.as_ref().ok();
    web.and_then(|web| web.header(&name.to_ascii_lowercase())).unwrap_or_default().to_owned()
}

fn value(all: &Map<String, Value>, fetched: &Fetched, name: &str) -> String {
    match name {
        "json" => Value::Object(all.clone()).to_string(),
        "header_json" => {
            let web = fetched.result.as_ref().ok();
            let headers = web.iter().flat_map(|web| &web.headers);
            let pairs = headers.map(|(name, value)| (name.to_ascii_lowercase(), json!([value])));
            Value::Object(pairs.collect()).to_string()
        }
        "http_code" | "response_code" => format!("{:03}", all[name].as_u64().unwrap_or_default()),
        "stdout" | "stderr" => String::new(),
        _ => match all.get(name) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) if name.starts_with("time_") => {
                format!("{:.6}", number.as_f64().unwrap_or_default())
            }
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        },
    }
}
