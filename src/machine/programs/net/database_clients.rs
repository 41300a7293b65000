//! Clients of databases, as far as they look whether somebody is there: `redis-cli`, `pg_isready`,
//! `mysqladmin ping` and their kin.
//!
//! In a container that looks at itself the server is there, whatever its image: nobody knows what it serves,
//! and whoever has such a client in its image serves just that.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::resolver::resolve;
use crate::interpreter::player::{AfterCommand, Player};
use crate::questions::{CONNECT_TIMEOUT, NetworkAsk, NetworkReply, Question};
use crate::shell::{self, Word};

const REDIS: &[&str] = &["redis-cli", "valkey-cli"];
const MYSQL: &[&str] = &["mysqladmin", "mariadb-admin"];
const POSTGRES: &str = "pg_isready";
/// How long `pg_isready` waits unless it is told otherwise.
const READY_TIMEOUT: Duration = Duration::from_secs(3);
/// Flags that have a value, by which neither host nor port is said.
const VALUED: &[&str] =
    &["-a", "--pass", "--user", "-U", "--username", "-d", "--dbname", "-n", "-i", "-r", "-s"];

/// Whether it is one of them.
pub(crate) fn is_known(name: &str) -> bool {
    REDIS.contains(&name) || MYSQL.contains(&name) || name == POSTGRES
}

/// Whether it asks another pod than its own. One that asks itself tells of its image's server, which nobody
/// knows.
pub(crate) fn asks_others(name: &str, arguments: &[Word]) -> bool {
    let words: Vec<&str> = arguments.iter().map(|word| shell::plain(word).unwrap_or_default()).collect();
    is_known(name) && !DatabaseCall::read(name, &words).is_local()
}

/// Whom a client asks, and what.
struct DatabaseCall<'a> {
    host: &'a str,
    port: u16,
    within: Option<Duration>,
    is_quiet: bool,
    /// What redis is told first.
    password: Option<&'a str>,
    /// What is behind the flags.
    words: Vec<&'a str>,
}

impl<'a> DatabaseCall<'a> {
    fn read(name: &str, words: &[&'a str]) -> DatabaseCall<'a> {
        let port = match name {
            POSTGRES => 5432,
            name if MYSQL.contains(&name) => 3306,
            _ => 6379,
        };
        let mut call = DatabaseCall {
            host: "localhost",
            port,
            within: None,
            is_quiet: false,
            password: None,
            words: vec![],
        };
        let mut rest = words.iter().copied();
        while let Some(word) = rest.next() {
            // What stands behind a command is redis' own.
            let is_of_command = REDIS.contains(&name) && !call.words.is_empty();
            if !word.starts_with('-') || is_of_command {
                call.words.push(word);
                continue;
            }
            let (flag, given) = split(word);
            // `mysqladmin -p` has its password behind it without a blank, or none.
            let is_port = flag == "-p" && !MYSQL.contains(&name) || matches!(flag, "-P" | "--port");
            match flag {
                "-h" | "--host" => call.host = given.or_else(|| rest.next()).unwrap_or_default(),
                _ if is_port => {
                    let value = given.or_else(|| rest.next()).unwrap_or_default();
                    call.port = value.parse().unwrap_or(call.port);
                }
                "-t" | "--timeout" => {
                    let value = given.or_else(|| rest.next()).and_then(|value| value.parse().ok());
                    call.within = value.map(Duration::from_secs);
                }
                "-a" | "--pass" if REDIS.contains(&name) => call.password = given.or_else(|| rest.next()),
                "-q" | "--quiet" | "--silent" => call.is_quiet = true,
                "-u" if REDIS.contains(&name) => {
                    let place = given.or_else(|| rest.next()).unwrap_or_default();
                    let place = place.rsplit(['@', '/']).next().unwrap_or_default();
                    let (host, port) = place.split_once(':').unwrap_or((place, "6379"));
                    (call.host, call.port) = (host, port.parse().unwrap_or(call.port));
                }
                "-u" if given.is_some() => {}
                flag if given.is_none() && (flag == "-u" || VALUED.contains(&flag)) => {
                    rest.next();
                }
                _ => {}
            }
        }
        call
    }

    fn is_local(&self) -> bool {
        self.host.starts_with('/')
            || self.host == "localhost"
            || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

/// `--host=web`, `-hweb`, `-h`
fn split(word: &str) -> (&str, Option<&str>) {
    match word.split_once('=') {
        Some((flag, value)) if word.starts_with("--") => (flag, Some(value)),
        _ if word.starts_with("--") || word.len() <= 2 || !word.is_char_boundary(2) => (word, None),
        _ => (&word[..2], Some(&word[2..])),
    }
}

/// Runs one of them.
pub(crate) fn run(player: &mut Player<'_>, name: &str, words: &[&str]) -> Result<(), AfterCommand> {
    let call = DatabaseCall::read(name, words);
    let address =
        if call.is_local() { Some(IpAddr::V4(Ipv4Addr::LOCALHOST)) } else { resolve(player, call.host)? };
    let to = address.map(|address| SocketAddr::new(address, call.port));
    match name {
        POSTGRES => postgres(player, &call, to),
        name if MYSQL.contains(&name) => mysql(player, name, &call, to),
        _ => redis(player, &call, to),
    }
}

/// Whether anybody takes connections there. Whoever is in the container itself does.
fn is_there(
    player: &mut Player<'_>,
    call: &DatabaseCall<'_>,
    to: Option<SocketAddr>,
    within: Duration,
) -> Result<bool, AfterCommand> {
    if call.is_local() {
        return Ok(true);
    }
    let Some(to) = to else { return Ok(false) };
    let what = NetworkAsk::Tcp { to, send: vec![], reads: false };
    let reply = player.ask(Question { what, within })?;
    Ok(matches!(reply, NetworkReply::Bytes(_) | NetworkReply::Empty))
}

fn postgres(
    player: &mut Player<'_>,
    call: &DatabaseCall<'_>,
    to: Option<SocketAddr>,
) -> Result<(), AfterCommand> {
    let host = if call.host == "localhost" { "/var/run/postgresql" } else { call.host };
    let is_ready = is_there(player, call, to, call.within.unwrap_or(READY_TIMEOUT))?;
    let (said, status) = if is_ready { ("accepting connections", 0) } else { ("no response", 2) };
    if !call.is_quiet {
        player.say(&format!("{host}:{} - {said}\n", call.port));
    }
    player.status = status;
    Ok(())
}

fn mysql(
    player: &mut Player<'_>,
    name: &str,
    call: &DatabaseCall<'_>,
    to: Option<SocketAddr>,
) -> Result<(), AfterCommand> {
    let DatabaseCall { host, port, .. } = call;
    let program = if name == "mysqladmin" { "mysqld" } else { "mariadbd" };
    let is_up = is_there(player, call, to, CONNECT_TIMEOUT)?;
    match call.words.first() {
        Some(&"ping") if is_up => player.say(&format!("{program} is alive\n")),
        Some(&("status" | "version")) if is_up => {
            let seconds = player.elapsed.as_secs();
            player.say(&format!("Uptime: {seconds}  Threads: 2  Questions: 1  Slow queries: 0  Opens: 1\n"));
        }
        Some(&("ping" | "status" | "version")) => player.fail(&format!(
            "{name}: connect to server at '{host}' failed\nerror: 'Can't connect to MySQL server on '{host}:{port}' \
             (111)'\nCheck that {program} is running on {host} and that the port is {port}.\n\
             You can check this by doing 'telnet {host} {port}'\n"
        )),
        word => {
            let word = word.copied().unwrap_or_default();
            player.fail(&format!("{name}: Unknown command: '{word}' (this one is not played here)\n"));
        }
    }
    Ok(())
}

fn redis(
    player: &mut Player<'_>,
    call: &DatabaseCall<'_>,
    to: Option<SocketAddr>,
) -> Result<(), AfterCommand> {
    let port = call.port;
    let host = if call.host == "localhost" { "127.0.0.1" } else { call.host };
    let Some(to) = to else {
        player.fail(&format!("Could not connect to Redis at {host}:{port}: Name or service not known\n"));
        return Ok(());
    };
    let read = if call.words.is_empty() { player.input() } else { String::new() };
    let lines: Vec<Vec<&str>> = match call.words.as_slice() {
        [] => read.lines().map(|line| line.split_whitespace().collect()).collect(),
        words => vec![words.to_vec()],
    };
    let mut send = Vec::new();
    let variable = player.variable("REDISCLI_AUTH");
    let password = call.password.or((!variable.is_empty()).then_some(variable.as_str()));
    let first = password.map(|password| vec!["AUTH", password]);
    for words in first.iter().chain(&lines).filter(|words| !words.is_empty()) {
        send.extend(format!("*{}\r\n", words.len()).into_bytes());
        words.iter().for_each(|word| send.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes()));
    }
    let is_ping = call.words.first().is_some_and(|word| word.eq_ignore_ascii_case("ping"));
    let what = NetworkAsk::Tcp { to, send, reads: true };
    match player.ask(Question { what, within: CONNECT_TIMEOUT })? {
        NetworkReply::Bytes(bytes) => {
            let said = String::from_utf8_lossy(&bytes);
            // Of the password only what is wrong with it is told.
            let rest = said.strip_prefix("+OK\r\n").filter(|_| password.is_some());
            let said = plain(rest.unwrap_or(&said));
            player.handle(said.len());
            player.say(&said);
        }
        _ if call.is_local() && is_ping => player.say("PONG\n"),
        _ => player.fail(&format!("Could not connect to Redis at {host}:{port}: Connection refused\n")),
    }
    Ok(())
}

/// RESP as it is printed where no terminal is: values, a line each.
fn plain(said: &str) -> String {
    let mut out = String::new();
    let mut lines = said.split_inclusive("\r\n").map(|line| line.trim_end_matches("\r\n"));
    while let Some(line) = lines.next() {
        let (kind, rest) = line.split_at_checked(1).unwrap_or((line, ""));
        match kind {
            "$" if rest == "-1" => out.push('\n'),
            "$" => out.push_str(&format!("{}\n", lines.next().unwrap_or_default())),
            "*" => {}
            "-" => out.push_str(&format!("{rest}\n\n")),
            "+" | ":" => out.push_str(&format!("{rest}\n")),
            _ => out.push_str(&format!("{line}\n")),
        }
    }
    out
}
