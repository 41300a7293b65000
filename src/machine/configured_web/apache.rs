//! Apache's `httpd.conf`: where it listens, its virtual hosts, and what `DocumentRoot`, `Alias`, `Redirect`
//! and `ProxyPass` lead to.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::apache_commands;
use super::apache_environment::EnvironmentChange;
use super::apache_expression_reader;
use super::apache_expressions::ApacheCondition;
use super::apache_patterns::{ApacheMisreading, PatternCount};
use super::header_changes::{HeaderChange, HeaderWhen};
use super::paths::PathPattern;
use super::rules::{BadConfig, ConfiguredWeb, RuleAction, RuledHost, WebRule, WebRules};
use crate::file_system::absolute;
use crate::surroundings::Surroundings;

/// Where it is configured.
pub(super) const FOLDER: &str = "/usr/local/apache2/conf";
const MAIN: &str = "/usr/local/apache2/conf/httpd.conf";
const ROOT: &str = "/usr/local/apache2";
const PAGES: &str = "/usr/local/apache2/htdocs";
const WELCOME: &str = "<html><body><h1>It works!</h1></body></html>\n";
/// The main file of its image, as far as it counts.
const OF_IMAGE: &str = "Listen 80\nDocumentRoot /usr/local/apache2/htdocs\n";
/// So many lines are read of all files; with more it does not start.
const MAX_LINES: usize = 20_000;
/// So deep do files include files.
const MAX_INCLUDES: usize = 16;
const RESUMING: &str =
    "[mpm_event:notice] [pid 1:tid 1] AH00489: Apache/2.4 (Unix) configured -- resuming normal operations";

/// A command that holds somewhere.
struct ApacheCommand {
    name: String,
    words: Vec<String>,
    /// The sections that it stands in, the innermost last.
    within: Vec<ApacheSection>,
    /// Which virtual host, by its number.
    host: Option<usize>,
    /// What it does, where that was read already.
    action: Option<RuleAction>,
}

/// A section that is open.
#[derive(Clone)]
struct ApacheSection {
    name: String,
    of: String,
    /// What an `<If>` asks; else what of it is not followed.
    condition: Option<Result<Arc<ApacheCondition>, String>>,
}

impl ApacheSection {
    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// In which sections of a file a line stands, and in which virtual host.
#[derive(Default)]
struct ApachePlace {
    within: Vec<ApacheSection>,
    host: Option<usize>,
}

#[derive(Default)]
struct ApacheReading {
    commands: Vec<ApacheCommand>,
    modules: Vec<String>,
    patterns: PatternCount,
    lines: usize,
    hosts: usize,
    /// What its log says of what is not followed.
    says: Vec<String>,
}

/// What it does by its files.
///
/// # Errors
/// Why it does not start.
pub(super) fn read(around: &Surroundings) -> Result<ConfiguredWeb, BadConfig> {
    let text = around.newest_file(MAIN).filter(|file| !file.is_folder).map(|file| file.text());
    let mut reading = ApacheReading::default();
    let text = text.unwrap_or_else(|| OF_IMAGE.to_owned());
    reading.file((MAIN, &text), around, 0).map_err(|says| BadConfig { says, code: 1 })?;
    let ports: Vec<i64> =
        reading.of("Listen", None).filter_map(|command| port(command.words.first()?)).collect();
    if ports.is_empty() {
        let says = "no listening sockets available, shutting down\nAH00015: Unable to open logs".to_owned();
        return Err(BadConfig { says, code: 1 });
    }
    let mut hosts = vec![];
    for port in ports {
        hosts.extend((0..reading.hosts).filter_map(|own| reading.virtual_host(own, port)));
        // Whoever means nobody else reaches the main server, where no virtual host takes its port.
        if !hosts.iter().any(|host| host.port == port) {
            hosts.push(RuledHost { port, names: vec![], tls: None, rules: reading.rules(None) });
        }
    }
    let rules = WebRules {
        name: "Apache/2.4.66 (Unix)".to_owned(),
        hosts,
        welcome: (PAGES, WELCOME),
        ends_missing: true,
    };
    let mut says = std::mem::take(&mut reading.says);
    if reading.of("ServerName", None).next().is_none() {
        says.push(
            "AH00558: httpd: Could not reliably determine the server's fully qualified domain name. Set the \
                   'ServerName' directive globally to suppress this message"
                .to_owned(),
        );
    }
    says.push(RESUMING.to_owned());
    Ok(ConfiguredWeb { rules: Arc::new(rules), says })
}

fn port(address: &str) -> Option<i64> {
    address.rsplit(':').next()?.parse().ok()
}

impl ApacheReading {
    fn file(
        &mut self,
        (path, text): (&str, &str),
        around: &Surroundings,
        depth: usize,
    ) -> Result<(), String> {
        let mut at = ApachePlace::default();
        let mut whole = String::new();
        for (number, line) in text.lines().enumerate() {
            self.lines += 1;
            // A line that ends so goes on.
            if let Some(begun) = line.strip_suffix('\\') {
                whole.push_str(begun);
                continue;
            }
            let line = std::mem::take(&mut whole) + line;
            let told =
                |why: String| format!("AH00526: Syntax error on line {} of {path}:\n{why}", number + 1);
            if self.lines > MAX_LINES {
                return Err(told("its files are longer than is read here".to_owned()));
            }
            let included = match self.line(line.trim(), &mut at, &around.variables) {
                Ok(included) => included,
                Err(ApacheMisreading::Refused(why)) => return Err(told(why)),
                Err(ApacheMisreading::Unknown(what)) => {
                    self.says.push(format!(
                        "kubarium: line {} of {path}: {what} is not followed here",
                        number + 1
                    ));
                    None
                }
            };
            if let Some(included) = included {
                self.include(&included, around, depth)?;
            }
        }
        match at.within.pop() {
            Some(ApacheSection { name, .. }) => {
                Err(format!("AH00526: Syntax error in {path}:\n<{name}> was not closed."))
            }
            None => Ok(()),
        }
    }

    /// What a line includes, if it does.
    fn line(
        &mut self,
        line: &str,
        at: &mut ApachePlace,
        own: &BTreeMap<String, String>,
    ) -> Result<Option<Vec<String>>, ApacheMisreading> {
        if line.is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        if line.starts_with('<') {
            return self.section(line, at).map(|()| None).map_err(ApacheMisreading::Refused);
        }
        let words = words(line);
        let Some((name, words)) = words.split_first().filter(|_| self.holds(&at.within)) else {
            return Ok(None);
        };
        if !apache_commands::is_known(name, &self.modules) {
            return Err(ApacheMisreading::Refused(unknown(name)));
        }
        if name.eq_ignore_ascii_case("LoadModule") {
            self.modules.extend(words.first().cloned());
        }
        if name.to_ascii_lowercase().starts_with("include") {
            return Ok(Some(words.to_vec()));
        }
        let action = self.action(name, words, &at.within, own)?;
        let (name, words, within) = (name.clone(), words.to_vec(), at.within.clone());
        self.commands.push(ApacheCommand { name, words, within, host: at.host, action });
        Ok(None)
    }

    /// What a command does that has conditions.
    fn action(
        &mut self,
        name: &str,
        words: &[String],
        within: &[ApacheSection],
        own: &BTreeMap<String, String>,
    ) -> Result<Option<RuleAction>, ApacheMisreading> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if !name.eq_ignore_ascii_case("Header") {
            let change =
                EnvironmentChange::read(&name.to_ascii_lowercase(), &words, own, &mut self.patterns)?;
            return Ok(change.map(RuleAction::Environment));
        }
        let mut change = HeaderChange::of_apache(&words, &mut self.patterns)?;
        for ApacheSection { name, condition, .. } in within {
            match condition {
                Some(Ok(read)) => change.when.push(HeaderWhen::Holds(read.clone())),
                Some(Err(what)) => return Err(ApacheMisreading::Unknown(what.clone())),
                None if ["elseif", "else"].iter().any(|other| name.eq_ignore_ascii_case(other)) => {
                    let what = format!("Header in <{}>", name.to_ascii_lowercase());
                    return Err(ApacheMisreading::Unknown(what));
                }
                None => {}
            }
        }
        Ok(Some(RuleAction::Header(change)))
    }

    /// A section begins or ends.
    fn section(&mut self, line: &str, at: &mut ApachePlace) -> Result<(), String> {
        if let Some(name) = line.strip_prefix("</") {
            let name = name.trim_end_matches('>').trim();
            return match at.within.pop() {
                Some(own) if own.is(name) => {
                    at.host = at.host.filter(|_| !own.is("VirtualHost"));
                    Ok(())
                }
                Some(own) => Err(format!("Expected </{}> but saw </{name}>", own.name)),
                None => Err(format!("</{name}> without matching <{name}> section")),
            };
        }
        let section = line.trim_start_matches('<').trim_end_matches('>').trim();
        let (name, of) = section.split_once(char::is_whitespace).unwrap_or((section, ""));
        let of = match words(of).as_slice() {
            [whole] if of.starts_with(['"', '\'']) => whole.clone(),
            _ => of.trim().trim_matches('"').to_owned(),
        };
        let mut section = ApacheSection { name: name.to_owned(), of, condition: None };
        // Where a section does not hold, nobody asks what stands in it.
        if self.holds(&at.within) {
            self.begin(&mut section, at)?;
        }
        at.within.push(section);
        Ok(())
    }

    fn begin(&mut self, section: &mut ApacheSection, at: &mut ApachePlace) -> Result<(), String> {
        if !apache_commands::is_section(&section.name) {
            return Err(unknown(&format!("<{}", section.name)));
        }
        if section.is("VirtualHost") {
            at.host = Some(self.hosts);
            self.hosts += 1;
        }
        if section.is("If") {
            section.condition = match apache_expression_reader::read(&section.of, &mut self.patterns) {
                Ok(read) => Some(Ok(Arc::new(read))),
                Err(ApacheMisreading::Unknown(what)) => Some(Err(what)),
                Err(ApacheMisreading::Refused(why)) => {
                    return Err(format!("Cannot parse condition clause: {why}"));
                }
            };
        }
        Ok(())
    }

    /// Whether all that it depends on is there.
    fn holds(&self, within: &[ApacheSection]) -> bool {
        within.iter().all(|ApacheSection { name, of, .. }| match name.to_ascii_lowercase().as_str() {
            "ifmodule" => {
                let (wanted, name) = match of.strip_prefix('!') {
                    Some(name) => (false, name),
                    None => (true, of.as_str()),
                };
                let name = name.trim_start_matches("mod_").trim_end_matches(".c").trim_end_matches("_module");
                let is_usual = matches!(
                    name,
                    "dir" | "alias" | "log_config" | "mime" | "unixd" | "headers" | "setenvif"
                );
                let is_there =
                    is_usual || self.modules.iter().any(|own| own.trim_end_matches("_module") == name);
                is_there == wanted
            }
            "ifdefine" => of.starts_with('!'),
            _ => true,
        })
    }

    fn include(&mut self, words: &[String], around: &Surroundings, depth: usize) -> Result<(), String> {
        if depth >= MAX_INCLUDES {
            return Err("AH00526: files include files deeper than is read here".to_owned());
        }
        for word in words {
            let pattern = absolute(ROOT, word);
            let Some(view) = around.views.last() else { continue };
            let (start, end) = pattern.split_once('*').unwrap_or((&pattern, ""));
            let below = format!("{pattern}/");
            let is_meant = |path: &&String| {
                if pattern.contains('*') {
                    path.starts_with(start) && path.ends_with(end) && !path[start.len()..].contains('/')
                } else {
                    **path == pattern || path.starts_with(&below)
                }
            };
            let paths: Vec<String> = view
                .tree
                .range(start.to_owned()..)
                .map(|(path, _)| path)
                .take_while(|path| path.starts_with(start))
                .filter(is_meant)
                .cloned()
                .collect();
            for path in paths {
                let text = around.newest_file(&path).filter(|file| !file.is_folder).map(|file| file.text());
                if let Some(text) = text {
                    self.file((&path, &text), around, depth + 1)?;
                }
            }
        }
        Ok(())
    }

    /// Commands of that name, of a host or of all.
    fn of<'s>(&'s self, name: &'s str, host: Option<usize>) -> impl Iterator<Item = &'s ApacheCommand> {
        self.commands.iter().filter(move |own| own.host == host && own.name.eq_ignore_ascii_case(name))
    }

    /// The virtual host of that number, where it takes a port.
    fn virtual_host(&self, own: usize, port_of: i64) -> Option<RuledHost> {
        let mut within =
            self.commands.iter().filter(|command| command.host == Some(own)).flat_map(|own| &own.within);
        let ApacheSection { of: addresses, .. } = within.find(|section| section.is("VirtualHost"))?;
        let takes = |address: &str| port(address).is_none_or(|own| own == port_of);
        if !addresses.split_whitespace().any(takes) {
            return None;
        }
        let named = self.of("ServerName", Some(own)).chain(self.of("ServerAlias", Some(own)));
        let names = named.flat_map(|command| &command.words);
        let name = |word: &String| word.rsplit_once(':').map_or(word.as_str(), |(name, _)| name).to_owned();
        Some(RuledHost {
            port: port_of,
            names: names.map(name).collect(),
            tls: None,
            rules: self.rules(Some(own)),
        })
    }

    /// What is passed on goes before what is redirected, and that before files; what becomes of headers is
    /// known before all of them, since it is done at the end, wherever it stands.
    fn rules(&self, host: Option<usize>) -> Vec<WebRule> {
        let own = |command: &&ApacheCommand| {
            command.host == host || (command.host.is_none() && command.action.is_some())
        };
        let mut rules: Vec<(usize, WebRule)> = vec![];
        for command in self.commands.iter().filter(own) {
            rules.extend(rule(command));
        }
        rules.sort_by_key(|(at, _)| *at);
        let index = self.of("DirectoryIndex", host).chain(self.of("DirectoryIndex", None)).next();
        let indexes = index.map_or_else(|| vec!["index.html".to_owned()], |command| command.words.clone());
        let root = self.of("DocumentRoot", host).chain(self.of("DocumentRoot", None)).next();
        let root = root
            .and_then(|command| command.words.first())
            .map_or(PAGES.to_owned(), |word| absolute(ROOT, word));
        let mut rules: Vec<WebRule> = rules.into_iter().map(|(_, rule)| rule).collect();
        let lists = self.of("Options", None).chain(self.of("Options", host)).any(|command| {
            command.words.iter().any(|word| word.ends_with("Indexes") && !word.starts_with('-'))
        });
        for action in [RuleAction::Root(root), RuleAction::Files(indexes, lists)] {
            rules.push(WebRule { paths: PathPattern::default(), action });
        }
        rules
    }
}

fn unknown(name: &str) -> String {
    format!(
        "Invalid command '{name}', perhaps misspelled or defined by a module not included in the server configuration"
    )
}

/// What a command leads to, and when it is looked at.
fn rule(command: &ApacheCommand) -> Option<(usize, WebRule)> {
    let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
    let of = |name: &str| {
        command.within.iter().find(|section| section.is(name)).map(|section| section.of.as_str())
    };
    // In a section of a path the path is that.
    let (path, words) = match (of("Location"), words.as_slice()) {
        (Some(path), words) => (path, words),
        (None, [path, words @ ..]) if path.starts_with('/') => (*path, words),
        (None, words) => ("", words),
    };
    let below = |action| WebRule { paths: PathPattern::below(path), action };
    if let Some(action) = &command.action {
        let is_late = matches!(action, RuleAction::Environment(change) if !change.is_early());
        let paths = if path.is_empty() { PathPattern::default() } else { PathPattern::below(path) };
        return Some((usize::from(is_late), WebRule { paths, action: action.clone() }));
    }
    Some(match (command.name.to_ascii_lowercase().as_str(), words) {
        ("proxypass", ["!", ..]) => return None,
        ("proxypass", [to, ..]) => {
            let pass = RuleAction::Pass(vec![(*to).to_owned()], vec![]);
            (2, below(pass))
        }
        ("redirect", [to]) => redirect((path, to), 302),
        ("redirect", [code, rest @ ..]) => {
            let code = match *code {
                "permanent" => 301,
                "temp" => 302,
                "seeother" => 303,
                "gone" => 410,
                code => code.parse().ok()?,
            };
            match rest {
                [path, to] => redirect((path, to), code),
                [path] if code >= 400 => {
                    let action = RuleAction::Respond(code, String::new());
                    (3, WebRule { paths: PathPattern::below(path), action })
                }
                [to] => redirect((path, to), code),
                _ => return None,
            }
        }
        ("redirectpermanent", [to]) => redirect((path, to), 301),
        ("redirecttemp", [to]) => redirect((path, to), 302),
        ("alias", [folder]) => {
            let inner = [
                RuleAction::Root(absolute(ROOT, folder)),
                RuleAction::Files(vec!["index.html".to_owned()], false),
            ];
            let inner = inner.map(|action| WebRule { paths: PathPattern::default(), action }).to_vec();
            (4, below(RuleAction::Handle(inner, true)))
        }
        _ => return None,
    })
}

fn redirect((path, to): (&str, &str), code: u16) -> (usize, WebRule) {
    let action = RuleAction::Redirect(code, to.to_owned(), true);
    (3, WebRule { paths: PathPattern::below(path), action })
}

/// Words of a line; quotes hold together.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![];
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        let mut word = String::new();
        match letter {
            letter if letter.is_whitespace() => continue,
            quote @ ('"' | '\'') => {
                while let Some(next) = letters.next().filter(|next| *next != quote) {
                    // What would end it, and what would hide that.
                    let hidden =
                        letters.next_if(|hidden| next == '\\' && (*hidden == quote || *hidden == '\\'));
                    word.push(hidden.unwrap_or(next));
                }
            }
            first => {
                word.push(first);
                while let Some(next) = letters.next_if(|next| !next.is_whitespace()) {
                    word.push(next);
                }
            }
        }
        words.push(word);
    }
    words
}
