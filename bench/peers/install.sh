#!/bin/sh
# Fills .peers/: a throw-away virtual environment with the peers of peers.txt, and Redis from this machine or from
# Debian's packages, unpacked there and not installed. What can't be had is left out, and said so.
set -eu
cd "$(dirname "$0")/../.."
mkdir -p .peers
missing=0
loud() {
    missing=$((missing + 1))
    echo "*** LEFT OUT of the rows about other products: $1" >&2
}

if ! cmp -s bench/peers/peers.txt .peers/installed.txt; then
    rm -f .peers/installed.txt
    if { test -x .peers/venv/bin/python || python -m venv --without-pip .peers/venv; } \
        && sh .ci/uv pip install --quiet --python .peers/venv/bin/python -r bench/peers/peers.txt; then
        cp bench/peers/peers.txt .peers/installed.txt
    else
        loud "the three from PyPI, which can't be had: is there a network?"
    fi
fi

if ! cmp -s bench/peers/vectors.txt .peers/vectors.txt; then
    rm -f .peers/vectors.txt
    if { test -x .peers/vectors/bin/python || python -m venv --without-pip .peers/vectors; } \
        && sh .ci/uv pip install --quiet --python .peers/vectors/bin/python -r bench/peers/vectors.txt; then
        cp bench/peers/vectors.txt .peers/vectors.txt
    else
        loud "the stores of vectors from PyPI, which can't be had"
    fi
fi

if ! test -x .peers/redis/usr/bin/redis-server && ! command -v redis-server > /dev/null; then
    rm -rf .peers/redis .peers/deb
    mkdir -p .peers/deb
    if (cd .peers/deb && apt-get download redis-server redis-tools liblzf1 libjemalloc2) > .peers/redis.log 2>&1 \
        && for package in .peers/deb/*.deb; do dpkg-deb -x "$package" .peers/redis || exit 1; done; then
        :
    else
        rm -rf .peers/redis
        loud "Redis: no redis-server here, and Debian's packages can't be had (see .peers/redis.log)"
    fi
fi
test "$missing" -lt 3
