//! One source file, read once for all rules: its modules, what they name, and which lines are tests.

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A file below `src`.
pub(crate) struct Source {
    /// From the repository's root.
    pub path: String,
    pub text: String,
    /// The file itself, then the modules that are written inside of it.
    pub modules: Vec<Written>,
    /// Texts in quotes, with their lines.
    pub literals: Vec<(usize, String)>,
    test_lines: Vec<RangeInclusive<usize>>,
}

/// A module as it is written: a file, or `mod name { ... }` within one.
#[derive(Default)]
pub(crate) struct Written {
    /// The names of the inline modules around it, itself included; empty for the file.
    pub inside: Vec<String>,
    pub children: Vec<Child>,
    pub uses: Vec<Use>,
    /// Paths of two names or more in the code.
    pub paths: Vec<(usize, Vec<String>)>,
}

/// `mod name;`
#[derive(Debug, PartialEq)]
pub(crate) struct Child {
    pub name: String,
    /// Whether it is compiled for tests alone.
    pub is_test: bool,
    /// Its file beside the declaring one, where `#[path]` names it.
    pub file: Option<String>,
}

/// One name that a `use` brings; the name is empty behind a `*`.
pub(crate) struct Use {
    pub line: usize,
    pub name: String,
    pub target: Vec<String>,
}

impl Source {
    /// All of them, in the order of their paths.
    pub(crate) fn all() -> &'static [Source] {
        static ALL: OnceLock<Vec<Source>> = OnceLock::new();
        ALL.get_or_init(|| {
            let mut files = Vec::new();
            collect(&root().join("src"), &mut files);
            assert!(files.len() > 20, "the sources are not where they should be");
            let mut sources: Vec<Source> = files.iter().map(|path| Source::read(path)).collect();
            sources.sort_by(|left, right| left.path.cmp(&right.path));
            sources
        })
    }

    fn read(path: &Path) -> Source {
        let text = fs::read_to_string(path).unwrap();
        let path = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        Source::parse(path, text)
    }

    pub(crate) fn parse(path: String, text: String) -> Source {
        let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut reader = Reader { modules: vec![Written::default()], ..Reader::default() };
        reader.visit_file(&file);
        let Reader { modules, literals, test_lines, .. } = reader;
        Source { path, text, modules, literals, test_lines }
    }

    /// Whether the whole file is compiled for tests alone.
    pub(crate) fn is_test(&self) -> bool {
        super::modules::Modules::all().is_test(&self.path)
    }

    /// Numbered lines without comments and without the bodies of test items.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let is_test = self.is_test();
        let lines = self.text.lines().enumerate().map(|(at, line)| (at + 1, line));
        let lines = lines.filter(move |(number, _)| !is_test && !self.is_test_line(*number));
        lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    pub(crate) fn is_test_line(&self, number: usize) -> bool {
        self.test_lines.iter().any(|lines| lines.contains(&number))
    }
}

#[derive(Default)]
struct Reader {
    modules: Vec<Written>,
    /// Which of the modules is being read.
    current: usize,
    literals: Vec<(usize, String)>,
    test_lines: Vec<RangeInclusive<usize>>,
}

impl Reader {
    fn module(&mut self) -> &mut Written {
        &mut self.modules[self.current]
    }

    /// Whether it is read: the lines of a test item are noted and left out.
    fn is_read(&mut self, attributes: &[syn::Attribute], item: &impl Spanned) -> bool {
        let is_test = attributes.iter().any(is_for_tests);
        if is_test {
            let first = attributes.iter().map(|attribute| attribute.span().start().line).min();
            let span = item.span();
            self.test_lines.push(first.unwrap_or(span.start().line)..=span.end().line);
        }
        !is_test
    }

    fn add_use(&mut self, tree: &syn::UseTree, before: &[String]) {
        let line = tree.span().start().line;
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        let mut add = |name: String, target: Vec<String>| {
            self.modules[self.current].uses.push(Use { line, name, target });
        };
        match tree {
            syn::UseTree::Path(path) => self.add_use(&path.tree, &with(&path.ident)),
            syn::UseTree::Name(name) if name.ident == "self" => {
                add(before.last().cloned().unwrap_or_default(), before.to_vec());
            }
            syn::UseTree::Name(name) => add(name.ident.to_string(), with(&name.ident)),
            syn::UseTree::Rename(rename) if rename.ident == "self" => {
                add(rename.rename.to_string(), before.to_vec())
            }
            syn::UseTree::Rename(rename) => add(rename.rename.to_string(), with(&rename.ident)),
            syn::UseTree::Glob(_) => add(String::new(), before.to_vec()),
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.add_use(tree, before));
            }
        }
    }

    /// Macros are not parsed: their paths and texts are picked from the tokens.
    fn read_tokens(&mut self, tokens: TokenStream) {
        let mut names: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            let line = token.span().start().line;
            match token {
                TokenTree::Ident(name) if colons == 2 && !names.is_empty() => names.push(name.to_string()),
                TokenTree::Ident(name) => {
                    self.add_path(line, std::mem::take(&mut names));
                    names = vec![name.to_string()];
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Group(group) => {
                    self.add_path(line, std::mem::take(&mut names));
                    self.read_tokens(group.stream());
                }
                TokenTree::Literal(literal) => {
                    self.add_path(line, std::mem::take(&mut names));
                    if let Ok(text) = syn::parse_str::<syn::LitStr>(&literal.to_string()) {
                        self.literals.push((line, text.value()));
                    }
                }
                TokenTree::Punct(_) => self.add_path(line, std::mem::take(&mut names)),
            }
            colons = 0;
        }
        self.add_path(0, names);
    }

    fn add_path(&mut self, line: usize, names: Vec<String>) {
        if names.len() > 1 {
            self.module().paths.push((line, names));
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if let syn::Item::Mod(module) = item
            && module.content.is_none()
        {
            let name = module.ident.to_string();
            let is_test = module.attrs.iter().any(is_for_tests);
            let file = module.attrs.iter().find_map(named_file);
            self.module().children.push(Child { name, is_test, file });
            return;
        }
        if self.is_read(attributes(item), item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if self.is_read(&function.attrs, function) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let outer = self.current;
        let inside = [self.module().inside.clone(), vec![module.ident.to_string()]].concat();
        self.modules.push(Written { inside, ..Written::default() });
        self.current = self.modules.len() - 1;
        visit::visit_item_mod(self, module);
        self.current = outer;
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.add_use(&item.tree, &[]);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.add_path(path.span().start().line, names);
        visit::visit_path(self, path);
    }

    fn visit_lit_str(&mut self, text: &'ast syn::LitStr) {
        self.literals.push((text.span().start().line, text.value()));
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.visit_path(&called.path);
        self.read_tokens(called.tokens.clone());
    }

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// `#[test]` and `#[cfg(test)]`.
fn is_for_tests(attribute: &syn::Attribute) -> bool {
    let path = attribute.path();
    if path.is_ident("test") {
        return true;
    }
    path.is_ident("cfg") && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
}

/// `#[path = "FILE"]`
fn named_file(attribute: &syn::Attribute) -> Option<String> {
    let syn::Meta::NameValue(syn::MetaNameValue { path, value: syn::Expr::Lit(file), .. }) = &attribute.meta
    else {
        return None;
    };
    let syn::Lit::Str(file) = &file.lit else { return None };
    path.is_ident("path").then(|| file.value())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn test_items_alone_are_left_out() {
    let text = "use a::{b, c as d, e::*};\n#[cfg(test)]\nmod tests {\n    use super::x;\n}\nfn f() {\n    g::h();\n}\n\
                #[cfg(test)]\n#[path = \"sooner.rs\"]\nmod later;\nconst T: &str = \"a.b\";\n";
    let source = Source::parse("src/sample.rs".into(), text.into());
    let names: Vec<_> = source.modules[0].uses.iter().map(|used| used.target.join("::")).collect();
    assert_eq!(names, ["a::b", "a::c", "a::e"]);
    assert_eq!(source.modules.len(), 1);
    let later = Child { name: "later".into(), is_test: true, file: Some("sooner.rs".into()) };
    assert_eq!(source.modules[0].children, [later]);
    assert_eq!(source.modules[0].paths, [(7, vec!["g".to_owned(), "h".to_owned()])]);
    assert_eq!(source.literals, [(12, "a.b".to_owned())]);
    assert!(source.is_test_line(4) && !source.is_test_line(7));
}
