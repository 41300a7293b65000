//! From tokens to a tree (the grammar of CEL, by precedence).

use super::ast::{Expr, ExpressionNode, MapEntry};
use super::error::{CompileError, Issue};
use super::lexer::{CelToken, tokens};
use super::macros;
use super::syntax;
use super::value::Value;

/// How deep an expression may nest, and how many levels its tree may have: cel-go's limit. Whatever walks the
/// tree, dropping it too, goes as deep.
const MAX_DEPTH: usize = 250;

/// Operators from loosest to tightest.
const LEVELS: [&[(&str, &str)]; 5] = [
    &[("||", "_||_")],
    &[("&&", "_&&_")],
    &[
        ("==", "_==_"),
        ("!=", "_!=_"),
        ("<", "_<_"),
        ("<=", "_<=_"),
        (">", "_>_"),
        (">=", "_>=_"),
        ("in", "@in"),
    ],
    &[("+", "_+_"), ("-", "_-_")],
    &[("*", "_*_"), ("/", "_/_"), ("%", "_%_")],
];

/// What may become of the language one day.
const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Whether the language keeps a name for itself: nothing of a client's may be called so.
pub(super) fn is_keyword(name: &str) -> bool {
    is_literal(name) || RESERVED.contains(&name)
}

/// Words that no field can have as its name.
fn is_literal(word: &str) -> bool {
    matches!(word, "true" | "false" | "null" | "in")
}

/// Reads an expression, in which `cel.bind` may be known. What is no expression is told in the words of the
/// grammar's generated parser.
pub(super) fn parse(source: &str, has_bindings: bool) -> Result<Expr, CompileError> {
    read(source, has_bindings).map_err(|issue| {
        let is_ours = !issue.message.starts_with("Syntax error");
        let text = if is_ours { None } else { generated_text(source) };
        CompileError::syntax(source, issue, text)
    })
}

/// What the generated parser says; nothing of what nests too deep to be looked at.
fn generated_text(source: &str) -> Option<String> {
    let nests = |c: &char| matches!(c, '(' | '[' | '{' | '?' | '!' | '-' | '.');
    if source.chars().filter(nests).count() > MAX_DEPTH {
        return None;
    }
    let mistakes = syntax::mistakes(source);
    (!mistakes.is_empty()).then(|| CompileError::new(source, mistakes).to_string())
}

fn read(source: &str, has_bindings: bool) -> Result<Expr, Issue> {
    let tokens = tokens(source)?;
    let mut parser = CelParser { tokens, next: 0, depth: 0, has_bindings };
    let expr = parser.expression()?;
    match parser.peek() {
        CelToken::End => Ok(expr),
        _ => Err(parser.unexpected()),
    }
}

fn too_deep(at: usize) -> Issue {
    Issue { at, message: format!("expression recursion limit exceeded: {MAX_DEPTH}") }
}

/// Members and operators make a tree higher without nesting in the text.
fn not_too_high(expr: Expr) -> Result<Expr, Issue> {
    if expr.height > MAX_DEPTH { Err(too_deep(expr.at)) } else { Ok(expr) }
}

struct CelParser {
    tokens: Vec<(usize, CelToken)>,
    next: usize,
    depth: usize,
    has_bindings: bool,
}

impl CelParser {
    fn peek(&self) -> &CelToken {
        &self.tokens[self.next].1
    }

    fn at(&self) -> usize {
        self.tokens[self.next].0
    }

    fn advance(&mut self) -> (usize, CelToken) {
        let token = self.tokens[self.next].clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.peek(), CelToken::Symbol(found) if *found == symbol)
    }

    fn take(&mut self, symbol: &str) -> Option<usize> {
        self.is(symbol).then(|| self.advance().0)
    }

    fn expect(&mut self, symbol: &str) -> Result<usize, Issue> {
        self.take(symbol).ok_or_else(|| self.unexpected())
    }

    fn unexpected(&self) -> Issue {
        Issue { at: self.at(), message: format!("Syntax error: unexpected {:?}", self.peek()) }
    }

    fn expression(&mut self) -> Result<Expr, Issue> {
        super::on_enough_stack(|| self.nested_expression())
    }

    fn nested_expression(&mut self) -> Result<Expr, Issue> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(too_deep(self.at()));
        }
        let condition = self.binary(0)?;
        let expr = match self.take("?") {
            None => condition,
            Some(at) => {
                let yes = self.binary(0)?;
                self.expect(":")?;
                let no = self.expression()?;
                Expr::call(at, "_?_:_", vec![condition, yes, no])
            }
        };
        self.depth -= 1;
        not_too_high(expr)
    }

    fn binary(&mut self, level: usize) -> Result<Expr, Issue> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        let mut is_chain = false;
        while let Some(function) = self.operator(operators) {
            let (at, _) = self.advance();
            let right = self.binary(level + 1)?;
            if let ExpressionNode::Call { function: name, args, .. } = &mut left.node
                && level < 2
                && is_chain
                && name == function
            {
                // Only what is new counts: measuring all of them for each would be quadratic.
                let height = left.height.max(right.height.saturating_add(1));
                args.push(right);
                left.height = height;
                left = not_too_high(left)?;
                continue;
            }
            is_chain = true;
            left = not_too_high(Expr::call(at, function, vec![left, right]))?;
        }
        Ok(left)
    }

    fn operator(&self, operators: &[(&str, &'static str)]) -> Option<&'static str> {
        let text = match self.peek() {
            CelToken::Symbol(symbol) => symbol,
            CelToken::Ident(word) if word == "in" => "in",
            _ => return None,
        };
        operators.iter().find(|(symbol, _)| *symbol == text).map(|(_, function)| *function)
    }

    fn unary(&mut self) -> Result<Expr, Issue> {
        if self.is("!") {
            return self.prefixed("!", "!_");
        }
        if !self.is("-") {
            return self.member();
        }
        let literal = match &self.tokens.get(self.next + 1).map(|(_, token)| token) {
            Some(CelToken::Int(number)) => Some(Value::Int(-number)),
            Some(CelToken::IntMinimum) => Some(Value::Int(i64::MIN)),
            Some(CelToken::Double(number)) => Some(Value::Double(-number)),
            _ => None,
        };
        let Some(literal) = literal else { return self.prefixed("-", "-_") };
        let (at, _) = self.advance();
        self.advance();
        self.members(Expr::new(at, ExpressionNode::Literal(literal)))
    }

    /// Two of them are none.
    fn prefixed(&mut self, symbol: &str, function: &str) -> Result<Expr, Issue> {
        let at = self.at();
        let mut count = 0;
        while self.take(symbol).is_some() {
            count += 1;
        }
        let operand = self.member()?;
        Ok(if count % 2 == 1 { Expr::call(at, function, vec![operand]) } else { operand })
    }

    fn member(&mut self) -> Result<Expr, Issue> {
        let primary = self.primary()?;
        self.members(primary)
    }

    fn members(&mut self, mut expr: Expr) -> Result<Expr, Issue> {
        loop {
            expr = not_too_high(expr)?;
            if let Some(dot) = self.take(".") {
                expr = self.selection(expr, dot)?;
            } else if let Some(at) = self.take("[") {
                let function = if self.take("?").is_some() { "_[?_]" } else { "_[_]" };
                let index = self.expression()?;
                self.expect("]")?;
                expr = Expr::call(at, function, vec![expr, index]);
            } else if self.is("{") && expr.dotted().is_some() {
                expr = self.structure(expr)?;
            } else {
                return Ok(expr);
            }
        }
    }

    fn selection(&mut self, operand: Expr, dot: usize) -> Result<Expr, Issue> {
        let optional = self.take("?").is_some();
        let (field, is_name) = match self.advance() {
            (_, CelToken::Ident(name)) if !is_literal(&name) => (name, true),
            (_, CelToken::Escaped(name)) => (name, false),
            _ => {
                self.next -= 1;
                return Err(self.unexpected());
            }
        };
        let operand = Box::new(operand);
        if optional {
            return Ok(Expr::new(dot, ExpressionNode::OptionalSelect { operand, field }));
        }
        // What stands in backquotes is never called.
        let open = if is_name { self.take("(") } else { None };
        let Some(open) = open else {
            return Ok(Expr::new(dot, ExpressionNode::Select { operand, field }));
        };
        let args = self.list_until(")")?;
        macros::member_call(open, *operand, field, args, self.has_bindings)
    }

    fn primary(&mut self) -> Result<Expr, Issue> {
        let (at, token) = self.advance();
        let literal = |value| Ok(Expr::new(at, ExpressionNode::Literal(value)));
        match token {
            CelToken::Int(number) => literal(Value::Int(number)),
            CelToken::Uint(number) => literal(Value::Uint(number)),
            CelToken::Double(number) => literal(Value::Double(number)),
            CelToken::Text(text) => literal(Value::from(text.as_str())),
            CelToken::Bytes(bytes) => literal(Value::Bytes(bytes.into())),
            CelToken::Ident(word) => self.word(at, word),
            CelToken::Symbol(".") => match self.advance() {
                (at, CelToken::Ident(word)) => self.word(at, word),
                _ => Err(self.back()),
            },
            CelToken::Symbol("(") => {
                let expr = self.expression()?;
                self.expect(")")?;
                Ok(expr)
            }
            CelToken::Symbol("[") => {
                let items = self.items("]")?;
                Ok(Expr::new(at, ExpressionNode::List(items)))
            }
            CelToken::Symbol("{") => {
                let entries = self.entries()?;
                Ok(Expr::new(at, ExpressionNode::Map(entries)))
            }
            _ => Err(self.back()),
        }
    }

    fn back(&mut self) -> Issue {
        // Nothing was taken of an empty text.
        let Some(last) = self.next.checked_sub(1) else { return self.unexpected() };
        if !matches!(self.peek(), CelToken::End) || self.at() > self.tokens[last].0 {
            self.next = last;
        }
        self.unexpected()
    }

    fn word(&mut self, at: usize, word: String) -> Result<Expr, Issue> {
        match word.as_str() {
            "true" => return Ok(Expr::new(at, ExpressionNode::Literal(Value::Bool(true)))),
            "false" => return Ok(Expr::new(at, ExpressionNode::Literal(Value::Bool(false)))),
            "null" => return Ok(Expr::new(at, ExpressionNode::Literal(Value::Null))),
            "in" => return Err(self.back()),
            reserved if RESERVED.contains(&reserved) => {
                return Err(Issue { at, message: format!("reserved identifier: {reserved}") });
            }
            _ => {}
        }
        let Some(open) = self.take("(") else { return Ok(Expr::new(at, ExpressionNode::Ident(word))) };
        let args = self.list_until(")")?;
        macros::global_call(open, word, args)
    }

    fn list_until(&mut self, close: &str) -> Result<Vec<Expr>, Issue> {
        let mut args = vec![];
        if self.take(close).is_some() {
            return Ok(args);
        }
        loop {
            args.push(self.expression()?);
            if self.take(",").is_none() {
                self.expect(close)?;
                return Ok(args);
            }
        }
    }

    fn items(&mut self, close: &str) -> Result<Vec<MapEntry<Expr>>, Issue> {
        let mut items = vec![];
        while self.take(close).is_none() {
            let optional = self.take("?").is_some();
            items.push(MapEntry { value: self.expression()?, optional });
            if self.take(",").is_none() {
                self.expect(close)?;
                break;
            }
        }
        Ok(items)
    }

    fn entries(&mut self) -> Result<Vec<MapEntry<(Expr, Expr)>>, Issue> {
        let mut entries = vec![];
        while self.take("}").is_none() {
            let optional = self.take("?").is_some();
            let key = self.expression()?;
            self.expect(":")?;
            entries.push(MapEntry { value: (key, self.expression()?), optional });
            if self.take(",").is_none() {
                self.expect("}")?;
                break;
            }
        }
        Ok(entries)
    }

    fn structure(&mut self, name: Expr) -> Result<Expr, Issue> {
        let at = self.expect("{")?;
        let mut fields = vec![];
        while self.take("}").is_none() {
            let optional = self.take("?").is_some();
            let field = match self.advance().1 {
                CelToken::Ident(name) if !is_literal(&name) => name,
                CelToken::Escaped(name) => name,
                _ => return Err(self.back()),
            };
            self.expect(":")?;
            fields.push(MapEntry { value: (field, self.expression()?), optional });
            if self.take(",").is_none() {
                self.expect("}")?;
                break;
            }
        }
        let type_name = name.dotted().expect("asked before");
        Ok(Expr::new(at, ExpressionNode::Struct { type_name, fields }))
    }
}
