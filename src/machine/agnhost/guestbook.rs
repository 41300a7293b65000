//! agnhost's `guestbook`: a primary that keeps what it is told and tells its replicas, and a front end that
//! asks either by its Service's name.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;

use super::asking::{AskFirst, Backing};
use crate::requests::{WebAnswer, WebRequest, parameter};
use crate::server_state::ServerState;

/// Where its command line says that it listens, and whose replica it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Guestbook {
    pub(crate) backend_port: i64,
    pub(crate) replica_of: Option<String>,
}

#[derive(Deserialize)]
struct PrimaryStore {
    data: BTreeMap<String, String>,
}

const EMPTY_KEY: &str = "cannot set with empty key.";
/// How a client asks.
const GET: &str = "curl -sf --max-time 5 \"$URL\"";

impl Guestbook {
    pub(crate) fn answer(
        &self,
        asked: &WebRequest<'_>,
        state: &mut ServerState,
        backing: Backing<'_>,
    ) -> Result<WebAnswer, Box<AskFirst>> {
        let (path, query) = asked.target.split_once('?').unwrap_or((asked.target, ""));
        let named = |name: &str| parameter(query, name).unwrap_or_default();
        match path {
            "/register" => Ok(register(named("host"), state)),
            "/get" => {
                let data = self.data(asked, state, backing)?;
                let key = named("key");
                let found = if key.is_empty() {
                    json!(data)
                } else {
                    json!(data.get(&key).cloned().unwrap_or_default())
                };
                Ok(WebAnswer::text(200, json!({"data": found}).to_string()))
            }
            "/set" => self.set(named("key"), named("value"), state, backing),
            "/guestbook" => self.front(query, backing),
            _ => Ok(WebAnswer::not_found()),
        }
    }

    /// A replica asks its primary for what that keeps, once; later it is told.
    fn data(
        &self,
        asked: &WebRequest<'_>,
        state: &mut ServerState,
        backing: Backing<'_>,
    ) -> Result<BTreeMap<String, String>, Box<AskFirst>> {
        let Some(primary) = self.replica_of.as_deref().filter(|_| !state.is_registered) else {
            return Ok(state.entries.clone());
        };
        let url = format!("http://{primary}:{}/register?host={}", self.backend_port, asked.address);
        let ran = backing.run(GET, &[("URL", &url)])?;
        if let Ok(PrimaryStore { data }) = serde_json::from_str(&ran.out) {
            state.is_registered = true;
            data.into_iter().for_each(|(key, value)| {
                state.keep(key, value);
            });
        }
        Ok(state.entries.clone())
    }

    fn set(
        &self,
        key: String,
        value: String,
        state: &mut ServerState,
        backing: Backing<'_>,
    ) -> Result<WebAnswer, Box<AskFirst>> {
        if key.is_empty() {
            return Ok(WebAnswer::error(400, EMPTY_KEY));
        }
        let mut script = String::new();
        let mut urls = vec![];
        for (number, replica) in state.replicas.iter().enumerate() {
            let port = self.backend_port;
            urls.push((
                format!("URL{number}"),
                format!("http://{replica}:{port}/set?key={key}&value={value}"),
            ));
            script.push_str(&format!("curl -sf --max-time 5 \"$URL{number}\" > /dev/null || exit 1; "));
        }
        let variables: Vec<(&str, &str)> = urls.iter().map(|(name, url)| (&**name, &**url)).collect();
        let ran = backing.run(&script, &variables)?;
        if !state.keep(key, value) {
            return Ok(WebAnswer::error(417, "the guestbook is full"));
        }
        if ran.end.is_none_or(|(_, code)| code != 0) {
            return Ok(WebAnswer::error(417, "encountered error while propagating to a replica"));
        }
        Ok(WebAnswer::text(200, json!({"message": "Updated"}).to_string()))
    }

    fn front(&self, query: &str, backing: Backing<'_>) -> Result<WebAnswer, Box<AskFirst>> {
        let named = |name: &str| parameter(query, name).unwrap_or_default();
        let (command, key, value) = (named("cmd").to_ascii_lowercase(), named("key"), named("value"));
        let host = match command.as_str() {
            "set" if key.is_empty() => return Ok(WebAnswer::error(400, EMPTY_KEY)),
            "set" => "agnhost-primary",
            "get" => "agnhost-replica",
            other => return Ok(WebAnswer::error(400, format!("unsupported cmd: '{other}'"))),
        };
        let url = format!("http://{host}:{}/{command}?key={key}&value={value}", self.backend_port);
        let ran = backing.run(GET, &[("URL", &url)])?;
        Ok(match ran.end {
            Some((_, 0)) => WebAnswer::text(200, ran.out),
            Some((_, 6)) => {
                let why = format!("lookup {host}: no such host");
                WebAnswer::error(400, format!("host and/or port param are invalid. {why}"))
            }
            _ => WebAnswer::error(417, format!("encountered error: nobody answers at {host}")),
        })
    }
}

/// What it writes into its log of a request.
pub(crate) fn logged(asked: &WebRequest<'_>) -> Option<String> {
    let (path, query) = asked.target.split_once('?').unwrap_or((asked.target, ""));
    let names: &[&str] = match path {
        "/register" => &["host"],
        "/get" => &["key"],
        "/set" => &["key", "value"],
        "/guestbook" => &["cmd", "key", "value"],
        _ => return None,
    };
    let told = names.iter().map(|name| format!("{name}={}", parameter(query, name).unwrap_or_default()));
    Some(format!("GET {path}?{}", told.collect::<Vec<_>>().join("&")))
}

fn register(host: String, state: &mut ServerState) -> WebAnswer {
    let kept = json!({"data": state.entries}).to_string();
    state.register(host);
    WebAnswer::text(200, kept)
}
