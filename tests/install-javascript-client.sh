#!/bin/sh
# Makes sure that there is a Node.js with npm's @kubernetes/client-node, in target/javascript-client. Fails when there cannot be.
set -eu

cd "$(dirname "$0")/.."
folder=target/javascript-client
wanted="@kubernetes/client-node@1.4.0 axe-core@4.14.1"
# 18 or later.
sh tests/install-debian.sh "Node.js with npm" "command -v node && command -v npm" nodejs npm
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
