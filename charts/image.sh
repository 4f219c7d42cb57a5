#!/bin/sh
# Build one image for `make images`: charts/image.sh SERVICE NAME ARCHIVE. With $CLUSTER's build-image, which takes no
# arguments for the Dockerfile, so that the service is written into a copy; with docker where that is not there.
set -eu
service=$1 name=$2 archive=$3
cd "$(dirname "$0")/.."
mkdir -p "$(dirname "$archive")"
if ! command -v "${CLUSTER:-cluster}" > /dev/null; then
    docker build --quiet --build-arg SERVICE="$service" --tag "$name" .
    exec docker save --output "$archive" "$name"
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
git ls-files --cached --others --exclude-standard .ci/uv requirements.lock proto services operator |
    grep -v /tests/ | while read -r file; do if test -f "$file"; then echo "$file"; fi; done |
    tar --create --files-from=- | tar --extract --directory="$folder"
sed "s/^ARG SERVICE\$/ARG SERVICE=$service/" Dockerfile > "$folder/Dockerfile"
"${CLUSTER:-cluster}" build-image "$name" "$folder" "$archive"
