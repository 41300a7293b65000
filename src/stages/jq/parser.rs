//! Reads a query. The operators, from those that bind least: `|`, `,`, `//`, `or`, `and`, comparisons, `+ -`,
//! `* / %`.

use serde_json::Value;

use super::error::QueryError;
use super::functions;
use super::node::QueryNode;
use super::values::number;
use super::words::{QueryToken, not_understood, tokens};

/// Parentheses in parentheses: at most so deep, or the query is refused.
const MAX_DEPTH: usize = 32;

/// The operators of each level; those of the first bind least. `|` and `,` are in the same table.
const LEVELS: &[&[&str]] = &[
    &["|"],
    &[","],
    &["//"],
    &["or"],
    &["and"],
    &["==", "!=", "<", "<=", ">", ">="],
    &["+", "-"],
    &["*", "/", "%"],
];

struct QueryParser {
    tokens: Vec<QueryToken>,
    at: usize,
    depth: usize,
}

pub(super) fn parse(text: &str) -> Result<QueryNode, QueryError> {
    let mut parser = QueryParser { tokens: tokens(text)?, at: 0, depth: 0 };
    let node = parser.level(0)?;
    match parser.peek() {
        None => Ok(node),
        Some(rest) => Err(QueryError(format!("{text:?}: {} is not understood", shown(rest)))),
    }
}

fn shown(token: &QueryToken) -> String {
    match token {
        QueryToken::Field(name) => format!("\".{name}\""),
        QueryToken::Word(word) => format!("{word:?}"),
        QueryToken::Text(text) => format!("{text:?}"),
        QueryToken::Number(number) => number.to_string(),
        QueryToken::Sign(sign) => format!("{sign:?}"),
    }
}

impl QueryParser {
    fn peek(&self) -> Option<&QueryToken> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Option<QueryToken> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }

    fn takes(&mut self, sign: &str) -> bool {
        let is_it = match self.peek() {
            Some(QueryToken::Sign(there)) => *there == sign,
            Some(QueryToken::Word(there)) => there == sign,
            _ => false,
        };
        self.at += usize::from(is_it);
        is_it
    }

    fn expect(&mut self, sign: &str) -> Result<(), QueryError> {
        if self.takes(sign) {
            return Ok(());
        }
        let there = self.peek().map_or("the end".to_owned(), shown);
        Err(QueryError(format!("{sign:?} is missing before {there}")))
    }

    /// Operators of a level, left to right; `|` and `//` from the right.
    fn level(&mut self, level: usize) -> Result<QueryNode, QueryError> {
        let Some(operators) = LEVELS.get(level) else { return self.postfix() };
        let mut left = self.level(level + 1)?;
        while let Some(operator) = operators.iter().find(|operator| self.takes(operator)) {
            let is_from_right = matches!(*operator, "|" | "//");
            let right = self.level(if is_from_right { level } else { level + 1 })?;
            left = QueryNode::Binary(operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn postfix(&mut self) -> Result<QueryNode, QueryError> {
        let mut node = self.term()?;
        loop {
            let is_index = matches!(self.peek(), Some(QueryToken::Sign("[")))
                || (self.takes(".") && matches!(self.peek(), Some(QueryToken::Sign("["))));
            if is_index {
                node = self.index(node)?;
            } else if let Some(QueryToken::Field(name)) = self.peek() {
                let name = QueryNode::Literal(name.clone().into());
                self.at += 1;
                node = QueryNode::At(Box::new(node), Box::new(name));
            } else if self.takes("?") {
                node = QueryNode::Try(Box::new(node));
            } else {
                return Ok(node);
            }
        }
    }

    /// `[]`, `[0]`, `["a"]`, `[1:3]`
    fn index(&mut self, of: QueryNode) -> Result<QueryNode, QueryError> {
        self.expect("[")?;
        if self.takes("]") {
            return Ok(QueryNode::Each(Box::new(of)));
        }
        let from =
            if matches!(self.peek(), Some(QueryToken::Sign(":"))) { None } else { Some(self.inner()?) };
        if !self.takes(":") {
            self.expect("]")?;
            return Ok(QueryNode::At(
                Box::new(of),
                Box::new(from.unwrap_or(QueryNode::Literal(Value::Null))),
            ));
        }
        let to = if matches!(self.peek(), Some(QueryToken::Sign("]"))) { None } else { Some(self.inner()?) };
        self.expect("]")?;
        let bound = |node: Option<QueryNode>| Box::new(node.unwrap_or(QueryNode::Literal(Value::Null)));
        Ok(QueryNode::Slice(Box::new(of), bound(from), bound(to)))
    }

    fn inner(&mut self) -> Result<QueryNode, QueryError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(QueryError(format!("parentheses are more than {MAX_DEPTH} deep in each other")));
        }
        let node = self.level(0);
        self.depth -= 1;
        node
    }

    fn term(&mut self) -> Result<QueryNode, QueryError> {
        let token = self.next().ok_or_else(|| QueryError("the query ends too early".into()))?;
        Ok(match token {
            QueryToken::Field(name) => {
                QueryNode::At(Box::new(QueryNode::Whole), Box::new(QueryNode::Literal(name.into())))
            }
            QueryToken::Text(text) => QueryNode::Literal(text.into()),
            QueryToken::Number(value) => QueryNode::Literal(number(value)),
            QueryToken::Sign(".") => QueryNode::Whole,
            QueryToken::Sign("..") => QueryNode::Call("recurse".into(), Vec::new()),
            QueryToken::Sign("-") => {
                let zero = Box::new(QueryNode::Literal(0.into()));
                QueryNode::Binary("-", zero, Box::new(self.postfix()?))
            }
            QueryToken::Sign("(") => {
                let inner = self.inner()?;
                self.expect(")")?;
                inner
            }
            QueryToken::Sign("[") if self.takes("]") => QueryNode::List(None),
            QueryToken::Sign("[") => {
                let inner = self.inner()?;
                self.expect("]")?;
                QueryNode::List(Some(Box::new(inner)))
            }
            QueryToken::Sign("{") => self.object()?,
            QueryToken::Sign(sign) => return Err(not_understood(sign)),
            QueryToken::Word(word) => return self.word(word),
        })
    }

    fn word(&mut self, word: String) -> Result<QueryNode, QueryError> {
        match word.as_str() {
            "true" => return Ok(QueryNode::Literal(true.into())),
            "false" => return Ok(QueryNode::Literal(false.into())),
            "null" => return Ok(QueryNode::Literal(Value::Null)),
            "if" => return self.condition(),
            _ => {}
        }
        let mut arguments = Vec::new();
        if self.takes("(") {
            arguments.push(self.inner()?);
            self.expect(")")?;
        }
        if functions::exists(&word, arguments.len()) {
            Ok(QueryNode::Call(word, arguments))
        } else {
            Err(QueryError(format!("function not defined: {word}/{}", arguments.len())))
        }
    }

    fn condition(&mut self) -> Result<QueryNode, QueryError> {
        let condition = self.inner()?;
        self.expect("then")?;
        let then = self.inner()?;
        let otherwise = if self.takes("elif") {
            self.condition()?
        } else {
            let otherwise = if self.takes("else") { self.inner()? } else { QueryNode::Whole };
            self.expect("end")?;
            otherwise
        };
        Ok(QueryNode::If(Box::new(condition), Box::new(then), Box::new(otherwise)))
    }

    /// `{a: .b, "c": 1, d}`
    fn object(&mut self) -> Result<QueryNode, QueryError> {
        let mut entries = Vec::new();
        while !self.takes("}") {
            if !entries.is_empty() {
                self.expect(",")?;
            }
            let (Some(QueryToken::Word(name)) | Some(QueryToken::Text(name))) = self.next() else {
                return Err(QueryError("a field of an object needs a name".into()));
            };
            let value = if self.takes(":") {
                self.level(2)?
            } else {
                QueryNode::At(Box::new(QueryNode::Whole), Box::new(QueryNode::Literal(name.clone().into())))
            };
            entries.push((name, value));
        }
        Ok(QueryNode::Object(entries))
    }
}
