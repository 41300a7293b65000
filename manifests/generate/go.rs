//! Go's types, as far as the sources of API groups need it: structs with tags and markers, names, constants.
//!
//! This is no parser of Go: it knows how `gofmt` writes declarations, and reads line by line.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// A type as a field or a declaration names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expr {
    /// One that Go itself has.
    Basic(String),
    /// One that a package declares, by the path of its import.
    Named { package: String, name: String },
    /// `*T`
    Pointer(Box<Expr>),
    /// `[]T`
    Slice(Box<Expr>),
    /// `map[K]T`
    Map(Box<Expr>, Box<Expr>),
}

/// What kind of value a type has in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A text, number or truth.
    Scalar,
    /// A list or map, which may be nil.
    Collection,
    /// A struct.
    Struct,
    /// A pointer or an interface.
    Pointer,
}

/// A field of a struct.
#[derive(Clone, Debug)]
pub(crate) struct GoField {
    /// Its name in JSON; empty where its own fields stand in its place.
    pub json: String,
    /// It is left out when it is empty: a struct never is.
    pub is_omitted: bool,
    /// It is left out when it is zero, a struct as well.
    pub is_zero_omitted: bool,
    /// Its number in protobuf.
    pub number: Option<u32>,
    /// Its type.
    pub of: Expr,
    /// The `+name=value` lines above it.
    pub markers: Vec<String>,
}

/// A declared type.
#[derive(Clone, Debug)]
pub(crate) enum Declared {
    /// A struct.
    Struct(Vec<GoField>),
    /// `type T U`
    Name(Expr),
    /// `type T = U`
    Alias(Expr),
}

/// A package: what it declares.
#[derive(Debug, Default)]
pub(crate) struct Package {
    types: BTreeMap<String, (Declared, Vec<String>)>,
    constants: Vec<Constant>,
}

#[derive(Debug)]
struct Constant {
    name: String,
    declared: Expr,
    value: Text,
}

/// The text of a constant, or the constant that has it, by package and name.
#[derive(Debug)]
enum Text {
    Quoted(String),
    Of(String, String),
}

/// The packages of a checkout, each read when it is first asked for.
pub(crate) struct Packages {
    folder: PathBuf,
    read: RefCell<BTreeMap<String, Option<Rc<Package>>>>,
}

impl Packages {
    /// Those below `staging/src` of a checkout.
    pub(crate) fn new(checkout: &Path) -> Packages {
        Packages { folder: checkout.join("staging/src"), read: RefCell::default() }
    }

    /// A package by the path of its import; None where the checkout does not have it.
    pub(crate) fn get(&self, path: &str) -> Option<Rc<Package>> {
        if let Some(known) = self.read.borrow().get(path) {
            return known.clone();
        }
        let package = read_package(&self.folder.join(path), path).map(Rc::new);
        self.read.borrow_mut().insert(path.to_owned(), package.clone());
        package
    }

    /// The package and the type of a published definition, such as `io.k8s.api.core.v1.Pod`.
    pub(crate) fn definition(&self, name: &str) -> Option<(Rc<Package>, String)> {
        let (path, name) = path_of(name)?;
        self.get(&path).map(|package| (package, name))
    }

    /// The fields of a published definition that is a struct.
    pub(crate) fn fields_of(&self, definition: &str) -> Option<Vec<GoField>> {
        let (path, name) = path_of(definition)?;
        self.fields(&Expr::Named { package: path, name })
    }

    /// The fields of a struct, whatever names stand between.
    pub(crate) fn fields(&self, of: &Expr) -> Option<Vec<GoField>> {
        match self.declared(of)? {
            Declared::Struct(fields) => Some(fields),
            Declared::Name(next) | Declared::Alias(next) => self.fields(&next),
        }
    }

    /// What a name stands for.
    pub(crate) fn declared(&self, of: &Expr) -> Option<Declared> {
        let Expr::Named { package, name } = of else { return None };
        self.get(package)?.types.get(name).map(|(declared, _)| declared.clone())
    }

    /// The markers above a type.
    pub(crate) fn markers(&self, of: &Expr) -> Vec<String> {
        let Expr::Named { package, name } = of else { return Vec::new() };
        self.get(package).and_then(|package| Some(package.types.get(name)?.1.clone())).unwrap_or_default()
    }

    /// The texts of all constants of a type, sorted; they stand in its package.
    pub(crate) fn constants(&self, of: &Expr) -> Vec<String> {
        let Expr::Named { package, .. } = of else { return Vec::new() };
        let package = self.get(package);
        let all = package.iter().flat_map(|package| &package.constants);
        let mut texts: Vec<String> =
            all.filter(|one| one.declared == *of).filter_map(|one| self.text(&one.value)).collect();
        texts.sort();
        texts.dedup();
        texts
    }

    /// The text of a constant by its name, in the package of a definition.
    pub(crate) fn constant(&self, definition: &str, name: &str) -> Option<String> {
        self.text(&Text::Of(path_of(definition)?.0, name.to_owned()))
    }

    fn text(&self, value: &Text) -> Option<String> {
        match value {
            Text::Quoted(text) => Some(text.clone()),
            Text::Of(package, name) => {
                let package = self.get(package)?;
                let found = package.constants.iter().find(|one| one.name == *name)?;
                self.text(&found.value)
            }
        }
    }

    /// A type without the aliases that lead to it.
    pub(crate) fn resolved(&self, of: &Expr) -> Expr {
        match self.declared(of) {
            Some(Declared::Alias(next)) => self.resolved(&next),
            _ => of.clone(),
        }
    }

    /// What kind of value a type has; None where the checkout does not say.
    pub(crate) fn kind(&self, of: &Expr) -> Option<Kind> {
        match of {
            Expr::Basic(name) if name == "interface{}" || name == "any" => Some(Kind::Pointer),
            Expr::Basic(_) => Some(Kind::Scalar),
            Expr::Pointer(_) => Some(Kind::Pointer),
            Expr::Slice(_) | Expr::Map(..) => Some(Kind::Collection),
            Expr::Named { .. } => match self.declared(of)? {
                Declared::Struct(_) => Some(Kind::Struct),
                Declared::Name(next) | Declared::Alias(next) => self.kind(&next),
            },
        }
    }
}

/// `io.k8s.api.core.v1.Pod` is `Pod` of `k8s.io/api/core/v1`.
fn path_of(definition: &str) -> Option<(String, String)> {
    let (package, name) = definition.strip_prefix("io.k8s.")?.rsplit_once('.')?;
    Some((format!("k8s.io/{}", package.replace('.', "/")), name.to_owned()))
}

/// Sources written by hand; None where there are none.
fn read_package(folder: &Path, path: &str) -> Option<Package> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let mut package = Package::default();
    for file in files.iter().filter(|file| is_source(file)) {
        Reader::new(path).read(&fs::read_to_string(file).ok()?, &mut package);
    }
    (!package.types.is_empty()).then_some(package)
}

fn is_source(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let is_made = ["zz_", "generated.", "types_swagger_doc"].iter().any(|prefix| name.starts_with(prefix));
    name.ends_with(".go") && !name.ends_with("_test.go") && !is_made
}

/// Reads one file.
struct Reader<'a> {
    package: &'a str,
    /// The paths of imports by the names that they have in this file.
    imports: BTreeMap<String, String>,
    markers: Vec<String>,
}

impl<'a> Reader<'a> {
    fn new(package: &'a str) -> Reader<'a> {
        Reader { package, imports: BTreeMap::new(), markers: Vec::new() }
    }

    fn read(mut self, text: &str, into: &mut Package) {
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if self.is_remark(line) {
                continue;
            }
            if line == "import (" {
                lines.by_ref().take_while(|line| *line != ")").for_each(|line| self.import(line));
            } else if let Some(one) = line.strip_prefix("import ") {
                self.import(one);
            } else if line == "const (" {
                lines.by_ref().take_while(|line| *line != ")").for_each(|line| self.constant(line, into));
            } else if let Some(one) = line.strip_prefix("const ") {
                self.constant(one, into);
            } else if let Some(declaration) = line.strip_prefix("type ") {
                self.declaration(declaration, &mut lines, into);
            }
            self.markers.clear();
        }
    }

    /// Notes a marker; anything else in a comment says nothing to us.
    fn is_remark(&mut self, line: &str) -> bool {
        let Some(comment) = line.trim_start().strip_prefix("//") else { return false };
        if let Some(marker) = comment.trim_start().strip_prefix('+') {
            self.markers.push(marker.trim_end().to_owned());
        }
        true
    }

    /// `metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"`
    fn import(&mut self, line: &str) {
        let mut parts = line.trim().splitn(3, '"');
        let (Some(name), Some(path)) = (parts.next(), parts.next()) else { return };
        let last = path.rsplit('/').next().unwrap_or(path);
        let name = if name.trim().is_empty() { last } else { name.trim() };
        self.imports.insert(name.to_owned(), path.to_owned());
    }

    /// `PodPending PodPhase = "Pending"`, or `AddressTypeIPv4 = AddressType("IPv4")`
    fn constant(&self, line: &str, into: &mut Package) {
        let Some((left, right)) = line.split_once('=') else { return };
        let words: Vec<&str> = left.split_whitespace().collect();
        let converted = || right.trim().split_once('(').map(|(declared, _)| declared);
        let (Some(name), Some(declared)) = (words.first(), words.get(1).copied().or_else(converted)) else {
            return;
        };
        if let (Some(value), Some(declared)) = (self.value(right.trim()), self.expr(declared)) {
            into.constants.push(Constant { name: (*name).to_owned(), declared, value });
        }
    }

    /// `"IPv4"`, `AddressType("IPv4")` or `AddressType(v1.IPv4Protocol)`
    fn value(&self, text: &str) -> Option<Text> {
        if let Some(quoted) = text.split('"').nth(1) {
            return Some(Text::Quoted(quoted.to_owned()));
        }
        let inner = text.split_once('(').map_or(text, |(_, rest)| rest.split(')').next().unwrap_or(rest));
        match self.name(without_remark(inner))? {
            Expr::Named { package, name } => Some(Text::Of(package, name)),
            _ => None,
        }
    }

    /// What follows `type`.
    fn declaration<'l>(&mut self, text: &str, lines: &mut impl Iterator<Item = &'l str>, into: &mut Package) {
        let markers = std::mem::take(&mut self.markers);
        let Some((name, rest)) = text.split_once(' ') else { return };
        let declared = match without_remark(rest) {
            "struct {" => Some(Declared::Struct(self.fields(lines))),
            "struct{}" | "struct {}" => Some(Declared::Struct(Vec::new())),
            other => match other.strip_prefix("= ") {
                Some(alias) => self.expr(alias).map(Declared::Alias),
                None => self.expr(other).map(Declared::Name),
            },
        };
        if let Some(declared) = declared {
            into.types.insert(name.to_owned(), (declared, markers));
        }
    }

    fn fields<'l>(&mut self, lines: &mut impl Iterator<Item = &'l str>) -> Vec<GoField> {
        let mut fields = Vec::new();
        for line in lines.by_ref().take_while(|line| *line != "}") {
            if !self.is_remark(line) {
                fields.extend(self.field(line));
                self.markers.clear();
            }
        }
        fields
    }

    /// `Replicas *int32 `json:"replicas,omitempty" protobuf:"varint,1,opt,name=replicas"``
    fn field(&self, line: &str) -> Option<GoField> {
        let (declaration, tags) = line.split_once('`')?;
        let tags = tags.split('`').next()?;
        let json: Vec<&str> = tag(tags, "json")?.split(',').collect();
        let is_zero_omitted = json.contains(&"omitzero");
        let is_omitted = is_zero_omitted || json.contains(&"omitempty");
        let mut words = declaration.split_whitespace();
        let first = words.next()?;
        let of = self.expr(words.next().unwrap_or(first))?;
        let number = tag(tags, "protobuf").and_then(|tag| tag.split(',').nth(1)?.parse().ok());
        (json[0] != "-").then(|| GoField {
            json: json[0].to_owned(),
            is_omitted,
            is_zero_omitted,
            number,
            of,
            markers: self.markers.clone(),
        })
    }

    fn expr(&self, text: &str) -> Option<Expr> {
        let text = without_remark(text);
        if let Some(of) = text.strip_prefix('*') {
            return Some(Expr::Pointer(Box::new(self.expr(of)?)));
        }
        if let Some(of) = text.strip_prefix("[]") {
            return Some(Expr::Slice(Box::new(self.expr(of)?)));
        }
        if let Some((key, of)) = text.strip_prefix("map[").and_then(|rest| rest.split_once(']')) {
            return Some(Expr::Map(Box::new(self.expr(key)?), Box::new(self.expr(of)?)));
        }
        self.name(text)
    }

    fn name(&self, text: &str) -> Option<Expr> {
        const BASIC: [&str; 13] = [
            "string",
            "bool",
            "byte",
            "int",
            "int32",
            "int64",
            "uint8",
            "uint32",
            "uint64",
            "float64",
            "interface{}",
            "any",
            "error",
        ];
        if BASIC.contains(&text) {
            return Some(Expr::Basic(text.to_owned()));
        }
        let (package, name) = match text.split_once('.') {
            Some((import, name)) => (self.imports.get(import)?.clone(), name),
            None => (self.package.to_owned(), text),
        };
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        is_name.then(|| Expr::Named { package, name: name.to_owned() })
    }
}

/// The value of one of a field's tags.
fn tag<'t>(tags: &'t str, name: &str) -> Option<&'t str> {
    let rest = tags.split_once(&format!("{name}:\""))?.1;
    rest.split('"').next()
}

fn without_remark(text: &str) -> &str {
    text.split("//").next().unwrap_or(text).trim()
}
