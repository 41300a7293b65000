//! Carries out what a template says.

use serde_json::Value;

use super::error::TemplateError;
use super::functions::{TemplateHost, call};
use super::parser::{Operand, Pipeline, Template, TemplateNode};
use super::shown::{is_true, shown};

/// So many actions are carried out; a template that has more to do ends with an error.
const MOST_ACTIONS: usize = 100_000;
/// A text becomes no longer than this, and no value larger; beyond it the template ends with an error.
const MOST_BYTES: usize = 4 << 20;
/// Values in values; deeper ones end it, too. Objects of the API are at most so deep.
const MOST_NESTED: usize = 128;
const TOO_MUCH: &str = "the template does too much";

impl Template {
    /// The text for a tree.
    ///
    /// # Errors
    /// What cannot be done.
    pub fn render(&self, tree: &Value, host: &dyn TemplateHost) -> Result<String, TemplateError> {
        let variables = vec![("$".to_owned(), tree.clone())];
        let mut render = TemplateRender { host, variables, text: String::new(), actions: 0 };
        render.nodes(&self.nodes, tree)?;
        Ok(render.text)
    }
}

struct TemplateRender<'a> {
    host: &'a dyn TemplateHost,
    variables: Vec<(String, Value)>,
    text: String,
    actions: usize,
}

impl TemplateRender<'_> {
    /// Variables live as long as the nodes beside them.
    fn nodes(&mut self, nodes: &[TemplateNode], dot: &Value) -> Result<(), TemplateError> {
        let known = self.variables.len();
        for node in nodes {
            self.actions += 1;
            if self.actions > MOST_ACTIONS || self.text.len() > MOST_BYTES {
                return Err(TemplateError::new(TOO_MUCH));
            }
            self.node(node, dot)?;
        }
        self.variables.truncate(known);
        Ok(())
    }

    fn node(&mut self, node: &TemplateNode, dot: &Value) -> Result<(), TemplateError> {
        match node {
            TemplateNode::Text(text) => self.text.push_str(text),
            TemplateNode::Show(pipeline) => {
                let value = self.evaluate(pipeline, dot)?;
                self.text.push_str(&shown(&value));
            }
            TemplateNode::Set(name, is_new, pipeline) => {
                let value = self.evaluate(pipeline, dot)?;
                self.set(name, *is_new, value)?;
            }
            TemplateNode::If(cases, otherwise) => {
                for (condition, body) in cases {
                    if is_true(&self.evaluate(condition, dot)?) {
                        return self.nodes(body, dot);
                    }
                }
                return self.nodes(otherwise, dot);
            }
            TemplateNode::With(subject, body, otherwise) => {
                let subject = self.evaluate(subject, dot)?;
                return if is_true(&subject) {
                    self.nodes(body, &subject)
                } else {
                    self.nodes(otherwise, dot)
                };
            }
            TemplateNode::Range { variables, over, body, otherwise } => {
                let over = self.evaluate(over, dot)?;
                return self.range(variables, &over, body, otherwise, dot);
            }
        }
        Ok(())
    }

    fn range(
        &mut self,
        variables: &[String],
        over: &Value,
        body: &[TemplateNode],
        otherwise: &[TemplateNode],
        dot: &Value,
    ) -> Result<(), TemplateError> {
        let entries: Vec<(Value, Value)> = match over {
            Value::Array(items) => {
                items.iter().enumerate().map(|(index, item)| (index.into(), item.clone())).collect()
            }
            Value::Object(fields) => {
                fields.iter().map(|(key, value)| (key.clone().into(), value.clone())).collect()
            }
            _ => Vec::new(),
        };
        if entries.is_empty() {
            return self.nodes(otherwise, dot);
        }
        for (key, value) in entries {
            let known = self.variables.len();
            match variables {
                [index, item] => {
                    self.variables.push((index.clone(), key));
                    self.variables.push((item.clone(), value.clone()));
                }
                [item] => self.variables.push((item.clone(), value.clone())),
                _ => {}
            }
            self.nodes(body, &value)?;
            self.variables.truncate(known);
        }
        Ok(())
    }

    fn set(&mut self, name: &str, is_new: bool, value: Value) -> Result<(), TemplateError> {
        if is_new {
            self.variables.push((name.to_owned(), value));
            return Ok(());
        }
        let known = self.variables.iter_mut().rev().find(|(other, _)| other == name);
        let known = known.ok_or_else(|| TemplateError::new(format!("undefined variable {name:?}")))?;
        known.1 = value;
        Ok(())
    }

    fn evaluate(&mut self, pipeline: &Pipeline, dot: &Value) -> Result<Value, TemplateError> {
        let mut given: Option<Value> = None;
        for command in pipeline {
            given = Some(self.command(command, given, dot)?);
        }
        Ok(given.unwrap_or(Value::Null))
    }

    fn command(
        &mut self,
        command: &[Operand],
        given: Option<Value>,
        dot: &Value,
    ) -> Result<Value, TemplateError> {
        let Some((first, rest)) = command.split_first() else { return Ok(Value::Null) };
        let mut arguments = Vec::new();
        for operand in rest {
            arguments.push(self.operand(operand, dot)?);
        }
        arguments.extend(given);
        match first {
            Operand::Function(name) => bounded(call(name, &arguments, self.host)?),
            _ if !arguments.is_empty() => Err(TemplateError::new("can't give argument to non-function")),
            operand => self.operand(operand, dot),
        }
    }

    fn operand(&mut self, operand: &Operand, dot: &Value) -> Result<Value, TemplateError> {
        match operand {
            Operand::Function(name) => bounded(call(name, &[], self.host)?),
            Operand::Path(names) => Ok(walk(dot, names)),
            Operand::Variable(name, names) => {
                let known = self.variables.iter().rev().find(|(other, _)| other == name);
                let known =
                    known.ok_or_else(|| TemplateError::new(format!("undefined variable {name:?}")))?;
                Ok(walk(&known.1, names))
            }
            Operand::Literal(value) => Ok(value.clone()),
            Operand::Pipeline(pipeline, names) => Ok(walk(&self.evaluate(pipeline, dot)?, names)),
        }
    }
}

/// What is not there is nothing.
fn walk(tree: &Value, names: &[String]) -> Value {
    let found = names.iter().try_fold(tree, |tree, name| tree.get(name));
    found.cloned().unwrap_or(Value::Null)
}

/// What grows with each step of a template would soon be larger than the memory.
fn bounded(value: Value) -> Result<Value, TemplateError> {
    let mut left = MOST_BYTES;
    if weigh(&value, MOST_NESTED, &mut left) { Ok(value) } else { Err(TemplateError::new(TOO_MUCH)) }
}

/// Whether there is enough left for all of it.
fn weigh(value: &Value, depth: usize, left: &mut usize) -> bool {
    let own = value.as_str().map_or(16, |text| text.len() + 16);
    let (Some(rest), Some(depth)) = (left.checked_sub(own), depth.checked_sub(1)) else { return false };
    *left = rest;
    match value {
        Value::Array(items) => items.iter().all(|item| weigh(item, depth, left)),
        Value::Object(fields) => fields.values().all(|field| weigh(field, depth, left)),
        _ => true,
    }
}
