//! Functions that a program of `awk` has of its own: their parameters are theirs alone, arrays are their
//! callers'.

use std::collections::BTreeMap;

use super::arrays::AwkLocal;
use super::syntax::{AwkFunction, AwkValue};
use super::{AwkEnding, AwkPlay};

impl AwkPlay<'_, '_> {
    /// The array that a name stands for here.
    pub(super) fn array(&self, name: &str) -> String {
        let local = self.frames.last().and_then(|frame| frame.get(name));
        local.map_or_else(|| name.to_owned(), |local| local.array.clone())
    }

    /// The text of a variable here.
    pub(super) fn variable(&self, name: &str) -> String {
        let local = self.frames.last().and_then(|frame| frame.get(name));
        let text = local.map(|local| &local.text).or_else(|| self.variables.get(name));
        text.cloned().unwrap_or_default()
    }

    /// Whether it is one of the function that runs.
    pub(super) fn put_local(&mut self, name: &str, value: &str) -> bool {
        let local = self.frames.last_mut().and_then(|frame| frame.get_mut(name));
        local.map(|local| value.clone_into(&mut local.text)).is_some()
    }

    /// What a function returns.
    pub(super) fn invoked(&mut self, name: &str, arguments: &[AwkValue]) -> String {
        let functions = self.functions.clone();
        let Some(function) = functions.get(name) else { return String::new() };
        let frame = self.frame(function, arguments);
        self.frames.push(frame);
        let ending = self.statements(&function.body);
        // What was its own is gone.
        let prefix = format!("{} ", self.frames.len());
        let frame = self.frames.pop().unwrap_or_default();
        frame
            .values()
            .filter(|local| local.array.starts_with(&prefix))
            .for_each(|local| self.arrays.clear(&local.array));
        if ending == AwkEnding::Exits {
            self.is_exiting = true;
        }
        std::mem::take(&mut self.returned)
    }

    fn frame(&mut self, function: &AwkFunction, arguments: &[AwkValue]) -> BTreeMap<String, AwkLocal> {
        let mut frame = BTreeMap::new();
        for (at, parameter) in function.parameters.iter().enumerate() {
            let argument = arguments.get(at);
            let text = argument.map(|argument| self.value(argument)).unwrap_or_default();
            let array = match argument {
                Some(AwkValue::Variable(name)) => self.array(name),
                _ => self.own_array_of_next(parameter),
            };
            frame.insert(parameter.clone(), AwkLocal { text, array });
        }
        frame
    }

    /// No program can name it so.
    fn own_array_of_next(&self, name: &str) -> String {
        format!("{} {name}", self.frames.len() + 1)
    }
}
