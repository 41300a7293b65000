//! Bytes that are no letters go through pipes, files, variables and `exec` as they are.

use crate::byte_text;
use crate::exec::exec;
use crate::surroundings::Surroundings;

fn said(script: &str, input: &[u8]) -> Vec<u8> {
    let words = ["sh", "-c", script].map(str::to_owned);
    let ran = exec(&words, &Surroundings::default(), vec![], Some(input.to_vec())).unwrap();
    assert_eq!(ran.errors, "", "{script}");
    byte_text::bytes_of(&ran.out).into_owned()
}

#[test]
fn bytes_stay_what_they_are() {
    for (script, wanted) in [
        (r"printf '\x80\xff' | wc -c", &b"2\n"[..]),
        (r"printf '\377' | base64", b"/w==\n"),
        (r"printf '/w==' | base64 -d", b"\xff"),
        (r"printf '\303\251' | wc -mc", b"        1         2\n"),
        (r"x=$(printf '\303'); y=$(printf '\251'); echo $x$y", b"\xc3\xa9\n"),
        ("head -c 10 /dev/urandom | wc -c", b"10\n"),
        (
            "head -c 300 /dev/urandom > /f; cat /f /f | wc -c; cp /f /g; cmp /f /g && echo same",
            b"600\nsame\n",
        ),
        ("cat /dev/urandom | head -c 5000 | wc -c", b"5000\n"),
        ("dd if=/dev/urandom bs=100 count=3 2>/dev/null | gzip | zcat | wc -c", b"300\n"),
        (r"printf '\0\1\200' > /f; dd if=/f bs=1 skip=2 2>/dev/null", b"\x80"),
        (
            "echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa | base64 | wc -l",
            b"2\n",
        ),
        (
            "echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa | base64 -w0 | wc -l",
            b"0\n",
        ),
    ] {
        let heard = said(script, b"");
        assert_eq!(heard, wanted, "{script}: {}", String::from_utf8_lossy(&heard));
    }
    let every: Vec<u8> = (0..=255).collect();
    for script in ["cat", "tee /f", "cat > /f; cat < /f", "gzip | gunzip", "tar c /none 2>/dev/null; cat"] {
        let heard = said(script, &every);
        assert!(heard.ends_with(&every), "{script}");
    }
    let sum = b"40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880  -\n";
    assert_eq!(said("sha256sum", &every), sum);
}
