//! The tree of an expression. Macros are nodes of their own, so that they are checked and run as what they
//! are and not as folds.

use super::types::Type;
use super::value::Value;

/// One node, and where it stands in the text.
#[derive(Clone, Debug)]
pub(super) struct Expr {
    /// Byte offset: of an operator, of the `(` of a call, of the `.` of a selection, as in cel-go.
    pub at: usize,
    pub node: ExpressionNode,
    /// What the checker found it to be; `dyn` before.
    pub of: Type,
    /// What it always is, where that is known before it runs.
    pub constant: Option<Value>,
    /// How many levels the tree has below and with this one, when it was read.
    pub height: usize,
}

#[derive(Clone, Debug)]
pub(super) enum ExpressionNode {
    Literal(Value),
    /// A name; qualified when it began with a dot or stands for a dotted declaration.
    Ident(String),
    Select {
        operand: Box<Expr>,
        field: String,
    },
    /// `has(operand.field)`
    Has {
        operand: Box<Expr>,
        field: String,
    },
    /// `operand.?field`
    OptionalSelect {
        operand: Box<Expr>,
        field: String,
    },
    /// Functions and operators; operators have cel-go's names, as `_==_`. `&&` and `||` take any number.
    Call {
        function: String,
        target: Option<Box<Expr>>,
        args: Vec<Expr>,
    },
    List(Vec<MapEntry<Expr>>),
    Map(Vec<MapEntry<(Expr, Expr)>>),
    /// `Type{field: value}`
    Struct {
        type_name: String,
        fields: Vec<MapEntry<(String, Expr)>>,
    },
    Macro(Box<Macro>),
}

/// A literal's element; optional ones (`?x`) are left out when they hold nothing.
#[derive(Clone, Debug)]
pub(super) struct MapEntry<T> {
    pub value: T,
    pub optional: bool,
}

/// A comprehension.
#[derive(Clone, Debug)]
pub(super) struct Macro {
    pub kind: MacroKind,
    /// What is gone through, or may hold something.
    pub range: Expr,
    /// One name, or two: index or key, and element.
    pub variables: Vec<String>,
    /// Which elements are taken.
    pub filter: Option<Expr>,
    /// What is made or asked of each.
    pub step: Expr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MacroKind {
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
    TransformList,
    TransformMap,
    TransformMapEntry,
    SortBy,
    OptMap,
    OptFlatMap,
    /// `cel.bind(name, range, step)`
    Bind,
}

impl Expr {
    pub(super) fn new(at: usize, node: ExpressionNode) -> Expr {
        let mut expr = Expr { at, node, of: Type::Dyn, constant: None, height: 0 };
        expr.measure();
        expr
    }

    /// Its height, of its parts' heights; again when it is given another part.
    pub(super) fn measure(&mut self) {
        let below = self.parts().into_iter().map(|part| part.height).max();
        self.height = below.unwrap_or(0).saturating_add(1);
    }

    pub(super) fn call(at: usize, function: &str, args: Vec<Expr>) -> Expr {
        Expr::new(at, ExpressionNode::Call { function: function.into(), target: None, args })
    }

    /// The expressions that it is made of.
    pub(super) fn parts(&self) -> Vec<&Expr> {
        match &self.node {
            ExpressionNode::Literal(_) | ExpressionNode::Ident(_) => vec![],
            ExpressionNode::Select { operand, .. }
            | ExpressionNode::Has { operand, .. }
            | ExpressionNode::OptionalSelect { operand, .. } => vec![operand],
            ExpressionNode::Call { target, args, .. } => target.as_deref().into_iter().chain(args).collect(),
            ExpressionNode::List(items) => items.iter().map(|item| &item.value).collect(),
            ExpressionNode::Map(entries) => {
                entries.iter().flat_map(|entry| [&entry.value.0, &entry.value.1]).collect()
            }
            ExpressionNode::Struct { fields, .. } => fields.iter().map(|field| &field.value.1).collect(),
            ExpressionNode::Macro(comprehension) => {
                let Macro { range, filter, step, .. } = &**comprehension;
                [Some(range), filter.as_ref(), Some(step)].into_iter().flatten().collect()
            }
        }
    }

    /// `a.b.c` as text, if it is nothing but names.
    pub(super) fn dotted(&self) -> Option<String> {
        let mut names = vec![];
        let mut rest = self;
        while let ExpressionNode::Select { operand, field } = &rest.node {
            names.push(field.as_str());
            rest = operand;
        }
        let ExpressionNode::Ident(name) = &rest.node else { return None };
        names.push(name);
        names.reverse();
        Some(names.join("."))
    }
}

/// Whether an expression names a variable.
pub(super) fn mentions(expr: &Expr, name: &str) -> bool {
    any(expr, &|node| match node {
        ExpressionNode::Ident(found) => found == name || found.split('.').next() == Some(name),
        _ => false,
    })
}

/// Whether an expression asks for a field of a variable: `name.field`, `name.?field`, `has(name.field)`.
pub(super) fn selects(expr: &Expr, name: &str, wanted: &str) -> bool {
    any(expr, &|node| match node {
        ExpressionNode::Select { operand, field }
        | ExpressionNode::Has { operand, field }
        | ExpressionNode::OptionalSelect { operand, field } => {
            field == wanted && matches!(&operand.node, ExpressionNode::Ident(found) if found == name)
        }
        _ => false,
    })
}

/// Whether one of the nodes of an expression is what is looked for.
fn any(expr: &Expr, wanted: &dyn Fn(&ExpressionNode) -> bool) -> bool {
    super::on_enough_stack(|| wanted(&expr.node) || expr.parts().into_iter().any(|part| any(part, wanted)))
}
