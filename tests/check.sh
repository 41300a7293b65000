#!/bin/sh
# The quick look before a commit: format, lints, the house rules, and the tests of what has changed since the last
# commit (of the last commit itself, when nothing has). No root, no network.
set -eu
cd "$(dirname "$0")/.."
cargo="${CARGO:-cargo}"

changed=$({ git diff --name-only HEAD; git ls-files --others --exclude-standard; } | sort -u)
if [ -z "$changed" ]; then
    changed=$(git show --name-only --format= HEAD)
fi

# src/apiserver/admission/always.rs is of the crate apiserver and its room admission, src/clock/lib.rs of the crate
# clock, src/cli/up.rs of the crate on top and its room cli.
crates=$(printf '%s\n' "$changed" | sed -n 's#^src/\([a-z_]*\)/.*\.rs$#\1#p; s#^src/\([a-z_]*\)\.rs$#\1#p' | sort -u)
rooms_of() {
    printf '%s\n' "$changed" | sed -n "s#^src/$1/\(.*\)\.rs\$#\1#p" |
        awk -F/ '$1 == "lib" { all = 1 } { print $1 "::" } END { if (all) print "ALL" }' | sort -u
}
# tests/it/jobs/ttl.rs and tests/it/jobs.rs belong to the module jobs, tests/cases/pods.yaml is played by cases, and
# examples/operator.rs run by examples.
modules=$(printf '%s\n' "$changed" |
    sed -n 's#^tests/it/\([a-z_]*\).*#\1::#p; s#^tests/\(cases\)/.*#\1::#p; s#^\(examples\)/.*#\1::#p' |
    grep -v -e '^main::' -e '^support::' | sort -u || true)

"$cargo" fmt --all --check
"$cargo" clippy --workspace --all-targets --all-features --quiet -- --deny warnings
for room in $crates; do
    if [ -f "src/$room/Cargo.toml" ]; then
        package="kubarium-$(printf %s "$room" | tr _ -)"
        rooms=$(rooms_of "$room")
        # What stands in lib.rs itself has no room that it could be asked for by.
        case $rooms in *ALL*) rooms= ;; esac
    else
        package=kubarium
        rooms="$room::"
    fi
    echo "tests beside the code of $package:" $rooms
    "$cargo" test --quiet --all-features --lib --package kubarium --package "$package" -- $rooms
done
if printf '%s\n' "$changed" | grep -q '^manifests/'; then
    echo "the tables of facts, and what makes them:"
    "$cargo" test --quiet --package kubarium-schemas
fi
echo "house rules, and the integration tests of what has changed:" tidy:: documents:: $modules
"$cargo" test --all-features --quiet --test it -- tidy:: documents:: $modules
