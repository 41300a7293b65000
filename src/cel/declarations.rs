//! Which functions there are, and for which types: the table `declarations.txt`, read when it is first
//! needed.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use super::types::Type;

/// One form of a function.
#[derive(Clone, Debug)]
pub(super) struct Overload {
    pub target: Option<Type>,
    pub args: Vec<Type>,
    pub result: Type,
}

/// A constant that is read lazily.
static TABLE: LazyLock<HashMap<String, Vec<Overload>>> =
    LazyLock::new(|| read(include_str!("declarations.txt")));

/// The forms of a function; None where none is declared.
pub(super) fn overloads(function: &str) -> Option<&'static [Overload]> {
    let function = match function {
        // Ordered comparison is declared once.
        "_<=_" | "_>_" | "_>=_" => "_<_",
        other => other,
    };
    TABLE.get(function).map(Vec::as_slice)
}

fn read(table: &str) -> HashMap<String, Vec<Overload>> {
    let mut out: HashMap<String, Vec<Overload>> = HashMap::new();
    for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let [function, target, args, result] = columns[..] else { panic!("four columns: {line}") };
        let target = (target != "-").then(|| read_type(target));
        let split = args.split(';').map(str::trim).filter(|arg| !arg.is_empty());
        let args: Vec<&str> = split.collect();
        for forms in numeric_forms(&args) {
            let overload = Overload {
                target: target.clone(),
                result: match result {
                    "A" if args.contains(&"number") => forms[0].clone(),
                    other => read_type(other),
                },
                args: forms,
            };
            out.entry(function.to_owned()).or_default().push(overload);
        }
    }
    out
}

/// `number` stands for each of the numeric types; two numbers may be of two types.
fn numeric_forms(args: &[&str]) -> Vec<Vec<Type>> {
    let mut forms = vec![vec![]];
    for arg in args {
        let types = match *arg {
            "number" => vec![Type::Int, Type::Uint, Type::Double],
            other => vec![read_type(other)],
        };
        let grow = |form: &Vec<Type>| -> Vec<Vec<Type>> {
            types.iter().map(|last| form.iter().chain([last]).cloned().collect()).collect()
        };
        forms = forms.iter().flat_map(grow).collect();
    }
    forms
}

fn read_type(text: &str) -> Type {
    let text = text.trim();
    if let Some((name, inner)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        return match name {
            "list" => Type::list(read_type(inner)),
            "optional" => Type::optional(read_type(inner)),
            _ => {
                let (key, value) = inner.split_once(',').expect("a map has two");
                Type::Map(Arc::new(read_type(key)), Arc::new(read_type(value)))
            }
        };
    }
    let mut letters = text.chars();
    if let (Some(letter), None) = (letters.next(), letters.next()) {
        return Type::Param(letter);
    }
    Type::named(text).unwrap_or_else(|| panic!("{text} is no type"))
}
