#!/bin/sh
# Build one image for `make images`: charts/image.sh SERVICE NAME ARCHIVE PART... where the parts are what it is made from.
# By `$CLUSTER build-image`, which takes no arguments for the Dockerfile, so that the service is written into a copy;
# by docker where there is no such program.
set -eu
service=$1 name=$2 archive=$3
shift 3
cd "$(dirname "$0")/.."
mkdir -p "$(dirname "$archive")"
if ! command -v "$CLUSTER" > /dev/null; then
    docker build --quiet --build-arg SERVICE="$service" --tag "$name" .
    exec docker save --output "$archive" "$name"
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/proto" "$folder/services" "$folder/operator"
git ls-files --cached --others --exclude-standard .ci/uv requirements.lock "$@" | grep -v /tests/ |
    while read -r file; do if test -f "$file"; then echo "$file"; fi; done |
    tar --create --files-from=- | tar --extract --directory="$folder"
sed "s/^ARG SERVICE\$/ARG SERVICE=$service/" Dockerfile > "$folder/Dockerfile"
"$CLUSTER" build-image "$name" "$folder" "$archive"
