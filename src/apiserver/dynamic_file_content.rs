//! `DynamicFileContent`: what is made of a configuration file, made anew when the file changes while the
//! server runs (`util/filesystem.WatchUntil`, as `dynamiccertificates.DynamicFileCAContent` for a file of
//! certificates).
//!
//! Nothing waits for a change: the file is looked at when somebody asks for what it says. As long as it is
//! wrong, what it said before holds.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clock::Clock;
use sync::{Mutex, RwLock};

golang::text_error! {
    /// What is wrong with a configuration file.
    pub struct BadFileContent;
}

/// It is looked at that often at most.
const INTERVAL: Duration = Duration::from_secs(1);

type Build<T> = Box<dyn Fn(&str) -> Result<T, BadFileContent> + Send + Sync>;

/// A file, and what was made of its text.
pub struct DynamicFileContent<T> {
    path: PathBuf,
    clock: Clock,
    build: Build<T>,
    current: RwLock<(String, Arc<T>)>,
    /// When it was looked at last, and what was wrong with it then.
    looked: Mutex<(Duration, String)>,
}

impl<T> DynamicFileContent<T> {
    /// Reads it; `build` makes something of its text.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn open(
        path: &Path,
        clock: &Clock,
        build: impl Fn(&str) -> Result<T, BadFileContent> + Send + Sync + 'static,
    ) -> Result<DynamicFileContent<T>, BadFileContent> {
        let text = read(path)?;
        let current = RwLock::new((text.clone(), Arc::new(build(&text)?)));
        let looked = Mutex::new((clock.elapsed(), String::new()));
        let (path, clock, build) = (path.to_owned(), clock.clone(), Box::new(build));
        Ok(DynamicFileContent { path, clock, build, current, looked })
    }

    /// What is made of what the file says now.
    pub fn current(&self) -> Arc<T> {
        let current = || self.current.read();
        let known = current().1.clone();
        if !self.is_due() {
            return known;
        }
        let outcome = read(&self.path).and_then(|new| {
            let is_same = new == current().0;
            if is_same { Ok(None) } else { (self.build)(&new).map(|built| Some((new, Arc::new(built)))) }
        });
        let mut looked = self.looked.lock();
        match outcome {
            Ok(changed) => {
                looked.1.clear();
                let Some((text, built)) = changed else { return known };
                tracing::info!(file = %self.path.display(), "a configuration file has changed and is followed");
                let mut current = self.current.write();
                *current = (text, built.clone());
                built
            }
            Err(error) => {
                if error != looked.1 {
                    tracing::error!(file = %self.path.display(), error = &*error, "a configuration file is wrong");
                    looked.1 = error.into();
                }
                known
            }
        }
    }

    fn is_due(&self) -> bool {
        let now = self.clock.elapsed();
        let mut looked = self.looked.lock();
        let is_due = now >= looked.0 + INTERVAL;
        if is_due {
            looked.0 = now;
        }
        is_due
    }
}

fn read(path: &Path) -> Result<String, BadFileContent> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()).into())
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    #[test]
    fn a_change_is_followed_and_a_wrong_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let open =
            || DynamicFileContent::open(&path, &clock, |text| text.parse::<u8>().map_err(|_| "no".into()));
        assert!(open().is_err());
        std::fs::write(&path, "1").unwrap();
        let file = open().unwrap();
        for (text, seconds, wanted) in [("2", 0, 1), ("2", 1, 2), ("x", 1, 2), ("3", 1, 3), ("4", 0, 3)] {
            std::fs::write(&path, text).unwrap();
            clock.advance(Duration::from_secs(seconds));
            assert_eq!(*file.current(), wanted, "{text}");
        }
    }
}
