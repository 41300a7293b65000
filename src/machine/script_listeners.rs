//! What scripts listen to: worked out by playing them until a time.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::file_system::{self, File};
use crate::invocation::Invocation;
use crate::listeners::{Listens, ScriptListener};
use crate::process;
use crate::program;
use crate::python_server::{self, PythonFiles};
use crate::requests::{WebAnswer, WebRequest};
use crate::surroundings::Surroundings;

/// So many names are listed of a folder.
const MAX_NAMES: usize = 1000;

/// Whether a script may listen to anything: then it is to be played.
pub fn may_listen(invocation: &Invocation<'_>) -> bool {
    // What stands behind the last two is not looked at before it is played.
    program::runs_any(invocation, &["nc", "netcat", "httpd", "python", "python3", "exec", "nohup"])
}

/// Where a script listens that has run for so long, and the files that there are then.
pub struct ListeningScript {
    listeners: Vec<ScriptListener>,
    played: process::Played,
}

impl ListeningScript {
    /// Nothing for what is not played, and for what has ended.
    pub fn play(
        invocation: &Invocation<'_>,
        around: &Surroundings,
        ran: Duration,
    ) -> Option<ListeningScript> {
        let mut played = process::play(invocation, around, Some(ran))?;
        if played.end.is_some_and(|(end, _)| end <= ran) {
            return None;
        }
        let listeners = std::mem::take(&mut played.listens);
        Some(ListeningScript { listeners, played })
    }

    /// What it does at a port; the last that listens there.
    pub fn at(&self, port: u16) -> Option<&Listens> {
        self.listeners.iter().rev().find(|own| own.port == port).map(|own| &own.what)
    }

    /// What is answered to a request for one of its files.
    pub fn answer(&self, folder: &str, asked: &WebRequest<'_>, around: &Surroundings) -> WebAnswer {
        if !matches!(asked.method, "GET" | "HEAD") {
            return WebAnswer::text(501, "Unsupported method\n");
        }
        let target = asked.target.split('?').next().unwrap_or_default();
        let path = percent_encoding::percent_decode_str(target).decode_utf8_lossy();
        let path = file_system::absolute("/", &path);
        let path = format!("{}{path}", folder.trim_end_matches('/'));
        let index = format!("{}/index.html", path.trim_end_matches('/'));
        let found = [path, index].into_iter().find_map(|path| {
            let file = self.file(&path, around).filter(|file| !file.is_folder)?;
            Some((path, file))
        });
        match found {
            Some((path, file)) => WebAnswer::typed(200, media_type(&path), file.text()),
            None => WebAnswer::typed(404, "text/html", "<html><body><h1>404 Not Found</h1></body></html>\n"),
        }
    }

    /// What python's server says to a request, and the lines of its log.
    pub fn python(
        &self,
        folder: &str,
        asked: &WebRequest<'_>,
        around: &Surroundings,
        now: DateTime<Utc>,
    ) -> (WebAnswer, Vec<String>) {
        let files = ScriptFiles { script: self, around };
        let answered = python_server::answer(&files, folder, asked, &around.image);
        let lines = python_server::logged(asked, &answered, now);
        (answered, lines)
    }

    fn file(&self, path: &str, around: &Surroundings) -> Option<File> {
        match self.played.written.iter().rev().find(|(own, _)| own == path) {
            Some((_, written)) => written.clone(),
            None => around.newest_file(path).cloned(),
        }
    }
}

/// The files that a script finds, with what it has written.
struct ScriptFiles<'a> {
    script: &'a ListeningScript,
    around: &'a Surroundings,
}

impl PythonFiles for ScriptFiles<'_> {
    fn file(&self, path: &str) -> Option<File> {
        self.script.file(path, self.around).filter(|file| !file.is_folder)
    }

    fn names(&self, folder: &str) -> BTreeSet<String> {
        let start = format!("{folder}/");
        let tree = self.around.views.last().map(|view| &view.tree);
        let below = tree.into_iter().flat_map(|tree| tree.range(start.clone()..));
        let below = below.map(|(path, _)| path).take_while(|path| path.starts_with(&start));
        let written = self.script.played.written.iter().map(|(path, _)| path);
        let paths = below.chain(written.filter(|path| path.starts_with(&start)));
        let is_there = |path: &&String| self.script.file(path, self.around).is_some();
        let name = |path: &String| match path[start.len()..].split_once('/') {
            Some((name, _)) => format!("{name}/"),
            None if self.file(path).is_none() => format!("{}/", &path[start.len()..]),
            None => path[start.len()..].to_owned(),
        };
        paths.filter(is_there).map(name).filter(|name| name != "/").take(MAX_NAMES).collect()
    }
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html" | "htm") => "text/html",
        Some("json") => "application/json",
        Some("css") => "text/css",
        Some("js") => "text/javascript",
        _ => "text/plain",
    }
}
