//! What `awk` says.

use super::*;
use crate::exec::exec;
use crate::surroundings::Surroundings;

fn said(separator: &str, program: &str) -> (i32, String) {
    let script = format!("awk {separator} '{program}' /tmp/x");
    let words = ["sh".to_owned(), "-c".to_owned(), script];
    let files = [("/tmp/x", "one\na b  c\n3 x=4 5\n")]
        .map(|(path, text)| (path.to_owned(), Some(crate::file_system::File::new(text, 0o644))));
    let ran = exec(&words, &Surroundings::default(), files.to_vec(), None).expect("it is understood");
    (ran.end.unwrap().1, ran.out)
}

#[test]
fn fields_are_printed() {
    for (separator, program, wanted) in [
        ("", "NR==2 {print $1}", "a\n"),
        ("", "NR==2 { print $2, $1 }", "b a\n"),
        ("", "NR==2 {print $NF \"-\" NF}", "c-3\n"),
        ("", "NR==2", "a b  c\n"),
        ("", "NR==2 {print $0;}", "a b  c\n"),
        ("", "NR==2 {print $9}", "\n"),
        ("", "NR==2 {print NR}", "2\n"),
        ("-F b", "NR==2 {print $2}", "  c\n"),
        ("", "/a|3/ {print $1}", "a\n3\n"),
        ("", "BEGIN {print 1 + 2 * 3} END {print NR, $1}", "7\n3 3\n"),
        ("", "{n += NF} END {printf \"%d %.2f\\n\", n, n / NR}", "7 2.33\n"),
        ("", "NF > 1 && $1 !~ /^[0-9]/ {c++; print toupper($1) c}", "A1\n"),
        (
            "-v x=5 -F=",
            "$1 ~ \"x\" {print ($2 < x ? \"less\" : \"more\"), length($1), substr($1, 1, 3)}",
            "less 3 3 x\n",
        ),
        ("", "{if (NR == 2) {$2 = \"z\"; print} else next} END {exit 3}", "a z c\n"),
        ("", "NR > 1 {print $(NF - 1); exit}", "b\n"),
    ] {
        let code = if program.contains("exit 3") { 3 } else { 0 };
        assert_eq!(said(separator, program), (code, wanted.to_owned()), "{program}");
    }
}

#[test]
fn arrays_loops_and_functions() {
    for (program, wanted) in [
        ("{n[NF]++} END {for (k in n) print k, n[k]}", "1 1\n3 2\n"),
        (
            "{for (i = NF; i > 0; i--) printf \"%s%s\", $i, (i > 1 ? \" \" : \"\\n\")}",
            "one\nc b a\n5 x=4 3\n",
        ),
        ("BEGIN {while (i < 9) {i++; if (i == 2) continue; if (i == 4) break; print i}}", "1\n3\n"),
        ("BEGIN {do {i += 2} while (i < 5); print i}", "6\n"),
        ("!seen[$1]++ {c++} END {print c, length(seen), (\"a\" in seen), (\"q\" in seen)}", "3 3 1 0\n"),
        ("BEGIN {x[1, 2] = 3; print ((1, 2) in x), x[1, 2]; delete x; print length(x)}", "1 3\n0\n"),
        ("BEGIN {n = split(\"a:b:c\", p, \":\"); print n, p[3]; delete p[3]; print length(p)}", "3 c\n2\n"),
        ("BEGIN {n = split(\"a1b22c\", p, /[0-9]+/); print n, p[1] p[2] p[3]}", "3 abc\n"),
        ("NR == 2 {n = gsub(/[ab]/, \"<&>\"); print n, $0, $1}", "2 <a> <b>  c <a>\n"),
        (
            "BEGIN {s = \"aaa\"; sub(\"a\", \"b\", s); print s, match(s, /a+/), RSTART, RLENGTH}",
            "baa 2 2 2\n",
        ),
        ("function f(n) {return n < 2 ? 1 : n * f(n - 1)} BEGIN {print f(5)}", "120\n"),
        (
            "function g(a, k, l) {a[k] = 7; l[1] = 2; k = 9} BEGIN {k = 1; g(b, k); print b[1], k, length(l)}",
            "7 1 0\n",
        ),
        ("function h() {exit 3} BEGIN {h(); print \"no\"}", ""),
    ] {
        let code = if program.contains("exit 3") { 3 } else { 0 };
        assert_eq!(said("", program), (code, wanted.to_owned()), "{program}");
    }
}

#[test]
fn what_goes_on_for_ever_or_fills_everything_is_stopped() {
    for program in [
        "BEGIN {while (1) {}}",
        "BEGIN {for (;;) x = 1}",
        "BEGIN {for (;;) x[i++] = \"aaaaaaaaaaaaaaaa\"}",
        "BEGIN {x[1] = \"a\"; for (;;) x[1] = x[1] x[1]}",
        "function f(n) {return f(n + 1)} BEGIN {f(1)}",
    ] {
        let (code, said) = said("", program);
        assert!(code > 2, "{program}: {code} {said}");
    }
}

#[test]
fn what_is_not_played_is_not_understood() {
    for unknown in [
        "{print $1",
        "{x[$1}",
        "{for (i = 0; i < 3) print i}",
        "{print f(1)}",
        "{getline x}",
        "{print \"a}",
        "function f( {}",
        "{print é}",
        "{print | \"sort\"}",
        &format!("{{print 1{}}}", " + 1".repeat(5000)),
    ] {
        assert!(syntax::read(unknown).is_none(), "{unknown}");
    }
    for deep in ["(".repeat(5000), "-".repeat(5000), "!".repeat(5000), "$".repeat(5000), "{".repeat(5000)] {
        assert!(syntax::read(&format!("{{print {deep}1}}")).is_none());
    }
}
