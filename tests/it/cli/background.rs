//! `up --detach`: when it answers and with what, and the log of the cluster in the background.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use super::{Home, run};
use crate::support::{command, texts};

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n";

/// The clusters that run, and the files that starting one leaves.
fn traces_of_a_start(home: &Home) -> Vec<String> {
    let mut found: Vec<String> = home
        .ok("get clusters")
        .lines()
        .filter(|line| !line.starts_with("No cluster"))
        .map(str::to_owned)
        .collect();
    if let Ok(entries) = fs::read_dir(home.path().join("state")) {
        found.extend(entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()));
    }
    found
}

#[test]
fn manifests_are_looked_at_before_anything_starts() {
    let home = Home::new();
    let broken = home.file("broken.yaml", "a: [");
    let no_kind = home.file("no-kind.yaml", "metadata: {name: a}\n");
    let nothing = home.file("nothing.yaml", "# nothing\n");
    home.file("outer/inner/map.yaml", MAP);
    let outer = home.path().join("outer").to_str().unwrap().to_owned();
    fs::create_dir(home.path().join("empty")).unwrap();
    let empty = home.path().join("empty").to_str().unwrap().to_owned();
    let cases = [
        ("nowhere.yaml", "nowhere.yaml: there is no such file or folder"),
        (&broken, "broken.yaml: it is not YAML"),
        (&no_kind, "Object 'Kind' is missing in"),
        (&nothing, "there is no object to apply"),
        (&empty, "there is no manifest in this folder"),
        (&outer, "map.yaml is below it: -R looks into sub-folders"),
        ("https://example.com/a.yaml", "curl -sSfL https://example.com/a.yaml | kubarium up -f -"),
    ];
    for (file, wanted) in cases {
        for up in ["up", "up --detach"] {
            let said = home.fails(&format!("{up} -f {file}"));
            assert!(said.contains(wanted), "{up} -f {file}: {said}");
            assert_eq!(traces_of_a_start(&home), Vec::<String>::new(), "{up} -f {file}");
        }
    }
}

#[test]
fn what_the_server_refuses_ends_it_with_the_reason() {
    let home = Home::new();
    let pod = |spec: &str| format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: x}}\nspec: {spec}\n");
    let unknown_kind = home.file("kind.yaml", "apiVersion: v1\nkind: Wombat\nmetadata: {name: a}\n");
    let invalid = home.file("invalid.yaml", &pod("{containers: []}"));
    let unknown_field = home.file("field.yaml", &pod("{containers: [{name: c, image: nginx, imag: x}]}"));
    let strict = "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown field \
                  \"spec.containers[0].imag\"";
    for (file, wanted) in [
        (&unknown_kind, "no matches for kind \"Wombat\" in version \"v1\""),
        (&invalid, "spec.containers: Required value"),
        (&unknown_field, strict),
    ] {
        for up in ["up", "up --detach"] {
            let said = home.fails(&format!("{up} -f {file}"));
            assert!(said.contains(wanted) && said.contains(file.as_str()), "{up} -f {file}: {said}");
            assert!(home.ok("get clusters").starts_with("No cluster"), "{up} -f {file}");
        }
    }
}

#[test]
fn it_answers_when_everything_is_applied_and_says_what() {
    let home = Home::new();
    let folder = home.path().join("all");
    home.file("all/a.yaml", MAP);
    home.file("all/below/b.yaml", &MAP.replace("settings", "more"));
    let said = home.ok(&format!("up --detach -R -f {}", folder.display()));
    assert!(
        said.contains("configmaps/settings created") && said.contains("configmaps/more created"),
        "{said}"
    );
    assert!(said.contains("kubectl's current context is \"kubarium\" now"), "{said}");
    assert_eq!(home.kubectl("get cm settings more -o name"), "configmap/settings\nconfigmap/more\n");
    let applied = home.kubectl("get cm more -o yaml --show-managed-fields");
    assert!(applied.contains("kubectl-client-side-apply"), "{applied}");
}

#[test]
fn the_standard_input_is_applied_too() {
    let home = Home::new();
    let own = home.path().join("own").to_str().unwrap().to_owned();
    let mut child = command(home.path())
        .args(["up", "--detach", "--kubeconfig", &own, "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(MAP.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let (out, err) = texts(&output);
    assert!(output.status.success() && out.contains("configmaps/settings created"), "{out}{err}");
    assert!(out.contains(&format!("export KUBECONFIG={own}")), "{out}");
    assert_eq!(home.kubectl(&format!("--kubeconfig {own} get cm settings -o name")), "configmap/settings\n");
}

#[test]
fn the_log_of_a_cluster_that_runs_is_not_touched() {
    let home = Home::new();
    home.ok("up --name lg --detach");
    let log = home.path().join("state/lg.log");
    let before = fs::read_to_string(&log).unwrap();
    assert!(before.contains("starts cluster \"lg\""), "{before}");
    for up in ["up --name lg --detach", "up --name lg"] {
        let said = home.fails(up);
        assert!(said.contains("a cluster named \"lg\" is running; stop it with"), "{up}: {said}");
        assert_eq!(fs::read_to_string(&log).unwrap(), before, "{up}");
    }
    home.ok("down lg");
    let names: Vec<_> =
        fs::read_dir(home.path().join("state")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["lg.log"], "the log alone is left");
}

#[test]
fn a_name_is_looked_at_before_any_file() {
    let home = Home::new();
    let victim = home.file("p.log", "mine");
    for name in ["../p", "../../p", "A B/c", "-"] {
        let output = run(home.path(), &["up", "--detach", "--name", name]);
        let (_, err) = texts(&output);
        assert!(
            !output.status.success() && err.contains("use lower-case letters, digits and '-'"),
            "{name}: {err}"
        );
        assert!(err.contains(&format!("--name {name:?}")), "{err}");
    }
    assert_eq!(fs::read_to_string(victim).unwrap(), "mine");
    assert!(!home.path().join("state").exists());
}
