#!/usr/bin/env bash
# The steps of the action. RUNNER_TEMP, GITHUB_* and the inputs come from who calls it.
set -euo pipefail

bin="$RUNNER_TEMP/kubarium-program/bin"

# Builds the kubarium of this checkout, unless the cache has it.
install() {
    if [ ! -x "$bin/kubarium" ]; then
        source=$(cd "$GITHUB_ACTION_PATH/../../.." && pwd)
        cargo install --path "$source" --locked --profile "$PROFILE" --root "$RUNNER_TEMP/kubarium-program"
    fi
    echo "$bin" >> "$GITHUB_PATH"
}

# With a command: a cluster for it alone, and what is left of it when it fails. Without: one for the steps that follow.
run() {
    export PATH="$bin:$PATH"
    # Flags are words, as in a shell.
    eval "flags=($FLAGS)"
    if [ -n "$COMMAND" ]; then
        exec kubarium run --keep "$RUNNER_TEMP/kubarium-left" ${flags[@]+"${flags[@]}"} -- bash -eo pipefail -c "$COMMAND"
    fi
    kubeconfig="$RUNNER_TEMP/kubeconfig"
    kubarium up --detach --kubeconfig "$kubeconfig" ${flags[@]+"${flags[@]}"}
    echo "KUBECONFIG=$kubeconfig" >> "$GITHUB_ENV"
    echo "kubeconfig=$kubeconfig" >> "$GITHUB_OUTPUT"
}

"$1"
