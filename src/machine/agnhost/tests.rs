//! What programs of agnhost say and how they end, as the real one does.

use std::time::Duration;

use super::{OTHERS, PLAYED, PREPARED};
use crate::exec::exec_told;
use crate::file_system::MountedVolume;
use crate::given::given;
use crate::process::{self, Played};
use crate::surroundings::Surroundings;

const IMAGE: &str = "registry.k8s.io/e2e-test-images/agnhost:2.63.0";

fn played(words: &[&str], around: &Surroundings) -> Played {
    process::play(&given(IMAGE, &[], words).invocation(), around, Some(Duration::from_secs(9))).unwrap()
}

fn said(words: &[&str]) -> (Vec<String>, Option<i32>) {
    let played = played(words, &Surroundings::default());
    (played.lines.into_iter().map(|line| line.text).collect(), played.end.map(|(_, code)| code))
}

#[test]
fn servers_say_that_they_start_or_why_not() {
    let at = |text: &str| format!("I0101 00:00:00.000000       1 log.go:245] {text}");
    for (words, lines, code) in [
        (
            &["netexec", "--udp-port=9"][..],
            vec![at("Started HTTP server on port 8080"), at("Started UDP server on port  9")],
            None,
        ),
        (&["netexec", "--udp-port=-1"], vec![at("Started HTTP server on port 8080")], None),
        (&["netexec", "--udp-listen-addresses=x"], vec![at("parseAddress: invalid address x")], Some(1)),
        (&["serve-hostname", "--port=80"], vec![at("Serving on port 80.")], None),
        (&["serve-hostname", "--http=false", "--tcp", "--udp"], vec![at("Serving on port 9376.")], None),
        (
            &["serve-hostname", "--tcp"],
            vec![at("Can't server TCP/UDP mode and HTTP mode at the same time")],
            Some(1),
        ),
        (&["tcp-reset"], vec![at("Serving on port 8080.")], None),
        (
            &["grpc-health-checking", "--tls-cert-file=a"],
            vec![at("Both --tls-cert-file and --tls-private-key-file must be set")],
            Some(1),
        ),
        (
            &["webhook", "--tls-cert-file=/a"],
            vec!["F0101 00:00:00.000000       1 config.go:34] open /a: no such file or directory".to_owned()],
            Some(255),
        ),
        (&["fake-gitserver"], vec![], None),
        (&["pause"], vec!["Paused".to_owned(), "Signals registered".to_owned()], None),
    ] {
        assert_eq!(said(words), (lines, code), "{words:?}");
    }
}

#[test]
fn logs_are_generated_or_refused() {
    let line =
        |second: u8, text: &str| format!("I0101 00:00:0{second}.000000       1 logs_generator.go:76] {text}");
    let (lines, code) = said(&["logs-generator", "-t", "2", "--run-duration=4s"]);
    let first = line(0, "0 GET /api/v1/namespaces/kube-system/pods/p0 200");
    let second = line(2, "1 POST /api/v1/namespaces/kube-system/pods/p1 237");
    assert_eq!((lines, code), (vec![first, second], Some(0)));
    let (lines, code) = said(&["logs-generator", "-t", "2"]);
    assert!(
        lines[0].starts_with("F0101") && lines[0].ends_with("logs_generator.go:68] Invalid duration: 0s")
    );
    assert_eq!((code, said(&["logs-generator"]).1), (Some(255), Some(255)));
}

#[test]
fn files_that_are_not_there_are_told_of() {
    let words = ["mounttest", "--fs_type=/x", "--file_mode=/x", "--file_perm=/x", "--file_owner=/x"];
    let lines = [
        "error from statfs(\"/x\"): no such file or directory",
        "error from Stat(\"/x\"): stat /x: no such file or directory",
        "error from Stat(\"/x\"): stat /x: no such file or directory",
        "error from stat(\"/x\"): no such file or directory",
    ];
    assert_eq!(said(&words), (lines.map(str::to_owned).to_vec(), Some(1)));
    let mounts = vec![MountedVolume { group: Some(7), ..crate::surroundings::kept_mount("/v") }];
    let around = Surroundings { mounts, user: 5, group: 6, ..Surroundings::default() };
    // A volume's group is that of what is made in it.
    for (words, path, user) in
        [(vec!["--file_owner=/v"], "/v", 0), (vec!["--new_file_0660=/v/f", "--file_owner=/v/f"], "/v/f", 5)]
    {
        let found = played(&[&["mounttest"], &words[..]].concat(), &around);
        let lines: Vec<String> = found.lines.into_iter().map(|line| line.text).collect();
        let wanted = [format!("owner UID of {path:?}: {user}"), format!("owner GID of {path:?}: 7")];
        assert!(lines.ends_with(&wanted), "{lines:?}");
    }
}

#[test]
fn a_script_of_its_image_runs_it_and_goes_on() {
    let around = Surroundings { image: IMAGE.to_owned(), ..Surroundings::default() };
    let words = ["sh", "-c", "/agnhost mounttest --file_mode=/x; echo $?"].map(str::to_owned);
    let ran = exec_told(&words, &around, vec![], None).unwrap();
    assert_eq!(ran.out, "error from Stat(\"/x\"): stat /x: no such file or directory\n1\n", "{ran:?}");
    let busybox = Surroundings { image: "busybox".into(), ..Surroundings::default() };
    let ran = exec_told(&words, &busybox, vec![], None).unwrap();
    assert!(ran.errors.contains("/agnhost: not found"), "{ran:?}");
}

#[test]
fn programs_are_run_beside_the_process_of_their_image() {
    let around = Surroundings { image: IMAGE.to_owned(), ..Surroundings::default() };
    let run = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        exec_told(&words, &around, vec![], None)
    };
    let ran = run(&["/agnhost", "entrypoint-tester", "a"]).unwrap();
    assert_eq!((ran.out.as_str(), ran.end), ("[/agnhost entrypoint-tester a]\n", Some((Duration::ZERO, 0))));
    let ran = run(&["/agnhost", "connect", "a"]).unwrap();
    assert_eq!(ran.errors, "UNKNOWN: address a: missing port in address\n");
    assert_eq!(ran.end.map(|(_, code)| code), Some(1));
    let ran = run(&["/agnhost", "connect", "10.0.0.1:1", "--protocol=foo"]).unwrap();
    assert_eq!(ran.errors, "Unsupported protocol\nfoo");
    assert!(run(&["/agnhost", "connect", "10.0.0.1:1"]).unwrap().question.is_some());
    assert!(run(&["/other", "connect"]).is_none());
}

#[test]
fn help_tells_the_subcommands() {
    for flag in ["help", "--help", "-h"] {
        let (lines, code) = said(&[flag]);
        assert_eq!(code, Some(0), "{flag}");
        assert!(lines.iter().any(|line| line == "Available Commands:"), "{lines:?}");
        let is_told = |mode: &&str| lines.iter().any(|line| line.split_whitespace().next() == Some(mode));
        for mode in PLAYED.iter().chain(PREPARED).chain(OTHERS).filter(|mode| !mode.starts_with('-')) {
            assert!(is_told(mode), "{mode}");
        }
    }
}
