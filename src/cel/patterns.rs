//! Regular expressions of a program, and what is found with them.

use std::collections::BTreeMap;

use regex::Regex;
use sync::Mutex;

use super::error::EvaluationError;
use super::go_patterns;
use super::value::Value;

/// Patterns that one program has compiled. At most [`Patterns::BOUND`]; then it begins anew.
#[derive(Debug, Default)]
pub(super) struct Patterns(Mutex<BTreeMap<String, CompiledPattern>>);

/// What is no pattern is remembered too.
type CompiledPattern = Result<Regex, EvaluationError>;

impl Patterns {
    const BOUND: usize = 16;

    /// Compiles outside of the lock, so that nobody waits for a pattern of somebody else.
    pub(super) fn get(&self, pattern: &str) -> CompiledPattern {
        if let Some(known) = self.0.lock().get(pattern) {
            return known.clone();
        }
        let regex = go_patterns::compile(pattern);
        let mut known = self.0.lock();
        if known.len() >= Patterns::BOUND {
            known.clear();
        }
        known.insert(pattern.to_owned(), regex.clone());
        regex
    }

    /// `find` and `findAll` (`k8s.io/apiserver/pkg/cel/library/regex.go`); None for other functions.
    pub(super) fn call(
        &self,
        function: &str,
        text: &str,
        args: &[Value],
    ) -> Option<Result<Value, EvaluationError>> {
        let (pattern, most) = match (function, args) {
            ("find", [Value::String(pattern)]) => (pattern, 1),
            ("findAll", [Value::String(pattern)]) => (pattern, usize::MAX),
            ("findAll", [Value::String(pattern), Value::Int(most)]) => {
                (pattern, usize::try_from(*most).unwrap_or(usize::MAX))
            }
            _ => return None,
        };
        let regex =
            self.get(pattern).map_err(|error| EvaluationError::Function(format!("Illegal regex: {error}")));
        Some(regex.map(|regex| {
            let mut found = regex.find_iter(text).map(|found| Value::from(found.as_str())).take(most);
            match function {
                "find" => found.next().unwrap_or_else(|| Value::from("")),
                _ => Value::from(found.collect::<Vec<_>>()),
            }
        }))
    }
}
