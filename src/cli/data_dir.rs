//! `--data-dir`: whether it can be used, before anything starts.

use std::fs;
use std::path::Path;

use rustix::fs::{Access, access};

use super::Failure;

/// Makes the folder, and finds out whether we may write there.
pub(crate) fn check(path: &Path) -> Result<(), Failure> {
    let made = fs::create_dir_all(path).map_err(|error| error.to_string());
    let usable = made.and_then(|()| {
        let may = access(path, Access::WRITE_OK | Access::EXEC_OK);
        may.map_err(|error| std::io::Error::from(error).to_string())
    });
    usable.map_err(|why| {
        Failure(format!(
            "--data-dir {}: cannot keep anything there: {why}; choose a folder that you may write to, or leave \
             --data-dir out and all is gone at the end",
            path.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_made_and_what_cannot_be_one_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("a/b");
        assert!(check(&data).is_ok() && data.is_dir());
        fs::write(folder.path().join("file"), "").unwrap();
        let Failure(why) = check(&folder.path().join("file")).unwrap_err();
        assert!(why.contains("File exists") && why.contains("choose a folder"), "{why}");
        let Failure(why) = check(Path::new("/proc/nope")).unwrap_err();
        assert!(why.starts_with("--data-dir /proc/nope: cannot keep anything there: "), "{why}");
    }
}
