//! Which context is current, in whatever order clusters come, go and are killed.

use std::fs;

use serde_json::Value;

use super::Home;

const USERS: &str =
    "{apiVersion: v1, kind: Config, current-context: prod, contexts: [{name: prod, context: {user: me}}]}";

/// The current context, which must be one that there is, and the names of all.
fn contexts(home: &Home) -> (String, Vec<String>) {
    let text = fs::read_to_string(home.path().join(".kube/config")).unwrap();
    let config: Value = serde_yaml::from_str(&text).unwrap();
    let names = config["contexts"].as_array().unwrap().iter();
    let names: Vec<String> = names.map(|context| context["name"].as_str().unwrap().to_owned()).collect();
    let current = config["current-context"].as_str().unwrap().to_owned();
    assert!(current.is_empty() || names.contains(&current), "{current} is not among {names:?}");
    (current, names)
}

/// Does one thing after the other, each with the context that must be current then.
fn play(config: &str, steps: &[(&str, &str)]) {
    let home = Home::new();
    home.file(".kube/config", config);
    for (at, (step, expected)) in steps.iter().enumerate() {
        match step.split_once(' ').unwrap() {
            ("up", name) => drop(home.ok(&format!("up --detach --name {name}"))),
            ("kill", name) => home.kill(name),
            ("use", name) => drop(home.kubectl(&format!("config use-context {name}"))),
            ("fork", name) => drop(home.ok(&format!("fork {name}"))),
            ("down", name) => drop(home.ok(&format!("down --name {name}"))),
            other => panic!("{other:?}"),
        }
        assert_eq!(contexts(&home).0, *expected, "after {:?}", &steps[..=at]);
    }
    assert_eq!(contexts(&home).1, ["prod"], "{steps:?}");
    assert!(home.ok("get clusters").starts_with("No cluster is running"));
}

#[test]
fn the_users_own_is_current_again_when_all_are_gone() {
    play(USERS, &[("up a", "a"), ("up b", "b"), ("down a", "b"), ("down b", "prod")]);
}

#[test]
fn the_one_before_is_current_again_while_it_runs() {
    play(
        USERS,
        &[("up a", "a"), ("up b", "b"), ("down b", "a"), ("up b", "b"), ("down b", "a"), ("down a", "prod")],
    );
}

#[test]
fn the_contexts_of_forks_go_with_their_parent() {
    play(USERS, &[("up a", "a"), ("fork f", "f"), ("fork g", "g"), ("down a", "prod")]);
    play(USERS, &[("up a", "a"), ("fork f", "f"), ("use prod", "prod"), ("down a", "prod")]);
    play(USERS, &[("up a", "a"), ("fork f", "f"), ("fork g", "g"), ("kill a", "g"), ("down a", "prod")]);
    play(
        USERS,
        &[
            ("up a", "a"),
            ("fork f", "f"),
            ("kill a", "f"),
            ("up a", "a"),
            ("fork f", "f"),
            ("down a", "prod"),
        ],
    );
}

#[test]
fn a_fork_is_forked_by_its_name_and_its_forks_end_with_it() {
    let home = Home::new();
    home.file(".kube/config", USERS);
    for name in ["b", "a"] {
        home.ok(&format!("up --detach --name {name}"));
    }
    home.ok("fork f");
    home.kubectl("create configmap of-f");
    assert!(home.ok("fork --name f").contains("fork \"f-1\" of \"f\""));
    home.kubectl("get configmap of-f");
    // Without a name it is a fork of the cluster, also for those whose kubectl talks to one of its forks.
    assert!(home.ok("fork g").contains("fork \"g\" of \"a\""));
    assert!(home.fails("fork f-1").contains("there is a fork \"f-1\" of \"f\" already"));
    let listed = home.ok("fork --list");
    let listed: Vec<&str> = listed.lines().collect();
    assert!(
        listed.len() == 3 && listed[2].starts_with("f-1  ") && listed[2].ends_with("(of f)"),
        "{listed:?}"
    );
    assert!(home.ok("fork --list --name f").starts_with("f-1  "));
    home.ok("settle --name f-1");
    home.ok("fork f --delete");
    assert_eq!(contexts(&home), ("g".into(), ["prod", "b", "a", "g"].map(str::to_owned).into()));
    assert!(home.ok("fork --list").starts_with("g  "));
    assert!(home.fails("fork f-1 --delete").contains("there is no fork \"f-1\" of \"a\""));
    home.ok("fork --name g");
    home.ok("down a");
    assert_eq!(contexts(&home), ("b".into(), ["prod", "b"].map(str::to_owned).into()));
    home.ok("down b");
}

#[test]
fn the_contexts_of_forks_in_other_files_go_too_and_others_of_their_name_stay() {
    let home = Home::new();
    home.file(".kube/config", USERS);
    let file = |name: &str| home.path().join(name).display().to_string();
    for name in ["a", "b"] {
        home.ok(&format!("up --detach --name {name}"));
    }
    for (fork, own) in [("f", file("own-f")), ("g", file("own-g"))] {
        home.ok(&format!("fork {fork} --name a --kubeconfig {own}"));
    }
    // Its parent is another, and the file is the one of a fork that has ended.
    home.ok("fork g --name a --delete");
    assert!(!home.path().join("own-g").exists());
    home.ok(&format!("fork f --name b --kubeconfig {}", file("other")));
    home.kill("a");
    home.ok("down a");
    assert!(!home.path().join("own-f").exists() && home.path().join("other").exists());
    // A fork of a fork goes with all of them.
    assert!(home.ok("fork h --name f").contains("fork \"h\" of \"f\""));
    assert_eq!(contexts(&home).0, "h");
    home.ok("down b");
    assert!(!home.path().join("other").exists());
    assert_eq!(contexts(&home), ("prod".into(), vec!["prod".into()]));
    let left: Vec<_> =
        fs::read_dir(home.path().join("state")).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(left.iter().all(|path| path.extension().is_none_or(|end| end != "forks")), "{left:?}");
}

#[test]
fn one_that_was_killed_is_never_current_again() {
    play(USERS, &[("up a", "a"), ("up b", "b"), ("kill a", "b"), ("down b", "prod"), ("down a", "prod")]);
}

#[test]
fn what_a_killed_one_left_is_cleaned_up_by_down_and_by_the_next_of_its_name() {
    play(
        USERS,
        &[
            ("up a", "a"),
            ("kill a", "a"),
            ("down a", "prod"),
            ("up a", "a"),
            ("kill a", "a"),
            ("up a", "a"),
            ("down a", "prod"),
        ],
    );
}

#[test]
fn what_the_user_chose_meanwhile_stays() {
    play(
        USERS,
        &[
            ("up a", "a"),
            ("up b", "b"),
            ("use prod", "prod"),
            ("down b", "prod"),
            ("use a", "a"),
            ("down a", "prod"),
        ],
    );
}

#[test]
fn without_one_before_none_is_current() {
    let config = USERS.replace("current-context: prod", "current-context: ''");
    play(&config, &[("up a", "a"), ("up b", "b"), ("down a", "b"), ("down b", "")]);
}

#[test]
fn a_users_context_of_the_same_name_is_not_overwritten() {
    let home = Home::new();
    let config = home.file(".kube/config", USERS);
    for up in ["up --name prod", "up --name prod --detach"] {
        let said = home.fails(up);
        assert!(
            said.contains("has a context \"prod\" that is not kubarium's; choose another --name"),
            "{said}"
        );
        assert_eq!(fs::read_to_string(&config).unwrap(), USERS, "{up}");
    }
}

#[test]
fn a_killed_one_is_told_of_and_its_own_kubeconfig_goes_with_it() {
    let home = Home::new();
    let own = home.path().join("own");
    home.ok(&format!("up --detach --name a --kubeconfig {}", own.display()));
    home.kill("a");
    let listed = home.ok("get clusters");
    assert!(listed.contains("Cluster \"a\" was killed; clean up after it with: kubarium down a"), "{listed}");
    assert!(own.exists());
    assert!(home.ok("down").contains("Cluster \"a\" was not running any more; what it left is cleaned up"));
    assert!(!own.exists());
    assert_eq!(home.ok("get clusters").lines().count(), 1);
    home.fails("down");
}
