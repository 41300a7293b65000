//! Which cluster and which object is meant by whoever says little.

use serde_json::Value;

use super::{Home, run};
use crate::support::texts;

#[test]
fn without_a_name_the_only_cluster_is_meant_and_kubectls_forms_are_understood() {
    let home = Home::new();
    home.ok("up --detach --name nc");
    home.kubectl("create namespace team");
    home.kubectl("config set-context --current --namespace team");
    home.kubectl("create deployment web --image nginx");
    assert!(home.ok("get kubeconfig").contains("current-context: nc"));
    for line in
        ["trace deploy/web", "trace deploy web", "trace deployments.apps web", "trace deploy web -n team"]
    {
        assert!(home.ok(line).contains("team/web"), "{line}");
    }
    let said = home.fails("trace pods x");
    assert!(said.contains("nothing is recorded of pods/x in namespace \"team\" of cluster \"nc\""), "{said}");
    let said = home.fails("trace deploy web -n default");
    assert!(said.contains("in namespace \"default\"") && said.contains("-n NAMESPACE"), "{said}");
    let said = home.fails("trace no/node-7");
    assert!(said.contains("nothing is recorded of no/node-7 in cluster \"nc\""), "{said}");
    for line in ["trace pod/", "trace /x", "trace pod/x/y", "trace pod x y"] {
        assert!(home.fails(line).contains("names no object: say KIND/NAME or KIND NAME"), "{line}");
    }
    assert!(home.ok("down").contains("Cluster \"nc\" is gone."));
}

#[test]
fn whoever_kubectl_is_asks() {
    let home = Home::new();
    home.ok("up --detach --name a");
    home.kubectl("create serviceaccount joe");
    let token = home.kubectl("create token joe");
    home.kubectl(&format!("config set-credentials joe --token {}", token.trim()));
    home.kubectl("config set-context --current --user joe");
    let joe = "system:serviceaccount:default:joe";
    for line in ["ui", "time now", "settle", "step pause", "trace deploy/web", "fork", "snapshot save x"] {
        let said = home.fails(line);
        assert!(said.contains("forbidden") && said.contains(joe), "{line}: {said}");
    }
    assert!(home.ok("get kubeconfig").contains("client-key-data"), "whose it is does not depend on who asks");
    home.kubectl("config set-context --current --user a");
    home.ok("settle");
    home.kubectl(
        "config set-credentials jane --exec-command aws --exec-api-version client.authentication.k8s.io/v1",
    );
    home.kubectl("config set-context --current --user jane");
    assert!(home.fails("settle").contains("it logs in by exec"));
    home.kubectl("config unset current-context");
    home.ok("settle");
}

#[test]
fn of_several_the_current_context_decides_and_all_can_be_stopped() {
    let home = Home::new();
    for name in ["a", "b", "c"] {
        home.ok(&format!("up --detach --name {name}"));
    }
    assert!(home.ok("get kubeconfig").contains("current-context: c"));
    home.kubectl("config use-context b");
    assert!(home.ok("get kubeconfig").contains("current-context: b"));
    home.kubectl("config unset current-context");
    for line in ["get kubeconfig", "down", "trace deploy/web"] {
        let said = home.fails(line);
        assert!(said.contains("say which of a, b, c with --name, as --name a"), "{line}: {said}");
    }
    home.kubectl("config use-context b");
    assert!(home.ok("down").contains("Cluster \"b\" is gone."));
    assert!(home.ok("down a").contains("Cluster \"a\" is gone."));
    assert!(home.fails("down b").contains("no cluster named \"b\" is running; c is: --name c"));
    assert!(home.fails("down a --name c").contains("give names once: kubarium down a c"));
    home.ok("up --detach --name a");
    let said = home.ok("down --all");
    assert!(said.contains("\"a\" is gone.") && said.contains("\"c\" is gone."), "{said}");
    assert!(home.ok("down --all").contains("No cluster is running."));
}

#[test]
fn clusters_are_listed_wide_and_as_json() {
    let home = Home::new();
    assert_eq!(home.ok("get clusters -o json").trim(), "[]");
    let data = home.path().join("data").display().to_string();
    home.ok(&format!("up --detach --name a --nodes 2 --data-dir {data}"));
    let narrow = home.ok("get clusters");
    let columns: Vec<&str> = narrow.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(columns, ["NAME", "STATUS", "SERVER", "NODES", "PID", "AGE"]);
    let wide = home.ok("get clusters -o wide");
    let log = home.path().join("state/a.log").display().to_string();
    for wanted in ["VERSION", "DATA-DIR", "KUBECONFIG", "LOG", &data, &log, ".kube/config"] {
        assert!(wide.contains(wanted), "{wanted}: {wide}");
    }
    let clusters: Value = serde_json::from_str(&home.ok("get clusters -o json")).unwrap();
    assert_eq!((&clusters[0]["name"], &clusters[0]["nodes"]), (&"a".into(), &2.into()));
    assert_eq!((&clusters[0]["dataDir"], &clusters[0]["ready"]), (&data.into(), &true.into()));
    assert!(clusters[0]["started"].is_string() && clusters[0]["kubeconfig"].is_string(), "{clusters}");
}

#[test]
fn help_is_a_command_and_other_words_lead_to_ours() {
    let home = Home::new();
    assert!(home.ok("help trace").contains("kubarium trace"));
    assert!(home.ok("help get kubeconfig").contains("kubarium get kubeconfig"));
    for (word, wanted) in [("stop", "kubarium down"), ("status", "get clusters"), ("logs", "kubectl logs")] {
        let output = run(home.path(), &[word]);
        let (_, err) = texts(&output);
        assert_eq!(output.status.code(), Some(2), "{word}");
        assert!(err.contains(&format!("unrecognized subcommand '{word}'")) && err.contains(wanted), "{err}");
    }
}
