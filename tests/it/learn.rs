//! Every lesson of the course is run, on a cluster of its own, with the real kubectl.

use std::path::Path;
use std::process::Stdio;

use crate::support::{Up, command, kubectls, texts};

/// In a folder of its own, `kubarium` and `kubectl` by these names.
pub(crate) fn path_with_programs(home: &Path) -> std::ffi::OsString {
    let bin = home.join("bin");
    std::fs::create_dir(&bin).unwrap();
    let link = |name: &str, target: &Path| std::os::unix::fs::symlink(target, bin.join(name)).unwrap();
    link("kubarium", Path::new(env!("CARGO_BIN_EXE_kubarium")));
    link("kubectl", &kubectls().pop().unwrap());
    let rest = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&rest))).unwrap()
}

const MINE: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: till, image: busybox, command: [sleep, infinity]}]
";

#[test]
fn every_lesson_shows_what_it_says() {
    let up = Up::start();
    let path = path_with_programs(up.folder());
    let learn = |words: &[&str]| {
        let mut learn = command(up.folder());
        learn.arg("learn").args(words).env("PATH", &path).env("TMPDIR", up.folder()).stdin(Stdio::null());
        let output = learn.output().unwrap();
        let (out, err) = texts(&output);
        (output.status.success(), out, err)
    };
    // Where kubectl's context has another namespace, it is that in which the lesson looks that counts.
    assert!(up.kubectl(&["config", "set-context", "--current", "--namespace", "elsewhere"]).status.success());
    let (_, list, _) = learn(&[]);
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() >= 25, "{list}");
    for name in names {
        let (is_done, out, err) = learn(&[name, "--run", "--patience", "60"]);
        assert!(is_done && out.contains("seen: ") && out.contains("Answer: "), "lesson {name}\n{out}{err}");
        // The one that shows what stands in the context shows that.
        assert!(
            name == "kubectl" || !format!("{out}{err}").contains("elsewhere"),
            "lesson {name}\n{out}{err}"
        );
    }
    // What was seen is shown as it is in the record, with the revision of which the text tells.
    let (is_done, out, err) = learn(&["watch", "--run", "--patience", "60"]);
    let at = "seen: kube-apiserver: updated configmaps default/lesson at ";
    let revision = out.split(at).nth(1).and_then(|rest| rest.chars().next());
    assert!(is_done && revision.is_some_and(|digit| digit.is_ascii_digit()), "{out}{err}");
    // Who learns may bring what it is shown on.
    let manifest = up.folder().join("mine.yaml");
    std::fs::write(&manifest, MINE).unwrap();
    let mine = manifest.to_str().unwrap();
    for name in ["deployment", "informers", "rolling-update"] {
        let (is_done, out, err) = learn(&[name, "-f", mine, "--run", "--patience", "60"]);
        assert!(is_done && out.contains(" default/shop"), "lesson {name}\n{out}{err}");
        assert!(out.contains(&format!("$ kubectl -n default apply -f {mine}")), "{out}");
        assert!(!out.contains("default/lesson"), "{out}");
    }
    let (is_done, _, err) = learn(&["watch", "-f", mine]);
    assert!(!is_done && err.contains("-f is for deployment, informers, rolling-update"), "{err}");
    let no_name = up.file("no-name.yaml", &MINE.replace("name: till", "name: $(id)"));
    let (is_done, _, err) = learn(&["deployment", "-f", &no_name, "--run"]);
    assert!(!is_done && err.contains("containers[0].name: Invalid value: \"$(id)\""), "{err}");
    // What a lesson has left that stopped halfway is told before it begins again.
    assert!(up.kubectl(&["-n", "default", "create", "configmap", "lesson"]).status.success());
    let (is_done, _, err) = learn(&["watch", "--run"]);
    assert!(!is_done && err.contains("there is still configmap/lesson; clean up with: "), "{err}");
    let (is_done, _, err) = learn(&["nothing"]);
    assert!(!is_done && err.contains("kubarium learn lists them"), "{err}");
}
