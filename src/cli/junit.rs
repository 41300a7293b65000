//! How a run ended as JUnit tells it, which CI systems show: one test case, with what is left of it attached.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Failure;
use super::run_folder::SNAPSHOT;

/// A command that has run.
pub(crate) struct JunitReport<'a> {
    /// What has run.
    pub(crate) command: &'a [OsString],
    /// How long.
    pub(crate) took: Duration,
    /// Why it failed; none when it did not.
    pub(crate) why: Option<String>,
    /// Where what is left of it is.
    pub(crate) left: Option<&'a Path>,
}

impl JunitReport<'_> {
    /// Into a file, instead of what an earlier run has written there.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        let failed = |error| Failure::new(format!("cannot write {}", path.display()), error);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        fs::write(path, self.text()).map_err(failed)
    }

    fn text(&self) -> String {
        let words: Vec<_> = self.command.iter().map(|word| word.to_string_lossy()).collect();
        let (name, seconds) = (escaped(&words.join(" ")), self.took.as_secs_f64());
        let counts = format!("tests=\"1\" failures=\"{}\" errors=\"0\"", u8::from(self.why.is_some()));
        let mut inner = String::new();
        if let Some(why) = &self.why {
            let why = escaped(why);
            inner += &format!("      <failure type=\"exit\" message=\"{why}\">{why}</failure>\n");
        }
        let left = self.left.map(attachments).unwrap_or_default();
        let attached: String = left.iter().map(|path| attachment(path)).collect();
        if !attached.is_empty() {
            inner += &format!("      <system-out>\n{attached}      </system-out>\n");
        }
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts} time=\"{seconds:.3}\">\n  \
             <testsuite name=\"kubarium run\" {counts} skipped=\"0\" time=\"{seconds:.3}\">\n    \
             <testcase classname=\"kubarium.run\" name=\"{name}\" time=\"{seconds:.3}\">\n{inner}    \
             </testcase>\n  </testsuite>\n</testsuites>\n"
        )
    }
}

/// As Jenkins and GitLab read it.
fn attachment(path: &Path) -> String {
    format!("[[ATTACHMENT|{}]]\n", escaped(&path.to_string_lossy()))
}

/// The files below a folder, in order. The snapshot is not among them: it holds every Secret, and many may
/// see what a CI system shows.
fn attachments(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let below = |path: PathBuf| if path.is_dir() { attachments(&path) } else { vec![path] };
    paths.into_iter().filter(|path| !path.ends_with(SNAPSHOT)).flat_map(below).collect()
}

/// In text and in attributes; what XML has no way to say is a question mark.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(' '),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => escaped.push('?'),
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(why: Option<&str>, left: Option<&Path>, command: &[&str]) -> String {
        let command: Vec<OsString> = command.iter().map(Into::into).collect();
        let took = Duration::from_millis(1500);
        JunitReport { command: &command, took, why: why.map(str::to_owned), left }.text()
    }

    #[test]
    fn a_failure_has_its_reason_and_all_files_but_the_snapshot() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("logs/default")).unwrap();
        for name in ["logs/default/p.log", "audit.log", SNAPSHOT] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let text = report(Some("exit code 3"), Some(folder.path()), &["sh", "-c", "a < \"b\"\x1b && c"]);
        assert!(text.contains("<failure type=\"exit\" message=\"exit code 3\">"), "{text}");
        assert!(text.contains("name=\"sh -c a &lt; &quot;b&quot;? &amp;&amp; c\" time=\"1.500\""), "{text}");
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("[[ATTACHMENT|")).collect();
        let expected = ["audit.log", "logs/default/p.log"]
            .map(|name| format!("[[ATTACHMENT|{}]]", folder.path().join(name).display()));
        assert_eq!(lines, expected, "{text}");
    }

    #[test]
    fn a_success_has_neither() {
        let text = report(None, None, &["true"]);
        assert!(text.contains("failures=\"0\"") && !text.contains("<failure"), "{text}");
        assert!(!text.contains("system-out"), "{text}");
    }
}
