//! Files that are copied, moved and linked.

use super::play;
use super::scripts::told_in;
use crate::file_system::MountedVolume;
use crate::given::given;
use crate::surroundings::{Surroundings, kept_mount};

#[track_caller]
fn says(cases: &[(&str, &str)]) {
    for (script, said) in cases {
        assert_eq!(told_in("busybox", &["sh", "-c", script]).0, *said, "{script}");
    }
}

#[test]
fn files_and_folders_are_copied_and_moved() {
    says(&[
        ("cd /data; echo a > x; chmod 750 x; cp x y; cat y; stat -c %a y", "a\n750\n"),
        (
            "cd /data; mkdir d; echo a > x; cp x d; mv x d/y; ls d; ls x",
            "x\ny\nls: x: No such file or directory\n",
        ),
        (
            "cd /data; mkdir -p s/t; echo a > s/t/f; cp s z; cp -r s z; find z",
            "cp: omitting directory 's'\nz\nz/t\nz/t/f\n",
        ),
        ("cd /data; mkdir -p s z; echo a > s/f; cp -a s z; cp -r s/. z; find z -type f", "z/f\nz/s/f\n"),
        (
            "cd /data; mkdir -p s/t; echo a > s/t/f; mv s z; find . -type f; cp -r z z/t",
            "./z/t/f\ncp: recursion detected, omitting directory 'z/t/z'\n",
        ),
        (
            "cd /data; echo a > x; echo b > y; cp -n x y; cat y; cp x y none",
            "b\ncp: target 'none': No such file or directory\n",
        ),
        (
            "cd /data; echo a > x; install -m 0700 x y; stat -c %a y; install -d q/r; test -d q/r && echo there",
            "700\nthere\n",
        ),
        ("cp /data/none /data/x; echo $?", "cp: can't stat '/data/none': No such file or directory\n1\n"),
        (
            "mkdir /data/a; mkdir /data/a; mkdir -p /data/a/b; mkdir -m 700 /data/m; stat -c %a /data/m",
            "mkdir: can't create directory '/data/a': File exists\n700\n",
        ),
        (
            "cd /data; echo a > x; mv x x; mv x .; cat x",
            "mv: 'x' and 'x' are the same file\nmv: 'x' and './x' are the same file\na\n",
        ),
        (
            "cd /data; mkdir d; echo a > d/x; mv d d/sub; cat d/x",
            "mv: recursion detected, omitting directory 'd/sub'\na\n",
        ),
        (
            "cd /data; mkdir -p d/sub; echo a > d/x; mv d d/sub; cat d/x",
            "mv: recursion detected, omitting directory 'd/sub/d'\na\n",
        ),
        (
            "cd /data; exec 3>log; cd /; echo a >&3; cat /data/log; cat /log",
            "a\ncat: can't open '/log': No such file or directory\n",
        ),
    ]);
}

#[test]
fn what_cannot_be_moved_stays() {
    let read_only = |path: &str| MountedVolume { is_read_only: true, ..kept_mount(path) };
    let around =
        Surroundings { mounts: vec![kept_mount("/data"), read_only("/fixed")], ..Surroundings::default() };
    let script = "echo a > /data/x; mv /data/x /fixed/x; cat /data/x; mv /fixed/y /data; echo $?";
    let container = given("busybox", &["sh", "-c", script], &[]);
    let played = play(&container.invocation(), &around, None).expect("it is played");
    let said: Vec<&str> = played.lines.iter().map(|line| line.text.as_str()).collect();
    let words = "Read-only file system";
    let wanted = [
        format!("mv: can't create '/fixed/x': {words}"),
        "a".into(),
        format!("mv: can't rename '/fixed/y': {words}"),
        "1".into(),
    ];
    assert_eq!(said, wanted);
}

#[test]
fn links_are_no_longer_than_paths() {
    let script = "cd /data; x=aaaaaaaaaaaaaaaa; for i in 1 2 3 4 5 6 7 8 9; do x=$x$x; done; ln -s l/$x l; [ -L l ] || echo none";
    assert_eq!(told_in("busybox", &["sh", "-c", script]).0, "ln: l: File name too long\nnone\n");
}

#[test]
fn links_lead_to_what_they_name() {
    says(&[
        (
            "cd /data; echo a > x; ln -s x l; cat l; echo b > l; cat x; readlink l; readlink -f l",
            "a\nb\nx\n/data/x\n",
        ),
        ("cd /data; mkdir d; ln -s d l; echo a > l/f; cat d/f; ls l; readlink -f l/f", "a\nf\n/data/d/f\n"),
        (
            "cd /data; ln -s none l; cat l; test -e l || echo gone; test -L l && echo link; rm l; test -L l || echo away",
            "cat: can't open 'l': No such file or directory\ngone\nlink\naway\n",
        ),
        (
            "cd /data; ln -s b a; ln -s a b; cat a; echo x > a",
            "cat: can't open 'a': No such file or directory\n/bin/sh: can't create a: Too many levels of symbolic links\n",
        ),
        (
            "cd /data; echo 1 > v1; echo 2 > v2; ln -s v1 now; ln -s v2 now; ln -sfn v2 now; cat now",
            "ln: now: File exists\n2\n",
        ),
        (
            "cd /data; echo a > x; ln -s x l; ls -l l; stat -c '%F %N' l; find . -type l",
            "lrwxrwxrwx    1 root     root             1 Jan  1 00:00 l -> x\nsymbolic link 'l' -> 'x'\n./l\n",
        ),
        ("cd /data; echo a > x; ln x y; cat y; ln none z", "a\nln: none: No such file or directory\n"),
        ("cd /data; echo a > x; ln -s x l; cp l c; cp -a l k; rm x; cat c; readlink k", "a\nx\n"),
        ("cd /data; mkdir s; ln -s ../x s/l; tar cf a.tar s; rm -r s; tar xf a.tar; readlink s/l", "../x\n"),
        (
            "cd /data; mkdir d e; ln -s d l; echo b > e/f; tar cf a.tar -C e f; tar xf a.tar -C l; cat d/f; ls l/",
            "b\nf\n",
        ),
        (
            "cd /data; mkdir d; ln -s d l; echo x > d/f; gzip l/f; ls d; grep -r x l/../d | wc -l; find l/ -type f",
            "f.gz\n0\nl/f.gz\n",
        ),
        ("readlink /data; echo $?", "1\n"),
    ]);
}

#[test]
fn what_an_image_brings_is_copied_out_of_it() {
    let script = "/bin/cp /usr/local/bin/app /data/app && /bin/ln -sf /data/app /data/tool && stat -c '%F %a' -L /data/tool";
    let told = |image: &str, script: &str| told_in(image, &["sh", "-c", script]);
    let (said, end) = told("quay.io/argoproj/argocd", script);
    assert_eq!((said.as_str(), end), ("regular empty file 755\n", Some((0, 0))));
    let of_image =
        "cp -r /plugins/. /data/ && cp /opt/*.jar /data && cp -r /app /data/app && test -d /data/app";
    assert_eq!(told("example/agent:2", of_image), (String::new(), Some((0, 0))));
    // Of what is in a volume, of what was taken away, and of an image that is known, it is known.
    for (image, script, said) in [
        ("example/agent:2", "cp /data/x /data/y", "cp: can't stat '/data/x': No such file or directory\n"),
        (
            "example/agent:2",
            "touch /opt/x; rm /opt/x; cp /opt/x /data/y",
            "cp: can't stat '/opt/x': No such file or directory\n",
        ),
        ("busybox", "cp /opt/app /data/y", "cp: can't stat '/opt/app': No such file or directory\n"),
    ] {
        assert_eq!(told(image, script).0, said, "{image} {script}");
    }
}
