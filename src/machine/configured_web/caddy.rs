//! Caddy's Caddyfile (`caddyserver.com/docs/caddyfile`): sites, and the directives that examples use. A word
//! that is no directive ends Caddy; a directive that is one and not followed here is told in the log.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::caddy_tokens::{self, CaddyLine};
use super::header_changes::{HeaderChange, HeaderTable};
use super::paths::PathPattern;
use super::rules::{BadConfig, ConfiguredWeb, RuleAction, RuledHost, WebRule, WebRules};
use crate::surroundings::Surroundings;

/// Where it is configured, and where its pages are.
pub(super) const FILE: &str = "/etc/caddy/Caddyfile";
pub(super) const PAGES: &str = "/usr/share/caddy";
/// What its image has there.
const OF_IMAGE: &str = ":80 {\n root * /usr/share/caddy\n file_server\n}";
const WELCOME: &str = "<!DOCTYPE html>\n<html>\n<head><title>Caddy works!</title></head>\n<body>\n\
    <h1>Caddy works!</h1>\n<p>If you see this page, a simulated Caddy answers.</p>\n</body>\n</html>\n";
/// In which order directives are followed, wherever they stand.
const ORDER: &[&str] = &[
    "root",
    "header",
    "redir",
    "rewrite",
    "uri",
    "try_files",
    "handle",
    "handle_path",
    "route",
    "respond",
    "reverse_proxy",
    "file_server",
];
/// Directives that change nothing that is looked at here.
const IDLE: &[&str] =
    &["encode", "log", "tls", "bind", "request_body", "log_skip", "skip_log", "log_append", "log_name"];
/// Directives that Caddy has, and that are not followed here.
const OTHERS: &[&str] = &[
    "abort",
    "acme_server",
    "basic_auth",
    "basicauth",
    "copy_response",
    "copy_response_headers",
    "error",
    "forward_auth",
    "fs",
    "handle_errors",
    "import",
    "intercept",
    "invoke",
    "map",
    "method",
    "metrics",
    "php_fastcgi",
    "push",
    "request_header",
    "templates",
    "tracing",
    "vars",
];

type CaddyRead<T> = Result<T, (usize, String)>;
type Matchers = BTreeMap<String, PathPattern>;

/// What it does by its file.
///
/// # Errors
/// Why it does not start.
pub(super) fn read(path: &str, around: &Surroundings) -> Result<ConfiguredWeb, BadConfig> {
    let file = around.newest_file(path).filter(|file| !file.is_folder).map(|file| file.text());
    let text = match file {
        Some(text) => text,
        None if path == FILE && !around.mounts.iter().any(|mount| FILE.starts_with(&mount.path)) => {
            OF_IMAGE.to_owned()
        }
        None => {
            let says = format!("Error: reading config from file: open {path}: no such file or directory");
            return Err(BadConfig { says, code: 1 });
        }
    };
    let text = caddy_tokens::with_variables(&text, |name| around.variables.get(name).cloned());
    let mut reading = CaddyReading::default();
    match caddy_tokens::read(&text).and_then(|lines| reading.sites(&lines)) {
        Ok(hosts) => {
            let rules =
                WebRules { name: "Caddy".to_owned(), hosts, welcome: (PAGES, WELCOME), ends_missing: false };
            let mut says = vec![format!(
                "{{\"level\":\"info\",\"msg\":\"using config from file\",\"file\":\"{path}\"}}"
            )];
            says.append(&mut reading.says);
            says.push("{\"level\":\"info\",\"msg\":\"serving initial configuration\"}".to_owned());
            Ok(ConfiguredWeb { rules: Arc::new(rules), says })
        }
        Err((line, why)) => {
            let says = format!("Error: adapting config using caddyfile: {path}:{line}: {why}");
            Err(BadConfig { says, code: 1 })
        }
    }
}

#[derive(Default)]
struct CaddyReading {
    /// What its log says of what is not followed.
    says: Vec<String>,
    snippets: BTreeMap<String, Vec<CaddyLine>>,
}

impl CaddyReading {
    fn sites(&mut self, lines: &[CaddyLine]) -> CaddyRead<Vec<RuledHost>> {
        // What holds for all stands first, in a block without a name.
        let lines = match lines.split_first() {
            Some((first, rest)) if first.words.is_empty() => rest,
            _ => lines,
        };
        let mut hosts = vec![];
        // A single site needs no braces.
        if let Some((first, rest)) = lines.split_first().filter(|(first, _)| first.block.is_none()) {
            self.site(first, rest, &mut hosts)?;
            return Ok(hosts);
        }
        let mut before = vec![];
        for line in lines {
            let snippet = line.words.first().and_then(|word| word.strip_prefix('(')?.strip_suffix(')'));
            match (&line.block, snippet) {
                (Some(inner), Some(name)) => drop(self.snippets.insert(name.to_owned(), inner.clone())),
                (Some(inner), None) => {
                    let words = before.drain(..).chain(line.words.iter().cloned()).collect();
                    let named = CaddyLine { words, ..line.clone() };
                    self.site(&named, inner, &mut hosts)?;
                }
                // Names with commas may go over several lines.
                (None, _) if line.words.iter().any(|word| word.ends_with(',')) => {
                    before.extend(line.words.clone())
                }
                (None, _) => {
                    let word = line.words.first().map_or("", String::as_str);
                    let why = format!("unrecognized directive: {word}");
                    let hint = "Did you mean to define a second site? If so, you must use curly braces around each \
                                site to separate their configurations.";
                    return Err((line.line, format!("{why}\n{hint}")));
                }
            }
        }
        Ok(hosts)
    }

    fn site(&mut self, named: &CaddyLine, lines: &[CaddyLine], hosts: &mut Vec<RuledHost>) -> CaddyRead<()> {
        let lines = self.with_imports(lines)?;
        let rules = self.rules(&lines, &Matchers::new(), true)?;
        let own = lines.iter().find(|line| line.words.first().is_some_and(|word| word == "tls"));
        let files = match own.map(|line| line.words.as_slice()) {
            Some([_, certificate, key, ..]) => Some((certificate.clone(), key.clone())),
            Some(_) => Some((String::new(), String::new())),
            None => None,
        };
        for address in
            named.words.iter().flat_map(|word| word.split(',')).filter(|address| !address.is_empty())
        {
            let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
            let rest = rest.split('/').next().unwrap_or(rest);
            let (name, port) = match rest.rsplit_once(':') {
                Some((name, port)) => {
                    let wrong = || (named.line, format!("parsing key: invalid port '{port}'"));
                    (name, Some(port.parse().map_err(|_| wrong())?))
                }
                None => (rest, None),
            };
            let names: Vec<String> =
                (!name.is_empty() && name != "*").then(|| name.to_owned()).into_iter().collect();
            let is_plain = scheme == "http"
                || port == Some(80)
                || files.is_none() && (name.is_empty() || port.is_some() && scheme.is_empty());
            let port = port.unwrap_or(if is_plain { 80 } else { 443 });
            let tls = (!is_plain).then(|| files.clone().unwrap_or_default());
            if tls.is_some() && port == 443 {
                hosts.push(to_tls(&names));
            }
            hosts.push(RuledHost { port, names, tls, rules: rules.clone() });
        }
        Ok(())
    }

    /// Snippets stand where they are named.
    fn with_imports(&self, lines: &[CaddyLine]) -> CaddyRead<Vec<CaddyLine>> {
        let mut all = vec![];
        for line in lines {
            match line.words.as_slice() {
                [word, name, ..] if word == "import" => match self.snippets.get(name) {
                    Some(snippet) => all.extend(snippet.iter().cloned()),
                    None => {
                        let why = format!("File to import not found: {name}");
                        return Err((line.line, why));
                    }
                },
                _ => all.push(line.clone()),
            }
        }
        Ok(all)
    }

    fn rules(&mut self, lines: &[CaddyLine], outer: &Matchers, sorts: bool) -> CaddyRead<Vec<WebRule>> {
        let mut matchers = outer.clone();
        for line in lines {
            if let Some(name) = line.words.first().filter(|word| word.starts_with('@')) {
                matchers.insert(name.clone(), matcher(line)?);
            }
        }
        let mut rules: Vec<(usize, usize, WebRule)> = vec![];
        for line in lines.iter().filter(|line| !line.words.first().is_some_and(|word| word.starts_with('@')))
        {
            let name = line.words.first().map_or("", String::as_str);
            let Some(at) = ORDER.iter().position(|own| *own == name) else {
                self.other(name, line)?;
                continue;
            };
            // All ways to handle are one, and who says more of the path goes first.
            let at = if name == "handle_path" { at - 1 } else { at };
            for rule in self.rule(name, line, &matchers)? {
                let length = rule.paths.length();
                rules.push((at, usize::MAX - length, rule));
            }
        }
        if sorts {
            rules.sort_by_key(|(at, length, _)| (*at, *length));
        }
        Ok(rules.into_iter().map(|(.., rule)| rule).collect())
    }

    fn other(&mut self, name: &str, line: &CaddyLine) -> CaddyRead<()> {
        if IDLE.contains(&name) {
            return Ok(());
        }
        if OTHERS.contains(&name) {
            self.says.push(format!(
                "kubarium: line {}: the directive {name} of Caddy is not followed here",
                line.line
            ));
            return Ok(());
        }
        Err((line.line, format!("unrecognized directive: {name}")))
    }

    fn rule(&mut self, name: &str, line: &CaddyLine, matchers: &Matchers) -> CaddyRead<Vec<WebRule>> {
        let (paths, words) = matched(line, matchers)?;
        let wrong = |count: &str| {
            (line.line, format!("wrong argument count or unexpected line ending after '{count}'"))
        };
        let last = || line.words.last().cloned().unwrap_or_default();
        let one = |action| Ok(vec![WebRule { paths: paths.clone(), action }]);
        let inner = line.block.as_deref().unwrap_or_default();
        match (name, words) {
            ("root", [folder]) => one(RuleAction::Root(folder.clone())),
            ("header", words) => Ok(headers(words, inner)
                .into_iter()
                .map(|action| WebRule { paths: paths.clone(), action })
                .collect()),
            ("redir", [to]) => one(RuleAction::Redirect(302, to.clone(), false)),
            ("redir", [to, code]) => {
                let code = match code.as_str() {
                    "permanent" => 301,
                    "temporary" => 302,
                    code => code.parse().map_err(|_| {
                        (line.line, format!("Not a supported redir code type or not valid integer: '{code}'"))
                    })?,
                };
                one(RuleAction::Redirect(code, to.clone(), false))
            }
            ("rewrite", [to]) => one(RuleAction::Rewrite(to.clone())),
            ("uri", [how, prefix]) if how == "strip_prefix" => one(RuleAction::StripPrefix(prefix.clone())),
            ("uri", _) => {
                self.says.push(format!(
                    "kubarium: line {}: of uri strip_prefix alone is followed here",
                    line.line
                ));
                Ok(vec![])
            }
            ("try_files", words) if !words.is_empty() => one(RuleAction::TryFiles(words.to_vec())),
            ("handle" | "handle_path" | "route", _) => {
                let inner = self.with_imports(inner)?;
                let rules = self.rules(&inner, matchers, name != "route")?;
                one(RuleAction::Handle(rules, name == "handle_path"))
            }
            ("respond", words) => one(respond(words, inner, line.line)?),
            ("reverse_proxy", words) => {
                let (servers, headers) = proxied(words, inner);
                one(RuleAction::Pass(servers, headers))
            }
            ("file_server", words) => Ok(files(words, inner, &paths)),
            _ => Err(wrong(&last())),
        }
    }
}

/// Whoever asks without TLS is led to it.
fn to_tls(names: &[String]) -> RuledHost {
    let action = RuleAction::Redirect(308, "https://{host}{uri}".to_owned(), false);
    let rules = vec![WebRule { paths: PathPattern::default(), action }];
    RuledHost { port: 80, names: names.to_vec(), tls: None, rules }
}

/// What a directive is for, and its other words.
fn matched<'l>(line: &'l CaddyLine, matchers: &Matchers) -> CaddyRead<(PathPattern, &'l [String])> {
    let words = line.words.get(1..).unwrap_or_default();
    match words.split_first() {
        Some((first, rest)) if first == "*" => Ok((PathPattern::default(), rest)),
        // What is alone and begins so is the place of a redirect, or a file.
        Some((first, rest)) if first.starts_with('/') && !is_place(line) => {
            Ok((PathPattern::of(&[first]), rest))
        }
        Some((first, rest)) if first.starts_with('@') => {
            let unknown = || (line.line, format!("unrecognized matcher name: {first}"));
            Ok((matchers.get(first).cloned().ok_or_else(unknown)?, rest))
        }
        _ => Ok((PathPattern::default(), words)),
    }
}

fn is_place(line: &CaddyLine) -> bool {
    let name = line.words.first().map_or("", String::as_str);
    line.words.len() == 2 && matches!(name, "root" | "redir" | "rewrite" | "try_files")
}

/// `@name path /a /b`, or a block of such lines.
fn matcher(line: &CaddyLine) -> CaddyRead<PathPattern> {
    let mut pattern = PathPattern::default();
    let inline = CaddyLine { words: line.words[1..].to_vec(), block: None, line: line.line };
    let lines = match &line.block {
        Some(inner) if line.words.len() == 1 => inner.clone(),
        _ => vec![inline],
    };
    for line in &lines {
        let Some((kind, words)) = line.words.split_first() else { continue };
        match kind.as_str() {
            "path" => pattern.paths.extend(words.iter().cloned()),
            "method" => pattern.methods.extend(words.iter().cloned()),
            "header" if words.len() == 2 => pattern.headers.push((words[0].clone(), words[1].clone())),
            "not" => {
                let inner =
                    CaddyLine { words: [vec![String::new()], words.to_vec()].concat(), ..line.clone() };
                pattern.except.push(matcher(&inner)?);
            }
            kind => {
                return Err((
                    line.line,
                    format!("getting matcher module '{kind}': module not registered: http.matchers.{kind}"),
                ));
            }
        }
    }
    Ok(pattern)
}

fn respond(words: &[String], inner: &[CaddyLine], line: usize) -> CaddyRead<RuleAction> {
    let is_code = |word: &str| word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_digit());
    let number = |word: &str| word.parse().map_err(|_| (line, format!("bad status code: {word}")));
    let (code, body) = match words {
        [] => (200, String::new()),
        [one] if is_code(one) => (number(one)?, String::new()),
        [body] => (200, body.clone()),
        [body, code, ..] => (number(code)?, body.clone()),
    };
    let of_block = inner.iter().find(|line| line.words.first().is_some_and(|word| word == "body"));
    let body = of_block.and_then(|line| line.words.get(1)).cloned().unwrap_or(body);
    Ok(RuleAction::Respond(code, body))
}

fn headers(words: &[String], inner: &[CaddyLine]) -> Vec<RuleAction> {
    let inline = [words.to_vec()];
    let lines = inner.iter().map(|line| line.words.clone()).chain(inline).filter(|words| !words.is_empty());
    let action = |words: Vec<String>| {
        let (how, name) = match words[0].split_at_checked(1) {
            Some((how @ ("+" | "-" | ">" | "?"), name)) => (how.chars().next().unwrap_or('='), name),
            _ => ('=', words[0].as_str()),
        };
        let how = if matches!(how, '+' | '-') { how } else { '=' };
        let value = words.get(1).cloned().unwrap_or_default();
        RuleAction::Header(HeaderChange {
            table: HeaderTable::All,
            how,
            name: name.to_owned(),
            value,
            when: vec![],
        })
    };
    lines.map(action).collect()
}

fn proxied(words: &[String], inner: &[CaddyLine]) -> (Vec<String>, Vec<(String, String)>) {
    let mut servers = words.to_vec();
    let mut headers = vec![];
    for line in inner {
        match line.words.as_slice() {
            [word, to @ ..] if word == "to" => servers.extend(to.iter().cloned()),
            [word, name, value] if word == "header_up" => headers.push((name.clone(), value.clone())),
            // How the others are chosen and watched is not looked at.
            _ => {}
        }
    }
    (servers, headers)
}

fn files(words: &[String], inner: &[CaddyLine], paths: &PathPattern) -> Vec<WebRule> {
    let mut lists = words.iter().any(|word| word == "browse");
    let mut indexes = vec!["index.html".to_owned(), "index.txt".to_owned()];
    let mut rules = vec![];
    for line in inner {
        match line.words.as_slice() {
            [word, ..] if word == "browse" => lists = true,
            [word, own @ ..] if word == "index" => indexes = own.to_vec(),
            [word, folder] if word == "root" => {
                rules.push(WebRule { paths: paths.clone(), action: RuleAction::Root(folder.clone()) });
            }
            _ => {}
        }
    }
    rules.push(WebRule { paths: paths.clone(), action: RuleAction::Files(indexes, lists) });
    rules
}
