#!/bin/sh
# Fails when the protocol breaks what the last commit of main promises to programs already out there.
set -eu
cd "$(dirname "$0")/.."
for base in origin/main main HEAD; do
    if git rev-parse --quiet --verify "$base^{commit}" > /dev/null; then break; fi
    base=
done
if [ -z "$base" ] || ! git cat-file -e "$base:proto/buf.yaml" 2> /dev/null; then
    echo "proto: no earlier version in the history, nothing to compare with"
    exit 0
fi
earlier=$(mktemp -d)
trap 'rm -rf "$earlier"' EXIT
git archive "$base" proto | tar -x -C "$earlier"
buf breaking proto --against "$earlier/proto"
