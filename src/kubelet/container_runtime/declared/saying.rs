//! What commands and logs say because an annotation says so: `kubarium.dev/exec.COMMAND` and
//! `kubarium.dev/logs`, as kwok's `Exec` and `Logs`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::read::PREFIX;
use machine::exec::Executed;
use machine::surroundings::DeclaredProgram;

/// What a command says: its output as it stands, or all of this.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SaidOutcome {
    out: String,
    errors: String,
    code: i32,
    #[serde(deserialize_with = "super::read::duration")]
    delay: Duration,
}

impl SaidOutcome {
    fn read(text: &str) -> SaidOutcome {
        let plain = || SaidOutcome { out: text.to_owned(), ..SaidOutcome::default() };
        apimachinery::yaml::from_str(text).unwrap_or_else(|_| plain())
    }
}

/// The programs of which annotations say what they say, for the scripts that run them.
pub(crate) fn programs(annotations: &BTreeMap<String, String>) -> BTreeMap<String, DeclaredProgram> {
    let named = annotations.iter().filter_map(|(name, text)| {
        let program = name.strip_prefix(PREFIX)?.strip_prefix("exec.")?;
        let SaidOutcome { out, errors, code, delay } = SaidOutcome::read(text);
        Some((program.to_owned(), DeclaredProgram { out, errors, code, delay }))
    });
    named.collect()
}

/// What comes of a command line of whose program an annotation says it.
pub(crate) fn executed(annotations: &BTreeMap<String, String>, words: &[String]) -> Option<Executed> {
    let program = words.first()?.rsplit('/').next()?;
    let text = annotations.get(&format!("{PREFIX}exec.{program}"))?;
    let SaidOutcome { out, errors, code, delay } = SaidOutcome::read(text);
    Some(Executed { end: Some((delay, code)), out, errors, ..Executed::default() })
}

/// The lines of a container's log that an annotation gives: `kubarium.dev/logs.NAME`, or `kubarium.dev/logs`
/// for all containers.
pub(crate) fn said<'a>(
    annotations: &'a BTreeMap<String, String>,
    container: &str,
) -> Option<std::str::Lines<'a>> {
    if annotations.is_empty() {
        return None;
    }
    let own = annotations.get(&format!("{PREFIX}logs.{container}"));
    own.or_else(|| annotations.get(&format!("{PREFIX}logs"))).map(|text| text.lines())
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::exec;
    use machine::surroundings::Surroundings;

    /// What it says, and when it ends how.
    type SaidAndEnded = (String, String, Option<(Duration, i32)>);

    fn run(annotation: &str, words: &[&str]) -> Option<SaidAndEnded> {
        let annotations = BTreeMap::from([("kubarium.dev/exec.psql".to_owned(), annotation.to_owned())]);
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        executed(&annotations, &words).map(|it| (it.out, it.errors, it.end))
    }

    #[test]
    fn commands_say_what_an_annotation_says() {
        let at_once = |code| Some((Duration::ZERO, code));
        let plain = run("a: table\n(1 row)\n", &["/usr/bin/psql", "-c", "select 1"]);
        assert_eq!(plain, Some(("a: table\n(1 row)\n".into(), String::new(), at_once(0))));
        let failed = run("{errors: \"no such role\\n\", code: 2, delay: 3s}", &["psql"]);
        assert_eq!(failed, Some((String::new(), "no such role\n".into(), Some((Duration::from_secs(3), 2)))));
        assert_eq!(run("x", &["pg_dump"]), None);
    }

    #[test]
    fn a_script_runs_what_an_annotation_says() {
        let annotations = BTreeMap::from([
            ("kubarium.dev/exec.psql".to_owned(), "{out: \"one\\n\", code: 3, delay: 2s}".to_owned()),
            ("kubarium.dev/logs".to_owned(), "line".to_owned()),
        ]);
        let around = Surroundings { declared: programs(&annotations), ..Surroundings::default() };
        let command = ["sh", "-c", "echo a; /usr/bin/psql -c x | tr n N; psql >&2; echo $?"];
        let ran = exec::exec_told(&command.map(str::to_owned), &around, vec![], None).unwrap();
        assert_eq!((&*ran.out, &*ran.errors), ("a\noNe\n3\n", "one\n"));
        assert_eq!(ran.end, Some((Duration::from_secs(4), 0)));
    }

    #[test]
    fn logs_are_a_containers_own_or_everybodys() {
        let annotations = BTreeMap::from([
            ("kubarium.dev/logs".to_owned(), "one\ntwo".to_owned()),
            ("kubarium.dev/logs.web".to_owned(), "mine".to_owned()),
        ]);
        let lines = |name: &str| said(&annotations, name).map(Iterator::collect::<Vec<&str>>);
        assert_eq!(lines("web"), Some(vec!["mine"]));
        assert_eq!(lines("other"), Some(vec!["one", "two"]));
        assert!(said(&BTreeMap::new(), "web").is_none());
    }
}
