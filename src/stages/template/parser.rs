//! Reads a template once.

use super::error::TemplateError;
use super::lexer::{ActionWord, TemplatePiece, pieces};
use serde_json::Value;

/// Actions in actions: at most so deep.
const MOST_DEPTH: usize = 64;

/// A template that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    pub(super) nodes: Vec<TemplateNode>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TemplateNode {
    Text(String),
    Show(Pipeline),
    /// The variable, whether it is new, and its value.
    Set(String, bool, Pipeline),
    /// Each condition with what follows, and what follows when none holds.
    If(Vec<(Pipeline, Vec<TemplateNode>)>, Vec<TemplateNode>),
    With(Pipeline, Vec<TemplateNode>, Vec<TemplateNode>),
    Range {
        variables: Vec<String>,
        over: Pipeline,
        body: Vec<TemplateNode>,
        otherwise: Vec<TemplateNode>,
    },
}

/// Commands, each of which gets what the one before gives as its last argument.
pub(super) type Pipeline = Vec<Vec<Operand>>;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    Function(String),
    Path(Vec<String>),
    Variable(String, Vec<String>),
    Literal(Value),
    /// A pipeline in parentheses, and the names behind them.
    Pipeline(Pipeline, Vec<String>),
}

impl Template {
    /// Reads a text.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Template, TemplateError> {
        let mut parser = TemplateParser { pieces: pieces(text)?.into_iter(), depth: 0 };
        match parser.nodes()? {
            (nodes, None) => Ok(Template { nodes }),
            (_, Some(end)) => Err(TemplateError::new(format!("unexpected {end:?}"))),
        }
    }
}

struct TemplateParser {
    pieces: std::vec::IntoIter<TemplatePiece>,
    depth: usize,
}

/// What ended a list of nodes: the words of an `else` or `end`.
type NodesEnding = Option<Vec<ActionWord>>;

impl TemplateParser {
    fn nodes(&mut self) -> Result<(Vec<TemplateNode>, NodesEnding), TemplateError> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(TemplateError::new(format!(
                "actions stand more than {MOST_DEPTH} deep in each other"
            )));
        }
        let mut nodes = Vec::new();
        while let Some(piece) = self.pieces.next() {
            let words = match piece {
                TemplatePiece::Text(text) => {
                    nodes.push(TemplateNode::Text(text));
                    continue;
                }
                TemplatePiece::Action(words) => words,
            };
            if matches!(words.first(), Some(ActionWord::Name(name)) if name == "else" || name == "end") {
                self.depth -= 1;
                return Ok((nodes, Some(words)));
            }
            nodes.push(self.action(&words)?);
        }
        self.depth -= 1;
        Ok((nodes, None))
    }

    fn action(&mut self, words: &[ActionWord]) -> Result<TemplateNode, TemplateError> {
        match words {
            [ActionWord::Name(name), rest @ ..] if name == "if" => self.conditions(rest),
            [ActionWord::Name(name), rest @ ..] if name == "with" => {
                let subject = pipeline(rest)?;
                let (body, otherwise) = self.body()?;
                Ok(TemplateNode::With(subject, body, otherwise))
            }
            [ActionWord::Name(name), rest @ ..] if name == "range" => self.range(rest),
            [ActionWord::Variable(name, _), ActionWord::Declare, rest @ ..] => {
                Ok(TemplateNode::Set(name.clone(), true, pipeline(rest)?))
            }
            [ActionWord::Variable(name, _), ActionWord::Assign, rest @ ..] => {
                Ok(TemplateNode::Set(name.clone(), false, pipeline(rest)?))
            }
            words => Ok(TemplateNode::Show(pipeline(words)?)),
        }
    }

    fn conditions(&mut self, words: &[ActionWord]) -> Result<TemplateNode, TemplateError> {
        let mut cases = Vec::new();
        let mut condition = pipeline(words)?;
        loop {
            let (body, ending) = self.nodes()?;
            cases.push((condition, body));
            match ending.as_deref() {
                Some([_, ActionWord::Name(name), rest @ ..]) if name == "if" => condition = pipeline(rest)?,
                Some([ActionWord::Name(name)]) if name == "else" => {
                    let otherwise = self.until_end()?;
                    return Ok(TemplateNode::If(cases, otherwise));
                }
                Some(_) => return Ok(TemplateNode::If(cases, Vec::new())),
                None => return Err(TemplateError::new("unexpected EOF")),
            }
        }
    }

    fn range(&mut self, words: &[ActionWord]) -> Result<TemplateNode, TemplateError> {
        let (variables, over) = match words {
            [
                ActionWord::Variable(first, _),
                ActionWord::Comma,
                ActionWord::Variable(second, _),
                ActionWord::Declare,
                rest @ ..,
            ] => (vec![first.clone(), second.clone()], rest),
            [ActionWord::Variable(only, _), ActionWord::Declare, rest @ ..] => (vec![only.clone()], rest),
            words => (Vec::new(), words),
        };
        let over = pipeline(over)?;
        let (body, otherwise) = self.body()?;
        Ok(TemplateNode::Range { variables, over, body, otherwise })
    }

    fn body(&mut self) -> Result<(Vec<TemplateNode>, Vec<TemplateNode>), TemplateError> {
        let (body, ending) = self.nodes()?;
        match ending.as_deref() {
            Some([ActionWord::Name(name), ..]) if name == "else" => Ok((body, self.until_end()?)),
            Some(_) => Ok((body, Vec::new())),
            None => Err(TemplateError::new("unexpected EOF")),
        }
    }

    fn until_end(&mut self) -> Result<Vec<TemplateNode>, TemplateError> {
        match self.nodes()? {
            (nodes, Some(ending)) if ending == [ActionWord::Name("end".into())] => Ok(nodes),
            _ => Err(TemplateError::new("unexpected EOF")),
        }
    }
}

fn pipeline(words: &[ActionWord]) -> Result<Pipeline, TemplateError> {
    let (pipeline, used) = commands(words, 0)?;
    if used == words.len() { Ok(pipeline) } else { Err(TemplateError::new("unexpected right paren")) }
}

/// Up to the end, or to a parenthesis that closes.
fn commands(words: &[ActionWord], depth: usize) -> Result<(Pipeline, usize), TemplateError> {
    if depth > MOST_DEPTH {
        return Err(TemplateError::new("too many parentheses"));
    }
    let mut pipeline: Pipeline = vec![Vec::new()];
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let operand = match word {
            ActionWord::Close => break,
            ActionWord::Pipe => {
                pipeline.push(Vec::new());
                at += 1;
                continue;
            }
            ActionWord::Open => {
                let (inner, used) = commands(&words[at + 1..], depth + 1)?;
                at += used + 1;
                if words.get(at) != Some(&ActionWord::Close) {
                    return Err(TemplateError::new("unclosed left paren"));
                }
                let chain = match words.get(at + 1) {
                    Some(ActionWord::Chain(names)) => {
                        at += 1;
                        names.clone()
                    }
                    _ => Vec::new(),
                };
                Operand::Pipeline(inner, chain)
            }
            ActionWord::Name(name) => match name.as_str() {
                "true" => Operand::Literal(true.into()),
                "false" => Operand::Literal(false.into()),
                "nil" => Operand::Literal(Value::Null),
                _ => Operand::Function(name.clone()),
            },
            ActionWord::Path(names) => Operand::Path(names.clone()),
            ActionWord::Variable(name, names) => Operand::Variable(name.clone(), names.clone()),
            ActionWord::Text(text) => Operand::Literal(text.clone().into()),
            ActionWord::Number(number) if number.fract() == 0.0 => Operand::Literal((*number as i64).into()),
            ActionWord::Number(number) => Operand::Literal((*number).into()),
            other => return Err(TemplateError::new(format!("unexpected {other:?} in operand"))),
        };
        pipeline.last_mut().expect("there is one").push(operand);
        at += 1;
    }
    if pipeline.iter().any(Vec::is_empty) {
        return Err(TemplateError::new("missing value for command"));
    }
    Ok((pipeline, at))
}
