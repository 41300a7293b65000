//! What shells do with scripts as charts and test suites write them.

use super::*;
use crate::given::given;
use crate::surroundings::kept_mount;

fn around(image: &str) -> Surroundings {
    Surroundings { image: image.into(), mounts: vec![kept_mount("/data")], ..Surroundings::default() }
}

/// What a script says, and how it ends.
pub(super) fn told_in(image: &str, command: &[&str]) -> (String, Option<(u64, i32)>) {
    let container = given(image, command, &[]);
    let played = play(&container.invocation(), &around(image), None).expect("it is played");
    assert_eq!(played.fault, None, "{command:?}");
    let said: String = played.lines.iter().flat_map(|line| [line.text.as_str(), "\n"]).collect();
    (said, played.end.map(|(time, code)| (time.as_secs(), code)))
}

fn told(script: &str) -> String {
    told_in("busybox", &["sh", "-c", script]).0
}

fn code(script: &str) -> i32 {
    told_in("busybox", &["sh", "-c", script]).1.expect("it ends").1
}

#[track_caller]
fn says(cases: &[(&str, &str)]) {
    for (script, said) in cases {
        assert_eq!(told(script), *said, "{script}");
    }
}

#[test]
fn each_shell_traces_in_its_own_way() {
    let script = "set -x; x='a b' echo '<c>'";
    for (image, shell, said) in [
        ("busybox", "sh", "+ x='a b' echo '<c>'\n<c>\n"),
        ("debian", "sh", "+ x=a b echo <c>\n<c>\n"),
        ("debian", "bash", "+ x='a b'\n+ echo '<c>'\n<c>\n"),
    ] {
        assert_eq!(told_in(image, &[shell, "-c", script]).0, said, "{image} {shell}");
    }
}

#[test]
fn what_is_not_there_is_not_found_where_the_image_is_known() {
    for (image, shell, said) in [
        ("busybox", "sh", "sh: rsync: not found\n127 on\n"),
        ("alpine:3.20", "ash", "ash: rsync: not found\n127 on\n"),
        ("debian", "sh", "sh: 1: rsync: not found\n127 on\n"),
        ("ubuntu", "bash", "bash: line 1: rsync: command not found\n127 on\n"),
    ] {
        let (out, end) = told_in(image, &[shell, "-c", "rsync a b; echo $? on"]);
        assert_eq!((out.as_str(), end), (said, Some((0, 0))), "{image} {shell}");
    }
    // Of other images nobody knows what they have: their containers just run.
    for (image, words) in [
        ("my-app", &["sh", "-c", "prepare && exec my-server"][..]),
        ("nginx", &["sh", "-c", "echo a; nginx -g 'daemon off;'"]),
        ("my-app", &["sh", "/docker-entrypoint.sh"]),
        ("my-app", &["my-server"]),
        ("busybox", &["/opt/my-server"]),
    ] {
        let container = given(image, words, &[]);
        assert!(play(&container.invocation(), &around(image), None).is_none(), "{image} {words:?}");
    }
    let missing = given("busybox", &["my-server", "--port=80"], &[]);
    let missing = play(&missing.invocation(), &around("busybox"), None).unwrap();
    assert_eq!((missing.lines.len(), missing.end), (0, Some((Duration::ZERO, 128))));
    let (out, end) = told_in("debian", &["sh", "-c", "echo a\n\nnothing || exec nobody; echo no"]);
    assert_eq!(
        (out.as_str(), end),
        ("a\nsh: 3: nothing: not found\nsh: 3: nobody: not found\n", Some((0, 127)))
    );
    assert_eq!(
        told("PROGRAM=echo; $PROGRAM a; nothing | cat; if nothing; then echo no; else echo yes; fi"),
        "a\nsh: nothing: not found\nsh: nothing: not found\nyes\n"
    );
}

#[test]
fn strict_scripts_end_at_what_goes_wrong() {
    for (script, wanted) in [
        ("set -euo pipefail; false | true; exit 3", 1),
        ("set -eu; echo $NOTHING; exit 3", 2),
        ("set -u; echo ${NOTHING:-a} ${NOTHING-} ${NOTHING+b}; exit 3", 3),
        ("set -e; (false); exit 3", 1),
        ("set -e; x=$(false); exit 3", 1),
        ("set -e; f() { false; echo on; }; if f; then exit 3; fi", 3),
        ("set -e; set +e; false; exit 3", 3),
        ("set -e; false || { true; }; ! false; exit 3", 3),
        ("set -e; for i in 1 2; do [ $i = 2 ] && break; done; exit 3", 3),
        ("set -o errexit -o nounset; : ${1:-}; nothing; exit 3", 127),
        (": ${NEEDED:?is missing}; exit 3", 1),
        ("echo $((1 / 0)); exit 3", 2),
    ] {
        assert_eq!(code(script), wanted, "{script}");
    }
    let flags = told_in("busybox", &["sh", "-ec", "false; echo no"]);
    assert_eq!(flags, (String::new(), Some((0, 1))));
    let arguments = told_in("busybox", &["sh", "-c", "echo $0 $1 $#", "me", "a b", "c"]);
    assert_eq!(arguments.0, "me a b 2\n");
    says(&[
        ("set -x; echo a; set +x; echo b", "+ echo a\na\n+ set +x\nb\n"),
        ("set -x; x='a b' y=; [ -z \"$x\" ]", "+ x='a b' y=''\n+ '[' -z 'a b' ]\n"),
        ("set -x; x=1 echo \"it's\"", "+ x=1 echo 'it'\\''s'\nit's\n"),
        ("set -u; (echo $NOTHING) 2>/dev/null; echo $? on", "2 on\n"),
        ("set -- a 'b c'; echo $# $2; set x; echo $1", "2 b c\nx\n"),
    ]);
}

#[test]
fn traps_are_kept_where_they_are_set() {
    says(&[
        ("trap 'echo bye $?' EXIT; echo hi; exit 3", "hi\nbye 3\n"),
        ("trap 'echo outer' EXIT; (trap 'echo inner' 0; echo in); echo on", "in\ninner\non\nouter\n"),
        ("trap 'echo got' TERM; kill -TERM 1; echo on", "got\non\n"),
        ("trap 'echo gone; exit 4' INT; kill -s INT 1; echo no", "gone\n"),
        ("trap 'echo x' EXIT; trap - EXIT; echo on", "on\n"),
        ("trap 'echo failed' ERR; false; false || true; echo on", "failed\non\n"),
        (
            "f() { rm -f /tmp/lock; echo cleaned; }; trap f EXIT INT; touch /tmp/lock; set -e; false",
            "cleaned\n",
        ),
        ("x=$(trap 'echo end' EXIT; echo begin); echo $x", "begin end\n"),
        ("trap 'echo a' USR1; trap", "trap -- 'echo a' USR1\n"),
    ]);
    assert_eq!(code("trap 'exit 7' EXIT; exit 3"), 7);
}

#[test]
fn the_background_has_numbers_and_ends() {
    says(&[
        ("sleep 2 & p=$!; wait $p; echo $?", "0\n"),
        ("(exit 4) & wait $!; echo $?", "4\n"),
        ("(sleep 1; exit 3) & (sleep 5) & wait -n; echo $?", "3\n"),
        ("while true; do echo x; sleep 1; done & p=$!; sleep 2; kill $p; wait $p; echo $?", "x\nx\n143\n"),
        ("sleep 9 & kill -0 $! && echo runs; kill %1; kill -0 $! 2>/dev/null || echo gone", "runs\ngone\n"),
        ("true && echo a && sleep 1 & wait; echo b", "a\nb\n"),
        ("x=1; { x=2; echo $x; } & wait; echo $x", "2\n1\n"),
    ]);
}

#[test]
fn words_are_filled_in_split_and_matched() {
    says(&[
        (
            "x=a/b/c.tar.gz; echo ${x##*/} ${x#*/} ${x%%.*} ${x%.*} ${#x}",
            "c.tar.gz b/c.tar.gz a/b/c a/b/c.tar 12\n",
        ),
        ("x=a-b-c; echo ${x/-/+} ${x//-/} ${x:2} ${x:2:1} ${x: -1}", "a+b-c abc b-c b c\n"),
        ("echo ${x:=new} $x ${x:+set}; echo \"${y:-a  b}\"", "new new set\na  b\n"),
        ("x=' a  b '; echo $x; echo \"$x\"; for i in $x; do echo .$i; done", "a b\n a  b \n.a\n.b\n"),
        ("IFS=:; x=a::b; for i in $x; do echo \"<$i>\"; done", "<a>\n<>\n<b>\n"),
        ("IFS=, read a b <<EOF\n1,2,3\nEOF\necho $a/$b", "1/2,3\n"),
        (
            "cd /data; touch a.yaml b.yaml .c.yaml 'd e'; echo *.yaml; echo '*.yaml' \\*; echo x*; for f in d*; do echo \"<$f>\"; done",
            "a.yaml b.yaml\n*.yaml *\nx*\n<d e>\n",
        ),
        (
            "mkdir -p /data/x; touch /data/x/1 /data/x/2; echo /data/*/[1]; set -f; echo /data/*",
            "/data/x/1\n/data/*\n",
        ),
        (
            "case abc in [a-c]*) echo yes;; esac; case 'a*' in 'a*') echo lit;; esac; case ab in 'a*') echo no;; esac",
            "yes\nlit\n",
        ),
        ("echo \"$(echo \"a $(echo 'b)')\")\" `echo \\`echo c\\``", "a b) c\n"),
        ("echo $(case a in (a) echo b;; esac) $(( (1 + 2) * 3 )) $((x = 4, x << 1)) $x", "b 9 8 4\n"),
        ("echo ~ ~/x; HOME=/h; echo ~; echo \"~\"", "/root /root/x\n/h\n~\n"),
        ("echo $'a\\tb\\'c'; x=; echo \"[$x]\" ${x:-e}; x+=a; x+=b; echo $x", "a\tb'c\n[] e\nab\n"),
        ("f() { local x=2 y; y=3; echo $x$y; }; x=1; f; echo $x$y", "23\n1\n"),
        ("f() { local x=$1 y=\"$2\"; echo \"$x,$y\"; }; f 'a b' 'c  d'", "a b,c  d\n"),
        ("x='a b *'; export y=$x; readonly z=$x; echo \"$y,$z\"", "a b *,a b *\n"),
        ("X=1 env | grep ^X=; echo \"<$X>\"; X=2; (X=3; export X); echo $X", "X=1\n<>\n2\n"),
        ("set -- a b; for i; do echo $i; done; shift; echo $1 \"$@\"; shift 5 || echo no", "a\nb\nb b\nno\n"),
        ("while getopts ab:c o -a -b x -c; do echo $o$OPTARG; done", "a\nbx\ncx\n"),
        (
            "eval 'x=1; echo $x'; echo 'echo from $1' > /tmp/s; . /tmp/s; sh /tmp/s arg; chmod +x /tmp/s; /tmp/s b",
            "1\nfrom\nfrom arg\nfrom b\n",
        ),
        (
            "for i in 1 2 3; do for j in 1 2; do [ $i$j = 21 ] && break 2; [ $j = 2 ] && continue 2; echo $i$j; done; done",
            "11\n",
        ),
    ]);
    let bash = |script: &str| told_in("bash", &["bash", "-c", script]).0;
    assert_eq!(bash("for i in {1..3}; do echo -n $i; done; echo {a,b}c"), "123ac bc\n");
    assert_eq!(
        bash("[[ abc == a* && ! 1 -gt 2 ]] && echo yes; [[ ab =~ ^a.$ ]] && echo re; [[ 'a b' = a* || x ]]"),
        "yes\nre\n"
    );
    assert_eq!(bash("for ((i = 0; i < 3; i++)); do echo -n $i; done; ((i == 3)) && echo done"), "012done\n");
    assert_eq!(bash("function f { echo $1; }; f a; x=Ab; echo ${x^^} ${x,,}"), "a\nAB ab\n");
}

#[test]
fn descriptors_lead_where_they_are_sent() {
    says(&[
        ("exec 3>/tmp/x; echo a >&3; echo b >&3; exec 3>&-; cat /tmp/x", "a\nb\n"),
        ("exec 3>&1; x=$(echo in; echo out >&3); echo $x", "out\nin\n"),
        ("printf 'a\\nb\\n' > /tmp/x; exec 4</tmp/x; read x <&4; read y <&4; echo $y$x", "ba\n"),
        (
            "printf 'a\\nb\\n' > /tmp/x; while read l; do echo \"$l\" >/dev/null; echo $l; done < /tmp/x",
            "a\nb\n",
        ),
        ("while read l <&3; do echo $l; done 3<<EOF\na\nb\nEOF", "a\nb\n"),
        (
            "{ echo a; echo b >&2; } > /tmp/x 2>&1; cat /tmp/x; { echo c; nothing; } &> /tmp/y; wc -l < /tmp/y",
            "a\nb\n2\n",
        ),
        ("exec > /tmp/x; echo a; exec >/dev/stderr; cat /tmp/x >&2", "a\n"),
        ("echo a 2>&- >&2; echo b", "b\n"),
        ("echo a >&9; echo $?", "sh: can't dup(9): Bad file descriptor\n1\n"),
        ("cat <<-'A' <<-B\n\tno\n\tA\n\t$((1 + 1))\n\tB", "2\n"),
    ]);
}

#[test]
fn programs_of_charts_do_what_they_do() {
    says(&[
        (
            "printf 'b 2\\na 10\\na 9\\n' | sort -k2 -n | head -1; printf 'b\\na\\nb\\n' | sort -ru; printf 'a\\na\\nb\\n' | uniq -c",
            "b 2\nb\na\n      2 a\n      1 b\n",
        ),
        ("echo a:b:c | cut -d: -f2-; echo a:b:c | cut -d : -f 1,3; echo hello | cut -c2-3", "b:c\na:c\nel\n"),
        (
            "echo Hello | tr 'a-zA-Z' 'b-zaB-ZA'; echo aabb | tr -s ab; echo 'a1 b2' | tr -dc '0-9\\n'; echo abc | tr -d '[:lower:]'",
            "Ifmmp\nab\n12\n\n",
        ),
        (
            "printf 'a\\nB\\nab\\n' | grep -i -c b; printf 'x=1\\ny=2\\n' | grep -oE '[0-9]+'; echo a.b | grep -F a.b; printf 'a\\nb\\n' | grep -n b",
            "2\n1\n2\na.b\n2:b\n",
        ),
        (
            "mkdir -p /data/a/b; echo x > /data/a/b/c.txt; echo y > /data/a/d.log; find /data -type f -name '*.txt'; find /data -maxdepth 1 -type d; find /data -name '*.log' -exec cat {} \\;",
            "/data/a/b/c.txt\n/data\n/data/a\ny\n",
        ),
        (
            "cd /data; echo hi > f; tar czf /tmp/t.tgz f; rm f; tar xzf /tmp/t.tgz; cat f; gzip f; ls; gunzip -c f.gz; zcat f.gz | wc -c",
            "hi\nf.gz\nhi\n3\n",
        ),
        (
            "dd if=/dev/zero of=/tmp/z bs=1k count=4 2>/dev/null; wc -c < /tmp/z; stat -c %s /tmp/z; du -b /tmp/z",
            "4096\n4096\n4096\t/tmp/z\n",
        ),
        (
            "yes | head -2; yes no | tr -d '\\n' | head -c 4; echo; timeout -s KILL 1m sleep 5; echo $?",
            "y\ny\nnono\n0\n",
        ),
        (
            "echo 'a b' | awk '{print $2, $1}'; printf '1 2\\n3 4\\n' | awk '{s += $1} END {print s}'; echo a:b | awk -F: '$1 == \"a\" {print $2}'",
            "b a\n4\nb\n",
        ),
        (
            "expr 2 + 3 \\* 2; expr abc : 'a\\(.*\\)'; expr length abc; expr 1 = 2; echo $?",
            "8\nbc\n3\n0\n1\n",
        ),
        (
            "printf '%05.1f|%-3s|%x\\n' 3.14159 a 255; printf '%s\\n' a b; echo -e 'a\\tb'",
            "003.1|a  |ff\na\nb\na\tb\n",
        ),
        ("t=$(mktemp); echo a > $t; cat $t; d=$(mktemp -d); test -d $d && echo folder", "a\nfolder\n"),
        (
            "mkfifo /tmp/p; echo a > /tmp/p & wait; cat /tmp/p; command -v sh; command -v nothing || echo none",
            "a\n/bin/sh\nnone\n",
        ),
        ("tr -dc a-z < /dev/urandom | head -c 8 | wc -c; head -c 4 /dev/zero | wc -c", "8\n4\n"),
        (
            "seq 1 5 | tail -n +4; seq 3 | sed -n '$p'; seq 3 | tac | xargs; seq 2 | paste -sd, -; echo abc | rev",
            "4\n5\n3\n3 2 1\n1,2\ncba\n",
        ),
    ]);
    let nothing = "openssl nothing; echo $?; openssl x509 -in /nothing 2>/dev/null || echo no";
    let (out, _) = told_in("alpine/openssl", &["sh", "-c", nothing]);
    assert_eq!(out, "openssl: this command is not played here\n1\nno\n");
}

#[test]
fn endless_things_stay_bounded() {
    for script in [
        ":(){ :|:& };:",
        "f() { f | f & }; f; wait",
        "yes",
        "yes > /data/y",
        "cat /dev/zero > /dev/null; dd if=/dev/zero of=/data/z bs=1M",
        "head -c 1G /dev/zero > /data/z",
        "x=x; while [ 1 ]; do x=\"$x$x\"; done",
        "while [ 1 ]; do eval \"f$((i = i + 1))() { :; }\"; done",
        "set -- a; while [ 1 ]; do set -- \"$@\" \"$@\"; done",
        "trap 'kill -USR1 1' USR1; kill -USR1 1",
        "f() { local x=$1$1; f \"$x\"; }; f a",
        "x=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do x=$x$x; done; while [ 1 ]; do y=${x//a/bb}; done",
        "echo 'sh /tmp/s' > /tmp/s; sh /tmp/s",
        "echo '. /tmp/s' > /tmp/s; . /tmp/s",
        "for ((;;)); do :; done",
        "truncate -s 999999999 /data/z; printf '%999999999d' 1",
    ] {
        let container = given("bash", &["bash", "-c", script], &[]);
        let played = play(&container.invocation(), &around("bash"), None).expect("it is played");
        assert!(
            played.fault.is_some() && played.end.is_some_and(|(_, code)| code != 0),
            "{script}: {:?}",
            played.end
        );
    }
}

#[test]
fn programs_of_an_image_are_listed_by_their_names() {
    for image in ["busybox", "alpine:3.20", "debian", "nginx"] {
        let script = "for it in $(ls /bin); do test -x /bin/$it && which $it >/dev/null || echo no $it; done";
        let (out, end) = told_in(image, &["sh", "-c", script]);
        assert_eq!((out.as_str(), end), ("", Some((0, 0))), "{image}");
        let (listed, _) = told_in(image, &["sh", "-c", "ls /bin; ls /usr/bin"]);
        for name in ["cat", "ls", "sh"] {
            assert!(listed.lines().filter(|line| *line == name).count() > 0, "{image} {name}: {listed}");
        }
    }
    assert!(!told("ls /bin").lines().any(|line| matches!(line, "apk" | "bash" | "apt-get")));
}

#[test]
fn programs_that_an_image_has_not_are_not_found() {
    let absent = [
        ("busybox", "sh", "curl x", "sh: curl: not found\n127\n"),
        ("busybox", "sh", "/usr/bin/curl x", "sh: /usr/bin/curl: not found\n127\n"),
        ("alpine", "sh", "dig x", "sh: dig: not found\n127\n"),
        ("debian", "bash", "curl x", "bash: line 1: curl: command not found\n127\n"),
        ("debian", "sh", "ps", "sh: 1: ps: not found\n127\n"),
        (
            "busybox",
            "sh",
            "timeout 5 curl x",
            "timeout: can't execute 'curl': No such file or directory\n127\n",
        ),
        (
            "debian",
            "sh",
            "timeout 5 curl",
            "timeout: failed to run command 'curl': No such file or directory\n127\n",
        ),
        ("busybox", "sh", "echo a | xargs curl", "xargs: curl: No such file or directory\n127\n"),
        ("busybox", "sh", "A=1 env B=2 curl", "env: can't execute 'curl': No such file or directory\n127\n"),
        ("busybox", "sh", "busybox curl", "curl: applet not found\n127\n"),
        ("busybox", "sh", "command -v curl || which curl", "1\n"),
        ("busybox", "sh", "type curl", "curl: not found\n127\n"),
        (
            "busybox",
            "sh",
            "busybox echo a; type wget; which wget; command -v echo",
            "a\nwget is /bin/wget\n/bin/wget\necho\n0\n",
        ),
        (
            "busybox",
            "sh",
            "test -x /bin/curl || echo none; chroot /host curl --version | head -c 4",
            "none\ncurl0\n",
        ),
        ("nginx", "sh", "command -v curl", "/bin/curl\n0\n"),
    ];
    for (image, shell, script, wanted) in absent {
        let (out, _) = told_in(image, &[shell, "-c", &format!("{script}; echo $?")]);
        assert_eq!(out, wanted, "{image}: {script}");
    }
    for words in [&["curl", "x"][..], &["/usr/bin/curl"], &["bash", "-c", "echo a"]] {
        let (image, container) = ("busybox", given("busybox", words, &[]));
        let played = play(&container.invocation(), &around(image), None).unwrap();
        let why = played.fault.map(|fault| fault.to_string()).unwrap_or_default();
        let wanted = if words[0].contains('/') {
            format!("exec: {:?}: stat {0}: no such file or directory", words[0])
        } else {
            format!("exec: {:?}: executable file not found in $PATH", words[0])
        };
        assert!(why.ends_with(&wanted) && played.end == Some((Duration::ZERO, 128)), "{why}");
    }
}

#[test]
fn what_a_script_installs_is_there_from_then_on() {
    let apk = "apk add --no-cache curl bind-tools >/dev/null; command -v curl dig; curl --version | head -c 4; \
               cp /usr/bin/curl /opt/own; /opt/own --version | head -c 4; apk del curl > /dev/null; curl";
    let told = told_in("alpine", &["sh", "-c", apk]);
    assert_eq!(told, ("/usr/bin/curl\n/usr/bin/dig\ncurlcurlsh: curl: not found\n".into(), Some((0, 127))));
    let apt = "apt-get update >/dev/null && apt-get install -y curl=8.* procps > /dev/null; which curl ps; \
               ls -l /usr/bin/curl | cut -c 1-10";
    let told = told_in("debian", &["bash", "-c", apt]);
    assert_eq!(told, ("/usr/bin/curl\n/usr/bin/ps\n-rwxr-xr-x\n".into(), Some((0, 0))));
    let container = given("alpine", &["sh", "-c", "apk add curl; echo $?; curl"], &[]);
    for (around, why, code) in [
        (Surroundings { user: 1000, ..around("alpine") }, "Permission denied", 99),
        (Surroundings { is_root_read_only: true, ..around("alpine") }, "Read-only file system", 99),
    ] {
        let played = play(&container.invocation(), &around, None).unwrap();
        let said: String = played.lines.iter().map(|line| line.text.clone() + "\n").collect();
        let wanted = format!(
            "ERROR: Unable to lock database: {why}\nERROR: Failed to open apk database: {why}\n{code}\nsh: curl: not found\n"
        );
        assert_eq!(said, wanted);
    }
    // A program of one's own stands before those of the image.
    let own = "printf '#!/bin/sh\\necho own $1\\n' > /usr/local/bin/wget; wget a; chmod +x /usr/local/bin/wget; wget b; which wget";
    let (out, _) = told_in("busybox", &["sh", "-c", own]);
    assert!(out.ends_with("own b\n/usr/local/bin/wget\n"), "{out}");
}

#[test]
fn what_no_time_can_be_told_by_is_no_panic() {
    assert_eq!(told("date '+%#z' >/dev/null; echo $?"), "0\n");
    let said = told("touch -d nonsense /f 2>&1; echo $?; ls /f 2>/dev/null");
    assert_eq!(said, "touch: invalid date 'nonsense'\n1\n");
}

#[test]
fn signals_that_nobody_heeds_end_no_job() {
    let script = "sleep 3 & kill -WINCH $!; kill -CHLD $!; kill -0 $!; wait $!; echo $?; sleep 9 & kill $!; wait $!; echo $?";
    assert_eq!(told(script), "0\n143\n");
    assert_eq!(told("id -n -u; id -u"), "root\n0\n");
    assert_eq!(told("RANDOM=18446744073709551615; head -c 2 /dev/urandom | wc -c"), "2\n");
}
