#!/bin/sh
# Installs the program and what starts a cluster with the container. Run as root while the image is made; the options
# of devcontainer-feature.json are variables. DESTDIR is before every path, for who wants to look first.
set -eu

root="${DESTDIR:-}"
program="$root/usr/local/bin/kubarium"
share="$root/usr/local/share/kubarium"
beside="$(dirname "$0")/kubarium"

mkdir -p "$(dirname "$program")" "$share"
if [ -n "${URL:-}" ]; then
    curl --fail --silent --show-error --location --output "$program" "$URL"
elif [ -f "$beside" ]; then
    cp "$beside" "$program"
else
    echo "there is no program: give the option url, or put kubarium beside install.sh (make devcontainer)" >&2
    exit 1
fi
chmod 0755 "$program"

# The cluster is the user's, who starts the container; one that runs already goes on.
if [ "${START:-true}" = true ]; then
    start="kubarium get clusters | grep --quiet '^kubarium ' || exec kubarium up --detach ${FLAGS:---nodes 1}"
else
    start="exit 0"
fi
printf '#!/bin/sh\n%s\n' "$start" > "$share/start"
chmod 0755 "$share/start"
