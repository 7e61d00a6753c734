# syntax=docker/dockerfile:1
# Two stages: the first installs what the lock files pin, the second carries the result and nothing else.
#
# The base image is pinned by the digest of its multi-platform index, as many public projects pin this tag.
# To renew it: `docker buildx imagetools inspect python:3.11-slim-bookworm`, then change the tag and the digest in both stages.
FROM python:3.11.15-slim-bookworm@sha256:b18992999dbe963a45a8a4da40ac2b1975be1a776d939d098c647482bcad5cba AS build
WORKDIR /src
COPY requirements.lock requirements-build.lock ./
RUN --mount=type=cache,target=/var/cache/pip \
    export PIP_CACHE_DIR=/var/cache/pip \
 && python -m venv --without-pip /opt/tracegrade \
 && python -m venv /opt/build \
 && /opt/build/bin/pip install --disable-pip-version-check --require-hashes -r requirements-build.lock \
 && /opt/build/bin/pip --python /opt/tracegrade/bin/python install --disable-pip-version-check --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY collector collector
COPY processors processors
COPY config config
RUN /opt/build/bin/pip wheel --disable-pip-version-check --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
 && /opt/build/bin/pip --python /opt/tracegrade/bin/python install --disable-pip-version-check --no-cache-dir --no-deps --no-index /wheels/*.whl

FROM python:3.11.15-slim-bookworm@sha256:b18992999dbe963a45a8a4da40ac2b1975be1a776d939d098c647482bcad5cba
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="tracegrade" \
      org.opencontainers.image.description="Grades AI agents' tool use online from OpenTelemetry traces" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.source="https://github.com/tracegrade/tracegrade" \
      org.opencontainers.image.documentation="https://github.com/tracegrade/tracegrade/blob/main/docs/deployment.md" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/tracegrade /opt/tracegrade
COPY deploy/image/tracegrade.yaml /etc/tracegrade/tracegrade.yaml
# Where a journal goes. A named volume takes its owner over; nothing is written there without a volume.
RUN install -d -m 0700 -o 10001 -g 10001 /var/lib/tracegrade
ENV PATH=/opt/tracegrade/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
# A number, not a name: Kubernetes can only check `runAsNonRoot` against a number.
USER 10001:10001
WORKDIR /etc/tracegrade
EXPOSE 4317 4318 9464
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=6s --start-period=10s CMD ["tracegrade", "health", "--endpoint", "127.0.0.1:9464"]
ENTRYPOINT ["tracegrade"]
CMD ["run", "--config", "/etc/tracegrade/tracegrade.yaml"]
