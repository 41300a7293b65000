//! `wget`, as BusyBox has it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::resolver::resolve;
use crate::byte_text;
use crate::interpreter::player::{AfterCommand, Player};
use crate::questions::{self, HttpQuestion, NetworkAsk, NetworkReply, Question, TlsTrust, WebReply};
use crate::url::{BadUrl, WebUrl};

/// How long it waits unless `-T` says otherwise.
const TIMEOUT: Duration = Duration::from_secs(900);
/// So many redirects are followed.
const MAX_REDIRECTS: usize = 5;

#[derive(Debug)]
struct WgetOptions<'a> {
    urls: Vec<&'a str>,
    is_quiet: bool,
    is_spider: bool,
    shows_head: bool,
    is_insecure: bool,
    output: Option<&'a str>,
    post: Option<String>,
    headers: Vec<(String, String)>,
    timeout: Duration,
}

pub(super) fn run(player: &mut Player<'_>, words: &[&str]) -> Result<(), AfterCommand> {
    let options = match parse(words) {
        Ok(options) => options,
        Err(why) => {
            player.fail(&format!("wget: {why}\n"));
            return Ok(());
        }
    };
    if options.urls.is_empty() {
        player.fail(
            "BusyBox v1.37.0 multi-call binary.\n\nUsage: wget [-cqS] [--spider] [-O FILE] [-T SEC] URL...\n",
        );
    }
    for url in &options.urls {
        if let Err(why) = fetch(player, &options, url)? {
            player.fail(&format!("wget: {why}\n"));
        }
    }
    Ok(())
}

fn parse<'a>(words: &[&'a str]) -> Result<WgetOptions<'a>, String> {
    let mut options = WgetOptions {
        urls: vec![],
        is_quiet: false,
        is_spider: false,
        shows_head: false,
        is_insecure: false,
        output: None,
        post: None,
        headers: vec![],
        timeout: TIMEOUT,
    };
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        if let Some(long) = word.strip_prefix("--") {
            long_option(&mut options, long, &mut words)?;
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            short_options(&mut options, letters, &mut words)?;
        } else {
            options.urls.push(word);
        }
    }
    Ok(options)
}

fn long_option<'a>(
    options: &mut WgetOptions<'a>,
    long: &'a str,
    words: &mut impl Iterator<Item = &'a str>,
) -> Result<(), String> {
    let (name, value) = match long.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (long, None),
    };
    let mut value =
        || value.or_else(|| words.next()).ok_or(format!("option '--{name}' requires an argument"));
    match name {
        "spider" => options.is_spider = true,
        "quiet" => options.is_quiet = true,
        "server-response" => options.shows_head = true,
        "no-check-certificate" => options.is_insecure = true,
        "header" => options.headers.extend(header(value()?)),
        "post-data" | "body-data" => options.post = Some(value()?.to_owned()),
        "output-document" => options.output = Some(value()?),
        "user-agent" => options.headers.push(("User-Agent".into(), value()?.to_owned())),
        "timeout" => options.timeout = seconds(value()?)?,
        "tries" | "method" | "proxy" => drop(value()?),
        "no-verbose" | "continue" | "no-proxy" | "show-progress" => {}
        _ => return Err(format!("unrecognized option '--{name}'")),
    }
    Ok(())
}

fn short_options<'a>(
    options: &mut WgetOptions<'a>,
    letters: &'a str,
    words: &mut impl Iterator<Item = &'a str>,
) -> Result<(), String> {
    for (at, letter) in letters.char_indices() {
        let rest = Some(&letters[at + letter.len_utf8()..]).filter(|rest| !rest.is_empty());
        let mut value =
            || rest.or_else(|| words.next()).ok_or(format!("option requires an argument -- '{letter}'"));
        match letter {
            'q' => options.is_quiet = true,
            'S' => options.shows_head = true,
            'c' | 'n' | 'v' | 'd' => {}
            'O' => options.output = Some(value()?),
            'T' => options.timeout = seconds(value()?)?,
            'U' => options.headers.push(("User-Agent".into(), value()?.to_owned())),
            't' | 'Y' | 'P' | 'o' => drop(value()?),
            _ => return Err(format!("unrecognized option '-{letter}'")),
        }
        if "OTUtYPo".contains(letter) {
            break;
        }
    }
    Ok(())
}

fn header(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once(':')?;
    Some((name.trim().to_owned(), value.trim().to_owned()))
}

fn seconds(text: &str) -> Result<Duration, String> {
    text.parse().map(Duration::from_secs).map_err(|_| format!("invalid number '{text}'"))
}

/// The inner error is wget's own.
fn fetch(
    player: &mut Player<'_>,
    options: &WgetOptions<'_>,
    text: &str,
) -> Result<Result<(), String>, AfterCommand> {
    let mut url = match WebUrl::parse(text) {
        Ok(url) => url,
        Err(BadUrl::Protocol(_)) => return Ok(Err(format!("not an http or ftp url: {text}"))),
        Err(BadUrl::Malformed) => return Ok(Err(format!("bad address '{text}'"))),
    };
    for _ in 0..=MAX_REDIRECTS {
        let web = match ask(player, options, &url)? {
            Ok(web) => web,
            Err(why) => return Ok(Err(why)),
        };
        if options.shows_head {
            let lines = web.headers.iter().map(|(name, value)| format!("  {name}: {value}\n"));
            let lines = lines.collect::<String>();
            player.complain(&format!("  HTTP/1.1 {} {}\n{lines}", web.code, questions::phrase(web.code)));
        }
        match (web.code, web.header("location")) {
            (200..=299, _) => return Ok(keep(player, options, &url, &web)),
            (300..=399, Some(location)) => match url.join(location) {
                Ok(next) => url = next,
                Err(_) => return Ok(Err("bad redirection".into())),
            },
            (code, _) => {
                return Ok(Err(format!(
                    "server returned error: HTTP/1.1 {code} {}",
                    questions::phrase(code)
                )));
            }
        }
    }
    Ok(Err("too many redirections".into()))
}

fn ask(
    player: &mut Player<'_>,
    options: &WgetOptions<'_>,
    url: &WebUrl,
) -> Result<Result<Arc<WebReply>, String>, AfterCommand> {
    let Some(address) = resolve(player, &url.host)? else {
        return Ok(Err(format!("bad address '{}'", authority(url))));
    };
    let to = SocketAddr::new(address, url.port);
    if !options.is_quiet {
        player.complain(&format!("Connecting to {} ({to})\n", authority(url)));
    }
    let mut headers =
        vec![("Host".to_owned(), url.authority()), ("User-Agent".to_owned(), "Wget".to_owned())];
    for (name, value) in &options.headers {
        headers.retain(|(own, _)| !own.eq_ignore_ascii_case(name));
        headers.push((name.clone(), value.clone()));
    }
    headers.push(("Connection".to_owned(), "close".to_owned()));
    let question = HttpQuestion {
        to: Some(to),
        method: if options.post.is_some() { "POST" } else { "GET" }.to_owned(),
        target: url.target.clone(),
        headers,
        body: byte_text::bytes_of(options.post.as_deref().unwrap_or_default()).into_owned(),
        // BusyBox looks at no certificate.
        tls: url.is_secure.then(|| TlsTrust {
            server_name: url.host.clone(),
            everybody: true,
            ..TlsTrust::default()
        }),
        ..HttpQuestion::default()
    };
    if url.is_secure && !options.is_insecure && !options.is_quiet {
        player.complain("wget: note: TLS certificate validation not implemented\n");
    }
    let what = NetworkAsk::Http(Box::new(question));
    let cannot = |why: &str| format!("can't connect to remote host ({address}): {why}");
    Ok(match player.ask(Question { what, within: options.timeout })? {
        NetworkReply::Web(web) => Ok(web),
        NetworkReply::Refused => Err(cannot("Connection refused")),
        NetworkReply::Unreachable => Err(cannot("Host is unreachable")),
        NetworkReply::TimedOut(false) if options.timeout == TIMEOUT => Err(cannot("Operation timed out")),
        NetworkReply::TimedOut(_) => Err("download timed out".to_owned()),
        _ => Err("error getting response: Connection reset by peer".to_owned()),
    })
}

/// The usual port is left out, as in what the user typed.
fn authority(url: &WebUrl) -> String {
    url.authority()
}

fn keep(
    player: &mut Player<'_>,
    options: &WgetOptions<'_>,
    url: &WebUrl,
    web: &WebReply,
) -> Result<(), String> {
    if options.is_spider {
        if !options.is_quiet {
            player.complain("remote file exists\n");
        }
        return Ok(());
    }
    let own = url.target.split('?').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    let own = if own.is_empty() { "index.html" } else { own };
    let path = options.output.unwrap_or(own);
    let size = web.body.len();
    let bar = |name: &str| format!("{name:<20} 100% |{}| {size:>5}  0:00:00 ETA\n", "*".repeat(32));
    if path == "-" {
        if !options.is_quiet {
            player.complain(&format!("writing to stdout\n{}written to stdout\n", bar("-")));
        }
        player.say_bytes(&web.body);
        return Ok(());
    }
    if path != "/dev/null" {
        player.write_file(path, web.body.clone()).map_err(|why| format!("can't open '{path}': {why}"))?;
    }
    if !options.is_quiet {
        player.complain(&format!("saving to '{path}'\n{}'{path}' saved\n", bar(path)));
    }
    Ok(())
}
