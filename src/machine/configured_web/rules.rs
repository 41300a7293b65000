//! What a configured server does with a request: its hosts, and their rules.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::apache_environment::EnvironmentChange;
use super::apache_expressions::RequestFacts;
use super::header_changes::{self, HeaderChange};
use super::paths::{self, PathPattern};
use crate::agnhost::asking::{AskFirst, Backing};
use crate::passing_on::PassedRequest;
use crate::requests::{WebAnswer, WebRequest, canonical};
use crate::served_files;
use crate::url::WebUrl;

/// So deep do rules stand in rules; what stands deeper is not followed.
const MAX_DEPTH: usize = 16;
/// So long whoever is asked behind it has time.
const PASSED_WITHIN: Duration = Duration::from_secs(60);

/// What a server reads when it starts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConfiguredWeb {
    /// What it serves.
    pub(crate) rules: Arc<WebRules>,
    /// What it says of that when it starts.
    pub(crate) says: Vec<String>,
}

/// What keeps one from starting: its last words, and its code.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BadConfig {
    pub(crate) says: String,
    pub(crate) code: i32,
}

/// All of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WebRules {
    /// What it calls itself in answers.
    pub(super) name: String,
    pub(crate) hosts: Vec<RuledHost>,
    /// The page of its image, where its files are those of the image: the folder, and the page.
    pub(super) welcome: (&'static str, &'static str),
    /// What is answered where no rule says anything: a missing page, or an empty one.
    pub(super) ends_missing: bool,
}

/// Those who ask for some names at a port.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RuledHost {
    pub(crate) port: i64,
    /// Whichever, where none is named.
    pub(super) names: Vec<String>,
    /// Files of its certificate and key, where it speaks TLS; empty ones are its own.
    pub(crate) tls: Option<(String, String)>,
    pub(super) rules: Vec<WebRule>,
}

/// What is done for some paths.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WebRule {
    pub(super) paths: PathPattern,
    pub(super) action: RuleAction,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum RuleAction {
    /// The folder of files from here on.
    Root(String),
    /// A header of the answer is another.
    Header(HeaderChange),
    /// Variables of the request are others.
    Environment(EnvironmentChange),
    /// A path instead of the one that was asked for.
    Rewrite(String),
    /// Without this at its beginning.
    StripPrefix(String),
    /// A code and a text.
    Respond(u16, String),
    /// Somewhere else; what is behind the path that is meant comes behind it, where that is told.
    Redirect(u16, String, bool),
    /// Files: what is served for folders, and whether those are listed. What is not there goes on, or not.
    Files(Vec<String>, bool),
    /// The first of these paths that is a file, instead of the one that was asked for.
    TryFiles(Vec<String>),
    /// Whoever is behind it, in turn; and headers that he is told instead.
    Pass(Vec<String>, Vec<(String, String)>),
    /// One of several blocks: of those in a row the first that is meant. Whether its path is taken away.
    Handle(Vec<WebRule>, bool),
}

/// A request on its way through rules.
struct RuledRequest<'a> {
    rules: &'a WebRules,
    asked: &'a WebRequest<'a>,
    backing: Backing<'a>,
    path: String,
    query: String,
    root: String,
    headers: Vec<HeaderChange>,
    environment: BTreeMap<String, String>,
    /// The answer is that of somebody behind.
    is_passed_on: bool,
}

type RuledAnswer = Result<Option<WebAnswer>, Box<AskFirst>>;

impl WebRules {
    /// Whether its log tells of each request, unless it is told otherwise.
    pub(crate) fn is_logged(&self) -> bool {
        self.ends_missing
    }

    /// Where it listens.
    pub(crate) fn ports(&self) -> Vec<i64> {
        let mut ports: Vec<i64> = self.hosts.iter().map(|host| host.port).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    pub(crate) fn answer(
        &self,
        port: i64,
        asked: &WebRequest<'_>,
        backing: Backing<'_>,
    ) -> Result<WebAnswer, Box<AskFirst>> {
        let (path, query) = asked.target.split_once('?').unwrap_or((asked.target, ""));
        let path = percent_encoding::percent_decode_str(path).decode_utf8_lossy().into_owned();
        let (query, root) = (query.to_owned(), String::new());
        let headers = vec![];
        let environment = BTreeMap::new();
        let is_passed_on = false;
        let mut request = RuledRequest {
            rules: self,
            asked,
            backing,
            path,
            query,
            root,
            headers,
            environment,
            is_passed_on,
        };
        let answered = match self.host(port, asked) {
            Some(host) => request.follow(&host.rules, 0)?,
            None => None,
        };
        let answered = answered.unwrap_or_else(|| if self.ends_missing { missing() } else { empty() });
        Ok(request.finished(answered))
    }

    /// The one of that name, else the one that takes all, else the first where any name will do.
    fn host(&self, port: i64, asked: &WebRequest<'_>) -> Option<&RuledHost> {
        let asked_for = asked.header("host").unwrap_or_default();
        let name = asked_for.rsplit_once(':').map_or(asked_for, |(name, _)| name);
        let mut own = self.hosts.iter().filter(|host| host.port == port);
        let fits = |pattern: &String| match pattern.strip_prefix("*.") {
            Some(end) => name.split_once('.').is_some_and(|(_, rest)| rest == end),
            None => pattern.eq_ignore_ascii_case(name),
        };
        let named = own.clone().find(|host| host.names.iter().any(fits));
        let first = if self.ends_missing { own.clone().next() } else { None };
        named.or_else(|| own.find(|host| host.names.is_empty())).or(first)
    }
}

impl RuledRequest<'_> {
    /// The first answer that a rule gives.
    fn follow(&mut self, rules: &[WebRule], depth: usize) -> RuledAnswer {
        let mut has_handled = false;
        for rule in rules {
            let is_handle = matches!(rule.action, RuleAction::Handle(..));
            has_handled &= is_handle;
            if has_handled || !rule.paths.fits(&self.path, self.asked) {
                continue;
            }
            has_handled = is_handle;
            if let Some(answered) = self.act(rule, depth)? {
                return Ok(Some(answered));
            }
        }
        Ok(None)
    }

    fn act(&mut self, rule: &WebRule, depth: usize) -> RuledAnswer {
        match &rule.action {
            RuleAction::Root(folder) => self.root = self.filled(folder),
            RuleAction::Header(change) => {
                self.headers.push(HeaderChange { value: self.filled(&change.value), ..change.clone() });
            }
            RuleAction::Environment(change) => self.environment = change.change(&self.facts(None)),
            RuleAction::Rewrite(to) => self.rewrite(to),
            RuleAction::StripPrefix(prefix) => self.strip(prefix),
            RuleAction::TryFiles(paths) => self.try_files(paths),
            RuleAction::Respond(code, body) => {
                let body = self.filled(body);
                let answered = WebAnswer::text(*code, body);
                return Ok(Some(if answered.body.is_empty() {
                    WebAnswer { code: *code, ..empty() }
                } else {
                    answered
                }));
            }
            RuleAction::Redirect(code, to, goes_on) => {
                let rest = if *goes_on { rule.paths.rest(&self.path) } else { "" };
                let mut answered = WebAnswer { code: *code, ..empty() };
                answered.headers.push(("location", format!("{}{rest}", self.filled(to))));
                return Ok(Some(answered));
            }
            RuleAction::Files(indexes, lists) => return Ok(Some(self.file(indexes, *lists))),
            RuleAction::Pass(servers, headers) => return self.pass(rule, servers, headers).map(Some),
            RuleAction::Handle(..) if depth >= MAX_DEPTH => {}
            RuleAction::Handle(rules, strips) => {
                let before = self.path.clone();
                if *strips {
                    self.strip(rule.paths.prefix());
                }
                let answered = self.follow(rules, depth + 1)?;
                self.path = before;
                return Ok(answered);
            }
        }
        Ok(None)
    }

    fn rewrite(&mut self, to: &str) {
        let to = self.filled(to);
        match to.split_once('?') {
            Some((path, query)) => (self.path, self.query) = (path.to_owned(), query.to_owned()),
            None => self.path = to,
        }
    }

    fn strip(&mut self, prefix: &str) {
        let rest = self.path.strip_prefix(prefix).unwrap_or(&self.path);
        self.path = if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") };
    }

    fn try_files(&mut self, paths: &[String]) {
        let is_there = |path: &String| {
            let around = self.backing.around;
            around.is_some_and(|around| around.newest_file(&format!("{}{path}", self.root)).is_some())
        };
        let filled: Vec<String> = paths.iter().map(|path| self.filled(path)).collect();
        if let Some(found) = filled.iter().find(|path| is_there(path)).or(filled.last()) {
            self.path.clone_from(found);
        }
    }

    /// A file below the root; the image's page where nothing hides that.
    fn file(&self, indexes: &[String], lists: bool) -> WebAnswer {
        if !matches!(self.asked.method, "GET" | "HEAD") {
            return WebAnswer { code: 405, ..empty() };
        }
        let root = self.root.trim_end_matches('/');
        for index in indexes {
            let target =
                if self.path.ends_with('/') { format!("{}{index}", self.path) } else { self.path.clone() };
            let asked = WebRequest { target: &target, ..self.asked.clone() };
            if let Some(answered) = served_files::answer(root, &asked, self.backing.around) {
                return answered;
            }
        }
        let (folder, page) = self.rules.welcome;
        let is_hidden =
            self.backing.around.is_some_and(|around| around.mounts.iter().any(|mount| mount.path == folder));
        if root == folder && !is_hidden && matches!(self.path.as_str(), "/" | "/index.html") {
            return WebAnswer::typed(200, "text/html; charset=utf-8", page);
        }
        match self.listed(root).filter(|_| lists && self.path.ends_with('/')) {
            Some(listed) => WebAnswer::typed(200, "text/html; charset=utf-8", listed),
            None => missing(),
        }
    }

    /// The names in a folder; nothing where there is none.
    fn listed(&self, root: &str) -> Option<String> {
        let start = format!("{root}{}", self.path);
        let tree = &self.backing.around?.views.last()?.tree;
        let paths =
            tree.range(start.clone()..).map(|(path, _)| path).take_while(|path| path.starts_with(&start));
        let mut names: Vec<&str> = paths
            .filter_map(|path| path[start.len()..].split('/').next())
            .filter(|name| !name.is_empty())
            .collect();
        names.dedup();
        let lines: String = names.iter().map(|name| format!("<a href=\"./{name}\">{name}</a>\n")).collect();
        (!names.is_empty()).then(|| format!("<html><body><pre>\n{lines}</pre></body></html>\n"))
    }

    /// Whose turn it is, by the port of who asks: nothing is kept between requests.
    fn pass(
        &mut self,
        rule: &WebRule,
        servers: &[String],
        headers: &[(String, String)],
    ) -> Result<WebAnswer, Box<AskFirst>> {
        let turn =
            self.asked.from.rsplit(':').next().and_then(|port| port.parse::<usize>().ok()).unwrap_or(0);
        let Some(server) = servers.get(turn.checked_rem(servers.len()).unwrap_or(0)) else {
            return Ok(WebAnswer { code: 503, ..empty() });
        };
        let server = self.filled(server);
        let (place, own_path) = paths::place(&server);
        // Apache puts its own path in the place of the one that is meant.
        let path = if rule.paths.is_prefix {
            format!("{own_path}{}", rule.paths.rest(&self.path))
        } else {
            self.path.clone()
        };
        let path = if path.is_empty() { "/".to_owned() } else { path };
        let query = if self.query.is_empty() { String::new() } else { format!("?{}", self.query) };
        let url = format!("{place}{}{query}", paths::encoded(&path));
        if WebUrl::parse(&url).is_err() {
            return Ok(WebAnswer { code: 502, ..empty() });
        }
        let own = |name: &str| headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let told = self.asked.headers.iter();
        let told = told.filter(|(name, _)| {
            !matches!(*name, "connection" | "content-length" | "transfer-encoding") && !own(name)
        });
        let mut passed: Vec<(String, String)> =
            told.map(|(name, value)| (canonical(name), (*value).to_owned())).collect();
        passed.extend(headers.iter().map(|(name, value)| (name.clone(), self.filled(value))));
        let (from, _) = self.asked.client();
        passed.push(("X-Forwarded-For".to_owned(), from.to_owned()));
        let host = self.asked.header("host").unwrap_or_default().to_owned();
        passed.push(("X-Forwarded-Host".to_owned(), host));
        let request = PassedRequest {
            url: &url,
            method: self.asked.method,
            headers: passed,
            body: self.asked.body,
            within: PASSED_WITHIN,
        };
        let answered = request.send(self.backing)?;
        self.is_passed_on = answered.is_ok();
        Ok(answered.unwrap_or_else(|code| {
            let code = if code == 28 { 504 } else { 502 };
            WebAnswer { code, ..empty() }
        }))
    }

    /// With what stands for parts of the request.
    fn filled(&self, text: &str) -> String {
        if !text.contains(['{', '%']) {
            return text.to_owned();
        }
        let host = self.asked.header("host").unwrap_or_default();
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let uri =
            if self.query.is_empty() { self.path.clone() } else { format!("{}?{}", self.path, self.query) };
        let (from, _) = self.asked.client();
        let known: [(&[&str], &str); 9] = [
            (&["{path}", "{http.request.uri.path}"], &self.path),
            (&["{uri}", "{http.request.uri}"], &uri),
            (&["{query}", "{http.request.uri.query}"], &self.query),
            (&["{host}", "{http.request.host}", "%{HTTP_HOST}"], name),
            (&["{hostport}", "{http.request.hostport}", "{upstream_hostport}"], host),
            (&["{method}", "{http.request.method}"], self.asked.method),
            (&["{remote_host}", "{http.request.remote.host}", "{client_ip}"], from),
            (&["{scheme}", "{http.request.scheme}"], "http"),
            (&["{system.hostname}"], self.asked.host_name),
        ];
        known.iter().fold(text.to_owned(), |text, (names, value)| {
            names.iter().fold(text, |text, name| text.replace(name, value))
        })
    }

    fn finished(&self, mut answered: WebAnswer) -> WebAnswer {
        if !answered.own_headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("server")) {
            answered.headers.push(("server", self.rules.name.clone()));
        }
        let facts = self.facts(Some(&answered));
        let all: Vec<HeaderChange> = self.headers.iter().filter(|own| own.holds(&facts)).cloned().collect();
        header_changes::apply(&all, &mut answered, self.is_passed_on);
        answered
    }

    fn facts<'f>(&'f self, answered: Option<&'f WebAnswer>) -> RequestFacts<'f> {
        let RuledRequest { asked, path, query, environment, .. } = self;
        RequestFacts { asked, path, query, environment, answered }
    }
}

fn empty() -> WebAnswer {
    WebAnswer { code: 200, ..WebAnswer::default() }
}

fn missing() -> WebAnswer {
    WebAnswer { code: 404, ..empty() }
}
