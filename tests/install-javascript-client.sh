#!/bin/sh
# Makes sure that there is a Node.js with npm's @kubernetes/client-node, in target/javascript-client. Fails when there cannot be.
set -eu

cd "$(dirname "$0")/.."
folder=target/javascript-client
wanted="@kubernetes/client-node@1.4.0 axe-core@4.14.1"
if ! command -v node >/dev/null 2>&1 || ! command -v npm >/dev/null 2>&1; then
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "node and npm are not on PATH and this is no Debian: install Node.js 18 or later and run again" >&2
        exit 1
    fi
    sudo=""
    if [ "$(id -u)" -ne 0 ]; then
        sudo="sudo"
    fi
    echo "node or npm is missing: installing nodejs and npm${sudo:+ with sudo} (apt-get install)"
    $sudo apt-get update --quiet --quiet
    $sudo apt-get install --quiet --quiet --yes --no-install-recommends nodejs npm
fi
if [ "$(cat "$folder/wanted" 2>/dev/null)" = "$wanted" ]; then
    exit 0
fi
echo "installing npm's $wanted into $folder"
rm -rf "$folder"
mkdir -p "$folder"
# Each is a word.
# shellcheck disable=SC2086
npm install --prefix "$folder" --silent --no-audit --no-fund --no-save $wanted
echo "$wanted" > "$folder/wanted"
