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

# src/apiserver/admission/always.rs is a file of the room apiserver::admission, src/clock.rs of the room clock.
rooms=$(printf '%s\n' "$changed" | sed -n 's#^src/\(.*\)\.rs$#\1#p' |
    awk -F/ '{ print NF > 2 ? $1 "::" $2 "::" : $1 "::" }' | sort -u)
# tests/it/jobs/ttl.rs and tests/it/jobs.rs belong to the module jobs.
modules=$(printf '%s\n' "$changed" | sed -n 's#^tests/it/\([a-z_]*\).*#\1::#p' |
    grep -v -e '^main::' -e '^support::' | sort -u || true)

"$cargo" fmt --check
"$cargo" clippy --all-targets --all-features --quiet -- --deny warnings
if [ -n "$rooms" ]; then
    echo "tests beside the code of:" $rooms
    "$cargo" test --all-features --quiet --lib -- $rooms
fi
echo "house rules, and the integration tests of what has changed:" tidy:: documents:: $modules
"$cargo" test --all-features --quiet --test it -- tidy:: documents:: $modules
