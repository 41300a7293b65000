//! Texts that are told as files below `tests/golden` have them.

use std::path::Path;

/// Fails where a text is another than that of the file `tests/golden/NAME`; with `KUBARIUM_UPDATE_GOLDEN=1` the
/// file is written anew.
pub(crate) fn golden(name: &str, told: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("KUBARIUM_UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, told).unwrap();
        return;
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(told, wanted, "{} is told otherwise", path.display());
}
