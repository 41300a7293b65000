#!/bin/sh
# What a newcomer waits for, measured from nothing: a clone and an empty cargo cache until pods run, and a crate of
# one test that has kubarium as a dev-dependency. Takes minutes and fetches the dependencies; nothing else may run.
set -eu
cd "$(dirname "$0")/.."
tree=$(pwd)
place=$(mktemp -d)
cluster=
trap 'test -z "$cluster" || kill "$cluster" 2> /dev/null || true; wait; rm -rf "$place"' EXIT
trap 'exit 130' INT TERM

# Rust itself is there; what it fetched and built before is not.
export RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}"
export CARGO_HOME="$place/cargo" HOME="$place/home"
export KUBECONFIG="$place/kubeconfig" KUBARIUM_STATE_DIR="$place/state"
unset CARGO_TARGET_DIR RUSTC_WRAPPER
mkdir -p "$CARGO_HOME" "$HOME"

failed=0
row() {
    verdict=ok
    [ "$2" -le "$3" ] || { verdict=OVER; failed=1; }
    printf '%-62s %6s %-3s %6s  %s\n' "$1" "$2" "$4" "$3" "$verdict"
}

begun=$(date +%s)
git clone --quiet "$tree" "$place/kubarium"
make --silent -C "$place/kubarium" run > "$place/run" 2>&1 &
cluster=$!
until kubectl get pods --all-namespaces 2> /dev/null | grep -q ' Running '; do
    kill -0 "$cluster" 2> /dev/null || { cat "$place/run" >&2; exit 1; }
    sleep 0.5
done
clone_to_pods=$(($(date +%s) - begun))
pkill -INT -P "$cluster" 2> /dev/null || true
wait "$cluster" 2> /dev/null || true
cluster=

mkdir -p "$place/user/src"
cat > "$place/user/Cargo.toml" << EOF
[package]
name = "user"
version = "0.1.0"
edition = "2024"

[dev-dependencies]
kubarium = { path = "$place/kubarium" }
tokio = { version = "1", features = ["macros", "rt-multi-thread"] }
EOF
cat > "$place/user/src/lib.rs" << 'EOF'
#[cfg(test)]
mod tests {
    use std::time::Instant;

    #[tokio::test(flavor = "multi_thread")]
    async fn starts() {
        let mut times = Vec::new();
        for _ in 0..9 {
            let begun = Instant::now();
            let _cluster = kubarium::Cluster::start(kubarium::Config::default()).await.unwrap();
            times.push(begun.elapsed().as_millis());
        }
        times.sort_unstable();
        println!("median {} ms", times[4]);
    }
}
EOF
rm -rf "$CARGO_HOME"
mkdir -p "$CARGO_HOME"
begun=$(date +%s)
(cd "$place/user" && cargo test --quiet -- --nocapture > "$place/test" 2>&1) || { cat "$place/test" >&2; exit 1; }
dependency=$(($(date +%s) - begun))
start=$(sed -n 's/^median \([0-9]*\) ms$/\1/p' "$place/test")

row "clone to running pods, nothing cached (make run)" "$clone_to_pods" 300 s
row "cold cargo test of a crate with kubarium as dev-dependency" "$dependency" 200 s
row "Cluster::start in that debug build, median of 9" "$start" 30 ms
exit "$failed"
