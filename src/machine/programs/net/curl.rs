//! `curl`, as version 8 speaks.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::curl_body::{self, CurlBody};
use super::curl_options::CurlOptions;
use super::curl_source::{self, CurlSource};
use super::curl_telling::{self, Fetched, VERSION, WebReplyRef, written_out};
use super::resolver::resolve_of;
use crate::byte_text;
use crate::interpreter::player::{AfterCommand, Player};
use crate::programs::names::base_name;
use crate::questions::{self, HttpQuestion, NetworkAsk, NetworkReply, Question, TlsTrust, WebReply};
use crate::url::{BadUrl, WebUrl};

/// So many redirects are followed unless another number is given.
const MAX_REDIRECTS: usize = 50;
/// How long curl waits for a connection unless it is told otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(300);
/// The longest pause between retries.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(600);

pub(super) fn run(player: &mut Player<'_>, words: &[&str]) -> Result<(), AfterCommand> {
    let options = match CurlOptions::parse(words) {
        Ok(options) if options.tells_version => {
            player.say(VERSION);
            return Ok(());
        }
        Ok(options) if options.urls.is_empty() => {
            player.complain("curl: (2) no URL specified\n");
            player.status = 2;
            return Ok(());
        }
        Ok(options) => options,
        Err(why) => {
            player.complain(&why);
            player.status = 2;
            return Ok(());
        }
    };
    for url in &options.urls {
        let begun = player.elapsed;
        let fetched = with_retries(player, &options, url)?;
        if let Some(fetched) = fetched {
            tell(player, &options, &fetched, begun);
        }
    }
    Ok(())
}

/// Nothing when the text is no address: that is told already.
fn with_retries(
    player: &mut Player<'_>,
    options: &CurlOptions,
    text: &str,
) -> Result<Option<Fetched>, AfterCommand> {
    let url = match WebUrl::parse(text) {
        Ok(url) => url,
        Err(BadUrl::Malformed) => {
            fail(player, options, 3, "URL rejected: Malformed input to a URL function");
            return Ok(None);
        }
        Err(BadUrl::Protocol(name)) => {
            fail(player, options, 1, &format!("Protocol \"{name}\" not supported"));
            return Ok(None);
        }
    };
    let (mut left, mut pause) = (options.retries, Duration::from_secs(1));
    loop {
        let fetched = follow(player, options, url.clone())?;
        if left == 0 || !is_worth_a_retry(options, &fetched) {
            return Ok(Some(fetched));
        }
        let delay = options.retry_delay.unwrap_or(pause);
        if !options.is_silent {
            let (seconds, many) = (delay.as_secs(), if left == 1 { "retry" } else { "retries" });
            player.complain(&format!(
                "Warning: Problem: transient error. Will retry in {seconds} seconds. {left} {many} left.\n"
            ));
        }
        go(player.sleep(delay))?;
        left -= 1;
        pause = (pause * 2).min(MAX_RETRY_DELAY);
    }
}

fn is_worth_a_retry(options: &CurlOptions, fetched: &Fetched) -> bool {
    match &fetched.result {
        Ok(web) => matches!(web.code, 408 | 429 | 500 | 502 | 503 | 504),
        Err((7, _)) => options.retries_refused,
        Err((code, _)) => *code == 28 || *code == 6,
    }
}

/// One page, and where it leads.
fn follow(player: &mut Player<'_>, options: &CurlOptions, mut url: WebUrl) -> Result<Fetched, AfterCommand> {
    let begun = player.elapsed;
    let mut redirects = 0;
    let mut heads = String::new();
    let mut method = method(options);
    // What comes from an input is read once, however often it is sent.
    let mut sent = match sent_first(player, options, &method) {
        Ok(sent) => sent,
        Err(failed) => {
            return Ok(Fetched { url, remote: None, redirects, method, heads, result: Err(failed) });
        }
    };
    loop {
        let (remote, result) = fetch(player, options, &url, (&method, &sent), begun)?;
        let location = match &result {
            Ok(web) if options.follows && (300..400).contains(&web.code) => {
                web.header("location").map(str::to_owned)
            }
            _ => None,
        };
        let next = location.and_then(|location| url.join(&location).ok());
        let Some(next) = next else {
            return Ok(Fetched { url, remote, redirects, method, heads, result });
        };
        if redirects == options.max_redirects.unwrap_or(MAX_REDIRECTS) {
            let why = format!("Maximum ({redirects}) redirects followed");
            return Ok(Fetched { url, remote, redirects, method, heads, result: Err((47, why)) });
        }
        if let Ok(web) = &result {
            heads.push_str(&head(web));
            // What was posted is fetched where the answer says; a method that somebody named stays.
            if web.code == 303 || (matches!(web.code, 301 | 302) && posts(options)) {
                sent = CurlBody::default();
                if options.method.is_none() && !options.is_head {
                    method = "GET".into();
                }
            }
        }
        if options.is_verbose {
            player.complain(&format!("* Issue another request to this URL: '{next}'\n"));
        }
        url = next;
        redirects += 1;
    }
}

fn method(options: &CurlOptions) -> String {
    match &options.method {
        Some(method) => method.clone(),
        None if options.is_head => "HEAD".into(),
        None if options.upload.is_some() => "PUT".into(),
        None if !options.forms.is_empty() => "POST".into(),
        None if !options.data.is_empty() && !options.puts_data_in_url => "POST".into(),
        None => "GET".into(),
    }
}

/// Whether it has something to post.
fn posts(options: &CurlOptions) -> bool {
    options.upload.is_none()
        && !options.puts_data_in_url
        && !(options.forms.is_empty() && options.data.is_empty())
}

fn sent_first(
    player: &mut Player<'_>,
    options: &CurlOptions,
    method: &str,
) -> Result<CurlBody, (i32, String)> {
    if method == "HEAD" || options.puts_data_in_url {
        return Ok(CurlBody::default());
    }
    curl_body::body(player, options)
}

type CurlOutcome = (Option<SocketAddr>, Result<WebReplyRef, (i32, String)>);

fn fetch(
    player: &mut Player<'_>,
    options: &CurlOptions,
    url: &WebUrl,
    (method, sent): (&str, &CurlBody),
    begun: Duration,
) -> Result<CurlOutcome, AfterCommand> {
    let given = options.resolve.iter().find_map(|given| given_address(given, url));
    let address = match given {
        Some(address) => Some(address),
        None => resolve_of(player, &url.host, options.family)?,
    };
    let Some(address) = address else {
        return Ok((None, Err((6, format!("Could not resolve host: {}", url.host)))));
    };
    let to = SocketAddr::new(address, url.port);
    match options.interface.as_deref().map(|wanted| curl_source::begin_at(player, wanted, to)).transpose()? {
        None | Some(CurlSource::There) => {}
        Some(CurlSource::Astray) => return Ok((Some(to), outcome(NetworkReply::Refused, url, 0))),
        Some(CurlSource::Missing(code, why)) => return Ok((None, Err((code, why)))),
    }
    let trust = match (url.is_secure, trust(player, options, url)) {
        (false, _) => None,
        (true, Ok(trust)) => Some(trust),
        (true, Err(failed)) => return Ok((Some(to), Err(failed))),
    };
    let spent = player.elapsed.saturating_sub(begun);
    let left = options.max_time.map(|all| all.saturating_sub(spent));
    let within = left.into_iter().chain([options.connect_timeout.unwrap_or(CONNECT_TIMEOUT)]).min();
    // Without a limit on the whole only the connection is waited for.
    let within = if options.max_time.is_some() { left } else { within };
    let question = HttpQuestion {
        to: Some(to),
        method: method.to_owned(),
        target: target(player, options, url),
        headers: headers(options, url, sent),
        body: sent.bytes.clone(),
        tls: trust,
        ..HttpQuestion::default()
    };
    if options.is_verbose {
        curl_telling::tell_trying(player, url, to);
    }
    let connect_within = options.connect_timeout.filter(|_| options.max_time.is_none());
    let within = connect_within.or(within).unwrap_or(CONNECT_TIMEOUT);
    let asked = question.clone();
    let reply = player.ask(Question { what: NetworkAsk::Http(Box::new(question)), within })?;
    if let NetworkReply::Web(web) = &reply
        && options.is_verbose
    {
        curl_telling::tell_exchange(player, url, &asked, web);
    }
    let waited = player.elapsed.saturating_sub(begun).as_millis();
    Ok((Some(to), outcome(reply, url, waited)))
}

/// `--resolve HOST:PORT:ADDRESS`
fn given_address(given: &str, url: &WebUrl) -> Option<IpAddr> {
    let rest = given.strip_prefix(url.host.as_str())?.strip_prefix(':')?;
    rest.strip_prefix(&url.port.to_string())?.strip_prefix(':')?.parse().ok()
}

fn outcome(reply: NetworkReply, url: &WebUrl, waited: u128) -> Result<WebReplyRef, (i32, String)> {
    let WebUrl { host, port, .. } = url;
    Err(match reply {
        NetworkReply::Web(web) => return Ok(web),
        NetworkReply::TimedOut(false) => (28, format!("Connection timed out after {waited} milliseconds")),
        NetworkReply::TimedOut(true) => {
            (28, format!("Operation timed out after {waited} milliseconds with 0 bytes received"))
        }
        NetworkReply::Empty => (52, "Empty reply from server".to_owned()),
        NetworkReply::NoTls => {
            (35, "TLS connect error: error:0A00010B:SSL routines::wrong version number".to_owned())
        }
        NetworkReply::Untrusted => (60, UNTRUSTED.to_owned()),
        NetworkReply::Peer(_) | NetworkReply::Bytes(_) | NetworkReply::Echo => {
            (1, "Received HTTP/0.9 when not allowed".to_owned())
        }
        NetworkReply::Refused | NetworkReply::Unreachable => (
            7,
            format!("Failed to connect to {host} port {port} after {waited} ms: Could not connect to server"),
        ),
    })
}

const UNTRUSTED: &str = "SSL certificate problem: unable to get local issuer certificate\n\
    More details here: https://curl.se/docs/sslcerts.html\n\n\
    curl failed to verify the legitimacy of the server and therefore could not\n\
    establish a secure connection to it. To learn more about this situation and\n\
    how to fix it, please visit the webpage mentioned above.";

fn trust(player: &Player<'_>, options: &CurlOptions, url: &WebUrl) -> Result<TlsTrust, (i32, String)> {
    let authorities = match &options.authorities {
        Some(path) => player.file(path).map(|file| file.text()).ok_or_else(|| {
            (77, format!("error setting certificate verify locations:  CAfile: {path} CApath: none"))
        })?,
        None => String::new(),
    };
    Ok(TlsTrust {
        server_name: url.host.clone(),
        everybody: options.is_insecure,
        authorities,
        own: own_identity(player, options)?,
    })
}

/// The files of its own certificate and key, one behind the other.
fn own_identity(player: &Player<'_>, options: &CurlOptions) -> Result<String, (i32, String)> {
    let mut own = String::new();
    for path in options.certificate.iter().chain(&options.key) {
        let missing = || {
            (
                58,
                format!(
                    "could not load PEM client certificate from {path}, (no key found, wrong pass phrase, or wrong file format?)"
                ),
            )
        };
        own.push_str(&player.file(path).ok_or_else(missing)?.text());
        own.push('\n');
    }
    Ok(own)
}

fn target(player: &mut Player<'_>, options: &CurlOptions, url: &WebUrl) -> String {
    let uploads_into = options.upload.as_deref().filter(|path| url.target.ends_with('/') && *path != "-");
    if let Some(path) = uploads_into {
        return format!("{}{}", url.target, base_name(path));
    }
    if !options.puts_data_in_url || options.data.is_empty() {
        return url.target.clone();
    }
    let joint = if url.target.contains('?') { '&' } else { '?' };
    format!("{}{joint}{}", url.target, curl_body::data(player, options))
}

fn headers(options: &CurlOptions, url: &WebUrl, sent: &CurlBody) -> Vec<(String, String)> {
    use base64::Engine;
    let agent = options.agent.clone().unwrap_or_else(|| "curl/8.14.1".into());
    let mut headers = vec![
        ("Host".to_owned(), url.authority()),
        ("User-Agent".to_owned(), agent),
        ("Accept".to_owned(), "*/*".to_owned()),
    ];
    if let Some(user) = options.user.as_ref().or(url.user.as_ref()) {
        let user = base64::engine::general_purpose::STANDARD.encode(user);
        headers.push(("Authorization".to_owned(), format!("Basic {user}")));
    }
    if let Some(media_type) = &sent.media_type {
        headers.push(("Content-Type".to_owned(), media_type.clone()));
    }
    for (name, value) in &options.headers {
        headers.retain(|(own, _)| !own.eq_ignore_ascii_case(name));
        if !value.is_empty() {
            headers.push((name.clone(), value.clone()));
        }
    }
    headers
}

/// Says what came back, where it is to be said.
fn tell(player: &mut Player<'_>, options: &CurlOptions, fetched: &Fetched, begun: Duration) {
    let is_error = |web: &WebReply| web.code >= 400 && (options.fails || options.fails_with_body);
    let mut size = 0;
    match &fetched.result {
        Ok(web) => {
            let is_hidden = options.is_head || (options.fails && is_error(web));
            let shows_body = !is_hidden;
            size = if shows_body { web.body.len() } else { 0 };
            let mut said = String::new();
            if options.includes_headers || options.is_head {
                said = fetched.heads.clone() + &head(web);
            }
            if shows_body {
                said.push_str(&byte_text::text_of(&web.body));
            }
            dump_heads(player, options, &(fetched.heads.clone() + &head(web)));
            meter(player, options, size);
            put(player, options, &fetched.url, said);
            if is_error(web) {
                fail(player, options, 22, &format!("The requested URL returned error: {}", web.code));
            }
        }
        Err((code, why)) => fail(player, options, *code, why),
    }
    if let Some(format) = &options.write_out {
        let said = written_out(format, fetched, size, player.elapsed.saturating_sub(begun), player.status);
        player.say(&said);
    }
}

/// `-D FILE`
fn dump_heads(player: &mut Player<'_>, options: &CurlOptions, heads: &str) {
    match options.heads_to.as_deref() {
        None => {}
        Some("-") => player.say(heads),
        Some(path) => {
            if let Err(why) = player.write_file(path, heads.as_bytes().to_vec()) {
                fail(
                    player,
                    options,
                    23,
                    &format!("Failed writing received data to disk/application: {why}"),
                );
            }
        }
    }
}

/// curl shows how far it is unless it is told not to.
fn meter(player: &mut Player<'_>, options: &CurlOptions, size: usize) {
    if options.is_silent || options.is_head {
        return;
    }
    player.complain(METER_HEAD);
    player.complain(&format!(
        "\r100 {size:5}  100 {size:5}    0     0 {size:6}      0 --:--:-- --:--:-- --:--:-- {size:5}\n"
    ));
}

const METER_HEAD: &str = "  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current\n\
     \x20                                Dload  Upload   Total   Spent    Left  Speed\n";

fn put(player: &mut Player<'_>, options: &CurlOptions, url: &WebUrl, said: String) {
    let own = url.target.split('?').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    let path = options.output.as_deref().or(Some(own).filter(|_| options.names_output));
    match path {
        None | Some("-") => player.say(&said),
        Some("/dev/null") => {}
        Some(path) => {
            if let Err(why) = player.write_file(path, byte_text::bytes_of(&said).into_owned()) {
                let text = format!("client returned ERROR on write, {path}: {why}");
                fail(player, options, 23, &text);
            }
        }
    }
}

fn head(web: &WebReply) -> String {
    let phrase = questions::phrase(web.code);
    let headers = web.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    format!("HTTP/1.1 {} {phrase}\r\n{}\r\n", web.code, headers.collect::<String>())
}

fn fail(player: &mut Player<'_>, options: &CurlOptions, code: i32, why: &str) {
    if !options.is_silent || options.shows_errors {
        player.complain(&format!("curl: ({code}) {why}\n"));
    }
    player.status = code;
}

/// What is not to go on ends whoever asked.
fn go(flow: AfterCommand) -> Result<(), AfterCommand> {
    if flow == AfterCommand::Go { Ok(()) } else { Err(flow) }
}
