//! Checks an expression against what is declared (`checker/checker.go`), and resolves dotted names.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ast::{Expr, ExpressionNode, Macro, MacroKind, MapEntry};
use super::checker_calls;
use super::environment::Environment;
use super::error::Issue;
use super::types::{ObjectType, Type};
use super::value::Value;

/// The one function that not everybody knows.
const JSON_PATCH: &str = "jsonpatch.escapeKey";

pub(super) struct Checker<'a> {
    environment: &'a Environment,
    /// Of comprehensions, innermost last.
    scopes: Vec<(String, Type)>,
    pub(super) issues: Vec<Issue>,
}

/// The type of `expr`, or everything that is wrong with it.
pub(super) fn check(expr: &mut Expr, environment: &Environment) -> Result<Type, Vec<Issue>> {
    let mut checker = Checker { environment, scopes: vec![], issues: vec![] };
    let of = checker.check(expr);
    if checker.issues.is_empty() { Ok(of) } else { Err(checker.issues) }
}

impl Checker<'_> {
    fn issue(&mut self, at: usize, message: String) -> Type {
        self.issues.push(Issue { at, message });
        Type::Dyn
    }

    pub(super) fn check(&mut self, expr: &mut Expr) -> Type {
        let of = super::on_enough_stack(|| self.check_node(expr));
        expr.of = of.clone();
        of
    }

    fn check_node(&mut self, expr: &mut Expr) -> Type {
        if let Some(of) = self.qualified(expr) {
            return of;
        }
        let at = expr.at;
        match &mut expr.node {
            ExpressionNode::Literal(value) => type_of_literal(value),
            ExpressionNode::Ident(name) => {
                let message = format!("undeclared reference to '{name}' (in container '')");
                self.issue(at, message)
            }
            ExpressionNode::Select { operand, field } => {
                let operand = self.check(operand);
                self.field(at, &operand, field)
            }
            ExpressionNode::Has { operand, field } => {
                let operand = self.check(operand);
                self.field(at, &operand, field);
                Type::Bool
            }
            ExpressionNode::OptionalSelect { operand, field } => {
                let operand = self.check(operand);
                match self.field(at, &operand, field) {
                    found @ Type::Optional(_) => found,
                    found => Type::optional(found),
                }
            }
            ExpressionNode::Call { function, target, args } => self.call(at, function, target, args),
            ExpressionNode::List(items) => self.list(items),
            ExpressionNode::Map(entries) => self.map(entries),
            ExpressionNode::Struct { type_name, fields } => self.structure(at, type_name, fields),
            ExpressionNode::Macro(comprehension) => self.comprehension(at, comprehension),
        }
    }

    /// A name that is declared, dots and all: a variable, or a type. Types become literals.
    fn qualified(&mut self, expr: &mut Expr) -> Option<Type> {
        let name = expr.dotted()?;
        let scoped = self.scopes.iter().rev().find(|(scoped, _)| *scoped == name).map(|(_, of)| of.clone());
        if let Some(of) = scoped.or_else(|| self.environment.variables.get(&name).cloned()) {
            expr.node = ExpressionNode::Ident(name);
            return Some(of);
        }
        let root = name.split('.').next().unwrap_or_default();
        let is_variable = self.environment.variables.contains_key(root)
            || self.scopes.iter().any(|(scoped, _)| scoped == root);
        let of = Type::named(&name).filter(|_| !is_variable && !matches!(&*name, "dyn" | "timestamp"))?;
        expr.node = ExpressionNode::Literal(Value::Type(of.runtime_name()));
        Some(Type::Type)
    }

    fn is_name(&self, name: &str) -> bool {
        self.environment.variables.contains_key(name) || self.scopes.iter().any(|(scoped, _)| scoped == name)
    }

    fn field(&mut self, at: usize, operand: &Type, field: &str) -> Type {
        match operand {
            Type::Dyn => Type::Dyn,
            Type::Map(_, value) => (**value).clone(),
            Type::Object(object) => match object.fields.get(field) {
                Some(of) => of.clone(),
                None => self.issue(at, format!("undefined field '{field}'")),
            },
            Type::Optional(inner) => match self.field(at, inner, field) {
                found @ Type::Optional(_) => found,
                found => Type::optional(found),
            },
            other => self.issue(at, format!("type '{other}' does not support field selection")),
        }
    }

    fn list(&mut self, items: &mut [MapEntry<Expr>]) -> Type {
        let mut of: Option<Type> = None;
        for MapEntry { value, optional } in items {
            let found = self.element(value, *optional);
            of = Some(self.joined(value.at, of, found));
        }
        Type::list(of.unwrap_or(Type::Dyn))
    }

    fn element(&mut self, value: &mut Expr, optional: bool) -> Type {
        match (self.check(value), optional) {
            (Type::Optional(inner), true) => (*inner).clone(),
            (Type::Dyn, true) => Type::Dyn,
            (other, true) => {
                let message = format!("expected type 'optional_type({other})' but found '{other}'");
                self.issue(value.at, message)
            }
            (found, false) => found,
        }
    }

    /// Literals of Kubernetes' environment hold one type.
    fn joined(&mut self, at: usize, of: Option<Type>, found: Type) -> Type {
        let Some(of) = of else { return found };
        match of.join(&found) {
            Some(joined) => joined,
            None => self.issue(at, format!("expected type '{of}' but found '{found}'")),
        }
    }

    fn map(&mut self, entries: &mut [MapEntry<(Expr, Expr)>]) -> Type {
        let mut keys = None;
        let mut values = None;
        for MapEntry { value: (key, value), optional } in entries {
            let found = self.check(key);
            keys = Some(self.joined(key.at, keys, found));
            let found = self.element(value, *optional);
            values = Some(self.joined(value.at, values, found));
        }
        Type::Map(Arc::new(keys.unwrap_or(Type::Dyn)), Arc::new(values.unwrap_or(Type::Dyn)))
    }

    fn structure(&mut self, at: usize, name: &str, fields: &mut [MapEntry<(String, Expr)>]) -> Type {
        let below = |open: &String| {
            name.strip_prefix(open.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if self.environment.open_structures.iter().any(below) {
            for MapEntry { value: (_, value), optional } in fields {
                self.element(value, *optional);
            }
            return Type::Object(Arc::new(ObjectType { name: name.into(), fields: BTreeMap::new() }));
        }
        let Some(object) = self.environment.structures.get(name).cloned() else {
            return self.issue(at, format!("undeclared reference to '{name}' (in container '')"));
        };
        for MapEntry { value: (field, value), optional } in fields {
            let found = self.element(value, *optional);
            let Some(wanted) = object.fields.get(field.as_str()) else {
                self.issue(value.at, format!("undefined field '{field}'"));
                continue;
            };
            if !wanted.accepts(&found, &mut BTreeMap::new()) {
                let message =
                    format!("expected type of field '{field}' is '{wanted}' but provided type is '{found}'");
                self.issue(value.at, message);
            }
        }
        Type::Object(object)
    }

    fn comprehension(&mut self, at: usize, comprehension: &mut Macro) -> Type {
        let Macro { kind, range, variables, filter, step } = comprehension;
        let of = self.check(range);
        if *kind == MacroKind::Bind {
            self.scopes.push((variables[0].clone(), of));
            let found = self.check(step);
            self.scopes.pop();
            return found;
        }
        let named = self.element_types(range.at, *kind, &of, variables.len());
        let depth = self.scopes.len();
        self.scopes.extend(variables.iter().cloned().zip(named));
        if let Some(filter) = filter {
            self.boolean(filter);
        }
        let found = self.check(step);
        self.scopes.truncate(depth);
        match kind {
            MacroKind::All | MacroKind::Exists | MacroKind::ExistsOne => {
                self.expect_boolean(step.at, &found);
                Type::Bool
            }
            MacroKind::Filter => {
                self.expect_boolean(step.at, &found);
                match of {
                    Type::Map(key, _) => Type::List(key),
                    other => other,
                }
            }
            MacroKind::Map | MacroKind::TransformList => Type::list(found),
            MacroKind::TransformMap => match of {
                Type::Map(key, _) => Type::Map(key, Arc::new(found)),
                _ => Type::Map(Arc::new(Type::Int), Arc::new(found)),
            },
            MacroKind::TransformMapEntry => found,
            MacroKind::SortBy if !found.is_ordered() => {
                let keys = Type::list(found);
                let function = "@sortByAssociatedKeys";
                self.no_overload(at, function, Some(&of), &[keys])
            }
            MacroKind::SortBy | MacroKind::Bind => of,
            MacroKind::OptMap => Type::optional(found),
            MacroKind::OptFlatMap => match found {
                Type::Optional(_) | Type::Dyn => found,
                other => self.issue(at, format!("expected type 'optional_type' but found '{other}'")),
            },
        }
    }

    fn boolean(&mut self, expr: &mut Expr) {
        let found = self.check(expr);
        self.expect_boolean(expr.at, &found);
    }

    fn expect_boolean(&mut self, at: usize, found: &Type) {
        if !matches!(found, Type::Bool | Type::Dyn) {
            self.issue(at, format!("expected type 'bool' but found '{found}'"));
        }
    }

    /// What the names of a comprehension over `of` stand for.
    fn element_types(&mut self, at: usize, kind: MacroKind, of: &Type, names: usize) -> Vec<Type> {
        match (kind, of) {
            (MacroKind::OptMap | MacroKind::OptFlatMap, Type::Optional(inner)) => vec![(**inner).clone()],
            (_, Type::Dyn) => vec![Type::Dyn; names],
            (_, Type::List(item)) if names == 2 => vec![Type::Int, (**item).clone()],
            (_, Type::List(item)) => vec![(**item).clone()],
            (_, Type::Map(key, value)) => vec![(**key).clone(), (**value).clone()],
            (_, other) => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or \
                     dynamic)"
                );
                self.issue(at, message);
                vec![Type::Dyn; names]
            }
        }
    }

    fn has_function(&self, name: &str) -> bool {
        self.environment.forms(name).is_some() && (name != JSON_PATCH || self.environment.has_json_patch)
    }

    /// The type of a call. A namespaced function (`sets.contains(...)`) becomes a global one.
    fn call(
        &mut self,
        at: usize,
        function: &mut String,
        target: &mut Option<Box<Expr>>,
        args: &mut [Expr],
    ) -> Type {
        if let Some(prefix) = target.as_ref().and_then(|target| target.dotted()) {
            let qualified = format!("{prefix}.{function}");
            let root = prefix.split('.').next().unwrap_or_default();
            if !self.is_name(root) && self.has_function(&qualified) {
                *function = qualified;
                *target = None;
            }
        }
        match (function.as_str(), args.len()) {
            ("_&&_" | "_||_", _) => return self.logical(args),
            ("_?_:_", 3) => {
                let types: Vec<Type> = args.iter_mut().map(|arg| self.check(arg)).collect();
                let found = checker_calls::conditional(args, &types);
                return found.unwrap_or_else(|| self.no_overload(at, function, None, &types));
            }
            _ => {}
        }
        if !self.has_function(function) {
            if let Some(target) = target {
                self.check(target);
            }
            args.iter_mut().for_each(|arg| drop(self.check(arg)));
            return self.issue(at, format!("undeclared reference to '{function}' (in container '')"));
        }
        let target = target.as_mut().map(|target| self.check(target));
        let args: Vec<Type> = args.iter_mut().map(|arg| self.argument(function, arg)).collect();
        let forms = self.environment.forms(function).unwrap_or_default();
        let found = checker_calls::resolve(forms, target.as_ref(), &args);
        found.unwrap_or_else(|| self.no_overload(at, function, target.as_ref(), &args))
    }

    fn no_overload(&mut self, at: usize, function: &str, target: Option<&Type>, args: &[Type]) -> Type {
        self.issue(at, checker_calls::no_overload(function, target, args))
    }

    /// The values that `format` takes may be of many types.
    fn argument(&mut self, function: &str, arg: &mut Expr) -> Type {
        match &mut arg.node {
            ExpressionNode::List(items) if function == "format" => {
                items.iter_mut().for_each(|item| drop(self.check(&mut item.value)));
                Type::list(Type::Dyn)
            }
            _ => self.check(arg),
        }
    }

    fn logical(&mut self, args: &mut [Expr]) -> Type {
        for arg in args {
            let found = self.check(arg);
            if !matches!(found, Type::Bool | Type::Dyn) {
                self.issue(arg.at, format!("expected type 'bool' but found '{found}'"));
            }
        }
        Type::Bool
    }
}

fn type_of_literal(value: &Value) -> Type {
    match value {
        Value::Null => Type::Null,
        Value::Bool(_) => Type::Bool,
        Value::Int(_) => Type::Int,
        Value::Uint(_) => Type::Uint,
        Value::Double(_) => Type::Double,
        Value::String(_) => Type::String,
        Value::Bytes(_) => Type::Bytes,
        Value::Type(_) => Type::Type,
        _ => Type::Dyn,
    }
}
