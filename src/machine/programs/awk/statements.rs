//! Statements of `awk`, read: what is printed, decided, and done again.

use super::syntax::{AwkFunction, AwkReader, AwkStatement, AwkValue, name_length};
use crate::bounds::MAX_DEPTH;

impl AwkReader<'_> {
    /// `function name(a, b) {...}`
    pub(super) fn function(&mut self) -> Option<(String, AwkFunction)> {
        let name = self.name()?;
        let mut parameters = Vec::new();
        if !self.take("(") {
            return None;
        }
        while !self.take(")") {
            parameters.push(self.name()?);
            self.take(",");
            self.skip_lines();
        }
        self.skip_lines();
        let body = if self.take("{") { self.body()? } else { return None };
        Some((name, AwkFunction { parameters, body }))
    }

    /// A name that is none of the language's words.
    pub(super) fn name(&mut self) -> Option<String> {
        self.skip();
        let (name, rest) = self.text.split_at(name_length(self.text));
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        self.text = rest;
        Some(name.to_owned())
    }

    /// Up to the brace that closes it.
    pub(super) fn body(&mut self) -> Option<Vec<AwkStatement>> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let mut statements = Vec::new();
        loop {
            self.skip_lines();
            if self.take("}") {
                self.depth -= 1;
                return Some(statements);
            }
            statements.push(self.statement()?);
        }
    }

    fn block(&mut self) -> Option<Vec<AwkStatement>> {
        self.skip();
        if self.take(";") {
            return Some(Vec::new());
        }
        self.skip_lines();
        if self.take("{") { self.body() } else { Some(vec![self.statement()?]) }
    }

    fn statement(&mut self) -> Option<AwkStatement> {
        self.depth += 1;
        let statement = if self.depth > MAX_DEPTH { None } else { self.compound() };
        self.depth -= 1;
        statement
    }

    fn compound(&mut self) -> Option<AwkStatement> {
        if self.take_word("if") {
            return self.decision();
        }
        if self.take_word("while") {
            let condition = self.condition()?;
            return Some(AwkStatement::While(condition, self.block()?));
        }
        if self.take_word("do") {
            let body = self.block()?;
            self.skip_lines();
            let condition = if self.take_word("while") { self.condition()? } else { return None };
            return Some(AwkStatement::Do(body, condition));
        }
        if self.take_word("for") {
            return self.repetition();
        }
        if self.take("{") {
            return Some(AwkStatement::Block(self.body()?));
        }
        let statement = self.simple()?;
        self.is_over().then_some(statement)
    }

    fn condition(&mut self) -> Option<AwkValue> {
        let condition = if self.take("(") { self.value()? } else { return None };
        self.take(")").then_some(condition)
    }

    fn decision(&mut self) -> Option<AwkStatement> {
        let condition = self.condition()?;
        let then = self.block()?;
        let before = self.text;
        self.skip_lines();
        if self.take_word("else") {
            return Some(AwkStatement::If(condition, then, self.block()?));
        }
        self.text = before;
        Some(AwkStatement::If(condition, then, vec![]))
    }

    /// `for (k in a)` and `for (i = 0; i < 3; i++)`
    fn repetition(&mut self) -> Option<AwkStatement> {
        if !self.take("(") {
            return None;
        }
        let before = self.text;
        if let Some((name, array)) = self.each() {
            return Some(AwkStatement::ForEach(name, array, self.block()?));
        }
        self.text = before;
        let first = if self.take(";") { None } else { Some(Box::new(self.simple()?)) };
        if first.is_some() && !self.take(";") {
            return None;
        }
        let condition = if self.take(";") { None } else { Some(self.value()?) };
        if condition.is_some() && !self.take(";") {
            return None;
        }
        let step = if self.take(")") { None } else { Some(Box::new(self.simple()?)) };
        if step.is_some() && !self.take(")") {
            return None;
        }
        Some(AwkStatement::For(first, condition, step, self.block()?))
    }

    fn each(&mut self) -> Option<(String, String)> {
        let name = self.name()?;
        let array = if self.take_word("in") { self.name()? } else { return None };
        self.take(")").then_some((name, array))
    }

    fn simple(&mut self) -> Option<AwkStatement> {
        Some(if self.take_word("print") {
            AwkStatement::Print(self.values()?)
        } else if self.take_word("printf") {
            AwkStatement::Printf(self.values()?)
        } else if self.take_word("next") {
            AwkStatement::Next
        } else if self.take_word("break") {
            AwkStatement::Break
        } else if self.take_word("continue") {
            AwkStatement::Continue
        } else if self.take_word("return") {
            AwkStatement::Return(if self.is_over() { None } else { Some(self.value()?) })
        } else if self.take_word("exit") {
            AwkStatement::Exit(if self.is_over() { None } else { Some(self.value()?) })
        } else if self.take_word("delete") {
            let array = self.name()?;
            let key = if self.take("[") { Some(self.subscripts()?) } else { None };
            AwkStatement::Delete(array, key)
        } else {
            AwkStatement::AwkValue(self.value()?)
        })
    }

    /// Up to the bracket that closes them.
    pub(super) fn subscripts(&mut self) -> Option<Vec<AwkValue>> {
        let subscripts = self.list()?;
        self.take("]").then_some(subscripts)
    }

    pub(super) fn is_over(&mut self) -> bool {
        self.skip();
        self.text.is_empty() || self.text.starts_with([';', '\n', '}'])
    }

    /// What `print` prints, perhaps in parentheses.
    fn values(&mut self) -> Option<Vec<AwkValue>> {
        let mut values = Vec::new();
        if self.is_over() {
            return Some(values);
        }
        let before = self.text;
        if self.take("(") {
            let inner = self.list();
            if let Some(inner) = inner.filter(|_| self.take(")") && self.is_over()) {
                return Some(inner);
            }
            self.text = before;
        }
        values.extend(self.list()?);
        Some(values)
    }
}
