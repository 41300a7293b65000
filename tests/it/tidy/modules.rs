//! The tree of modules, and what a path in one of them stands for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use super::source::{Source, Use, Written};

/// Re-exports are followed so far: deeper ones are circles.
const MAX_HOPS: usize = 8;

/// All modules of all crates, by their paths: `apiserver::audit`. A crate of the workspace stands under the name by
/// which the others import it; the crate on top, which they cannot name, is the empty path.
pub(crate) struct Modules {
    by_path: BTreeMap<String, Module>,
    /// Files that are compiled for tests alone.
    tests: BTreeSet<String>,
}

struct Module {
    /// Where its file stands in [`Source::all`].
    file: usize,
    written: &'static Written,
}

/// What one file names in another.
pub(crate) struct Import {
    pub line: usize,
    /// The index of the file that is imported from.
    pub from: usize,
    /// The module that the name leads to.
    pub module: String,
}

impl Modules {
    pub(crate) fn all() -> &'static Modules {
        static ALL: OnceLock<Modules> = OnceLock::new();
        ALL.get_or_init(|| {
            let mut modules = Modules { by_path: BTreeMap::new(), tests: BTreeSet::new() };
            modules.add("src/lib.rs", "", false);
            let rooms = Source::all().iter().filter_map(|source| crate_of(&source.path));
            for room in rooms.collect::<BTreeSet<_>>() {
                modules.add(&format!("src/{room}/lib.rs"), room, false);
            }
            modules
        })
    }

    fn add(&mut self, file: &str, path: &str, is_test: bool) {
        let sources = Source::all();
        let Ok(index) = sources.binary_search_by(|source| source.path.as_str().cmp(file)) else {
            panic!("{path} is declared and {file} is not there");
        };
        if is_test {
            self.tests.insert(file.to_owned());
        }
        for written in &sources[index].modules {
            let module = join(path, &written.inside);
            self.by_path.insert(module.clone(), Module { file: index, written });
            for declared in &written.children {
                let path = child(&module, &declared.name);
                let beside = |name: &String| format!("{}/{name}", file.rsplit_once('/').unwrap().0);
                let file = declared.file.as_ref().map_or_else(|| file_of(&path), beside);
                self.add(&file, &path, is_test || declared.is_test);
            }
        }
    }

    pub(crate) fn is_test(&self, file: &str) -> bool {
        self.tests.contains(file)
    }

    /// What a file imports from others.
    pub(crate) fn imports(&self, file: usize) -> Vec<Import> {
        let mut imports = Vec::new();
        for (path, module) in self.by_path.iter().filter(|(_, module)| module.file == file) {
            let uses = module.written.uses.iter().map(|used| (used.line, &used.target));
            let paths = module.written.paths.iter().map(|(line, names)| (*line, names));
            for (line, names) in uses.chain(paths) {
                if let Some(found) = self.resolve(path, names, MAX_HOPS)
                    && self.by_path[&found].file != file
                {
                    imports.push(Import { line, from: self.by_path[&found].file, module: found });
                }
            }
        }
        imports
    }

    /// The module that holds what `names` stands for in the module `at`; None for what is not ours.
    fn resolve(&self, at: &str, names: &[String], hops: usize) -> Option<String> {
        let (first, mut rest) = names.split_first()?;
        let mut here = match first.as_str() {
            "crate" => self.crate_at(at),
            "self" => at.to_owned(),
            "super" => parent(at),
            name if self.has_child(at, name) => child(at, name),
            name => match self.find_use(at, name).filter(|used| !names_itself(used)) {
                Some(_) if hops == 0 => return None,
                Some(used) => return self.resolve(at, &[&used.target, rest].concat(), hops - 1),
                None if is_crate(name) => name.to_owned(),
                None => return None,
            },
        };
        while let Some((next, after)) = rest.split_first() {
            if next == "super" {
                here = parent(&here);
            } else if self.has_child(&here, next) {
                here = child(&here, next);
            } else {
                let exported = self.find_use(&here, next).filter(|_| hops > 0);
                let found = exported.map(|used| [&used.target, after].concat());
                return found.and_then(|names| self.resolve(&here, &names, hops - 1)).or(Some(here));
            }
            rest = after;
        }
        Some(here)
    }

    /// The path of the crate that the module lies in.
    fn crate_at(&self, at: &str) -> String {
        let outermost = at.split("::").next().unwrap_or_default();
        if is_crate(outermost) { outermost.to_owned() } else { String::new() }
    }

    /// Whether it is public does not matter: what compiles names only what it may.
    fn find_use(&self, at: &str, name: &str) -> Option<&'static Use> {
        self.by_path.get(at)?.written.uses.iter().find(|used| used.name == name)
    }

    fn has_child(&self, at: &str, name: &str) -> bool {
        self.by_path.contains_key(&child(at, name))
    }
}

/// `use clock;` and `use clock as time;` bring a crate.
fn names_itself(used: &Use) -> bool {
    used.target.len() == 1 && used.target[0] == used.name
}

/// The crate of the workspace whose file it is; None for those of the crate on top.
pub(crate) fn crate_of(file: &str) -> Option<&str> {
    let (room, _) = file.strip_prefix("src/")?.split_once('/')?;
    is_crate(room).then_some(room)
}

fn is_crate(name: &str) -> bool {
    let lib = format!("src/{name}/lib.rs");
    Source::all().binary_search_by(|source| source.path.as_str().cmp(&lib)).is_ok()
}

fn child(path: &str, name: &str) -> String {
    join(path, &[name.to_owned()])
}

fn join(path: &str, names: &[String]) -> String {
    let before = (!path.is_empty()).then(|| path.to_owned());
    before.into_iter().chain(names.iter().cloned()).collect::<Vec<_>>().join("::")
}

fn parent(path: &str) -> String {
    path.rsplit_once("::").map(|(parent, _)| parent.to_owned()).unwrap_or_default()
}

fn file_of(module: &str) -> String {
    let path = format!("src/{}", module.replace("::", "/"));
    let flat = format!("{path}.rs");
    let is_there =
        |file: &str| Source::all().binary_search_by(|source| source.path.as_str().cmp(file)).is_ok();
    if is_there(&flat) { flat } else { format!("{path}/mod.rs") }
}

#[test]
fn paths_lead_to_the_module_that_holds_the_thing() {
    let modules = Modules::all();
    let names = |path: &str| path.split("::").map(str::to_owned).collect::<Vec<_>>();
    let resolved = |at: &str, path: &str| modules.resolve(at, &names(path), MAX_HOPS);
    assert_eq!(resolved("cli", "crate::Cluster").as_deref(), Some("cluster"));
    assert_eq!(resolved("etcd::kv", "super::writer").as_deref(), Some("etcd::writer"));
    assert_eq!(resolved("etcd", "self::kv").as_deref(), Some("etcd::kv"));
    assert_eq!(resolved("etcd", "std::fs"), None);
    assert_eq!(resolved("kubelet", "clock::Clock").as_deref(), Some("clock"));
    assert_eq!(resolved("kubelet::prober", "crate::backoff").as_deref(), Some("kubelet::backoff"));
    assert!(modules.is_test("src/etcd/tests/mod.rs") && !modules.is_test("src/etcd/kv.rs"));
}
