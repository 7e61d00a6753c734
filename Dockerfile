# syntax=docker/dockerfile:1
# Two stages: the first installs what the lock file pins, the second carries the result and nothing else.
FROM python:3.11-slim-bookworm AS build
WORKDIR /src
COPY requirements.lock requirements-dev.lock ./
RUN python -m venv /opt/tracegrade \
 && /opt/tracegrade/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements.lock
RUN python -m venv /opt/build \
 && /opt/build/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements-dev.lock
COPY pyproject.toml README.md LICENSE ./
COPY collector collector
COPY processors processors
COPY config config
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
 && /opt/tracegrade/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps /wheels/*.whl

FROM python:3.11-slim-bookworm
LABEL org.opencontainers.image.title="tracegrade" \
      org.opencontainers.image.description="Grades AI agents' tool use online from OpenTelemetry traces" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/tracegrade /opt/tracegrade
ENV PATH=/opt/tracegrade/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /etc/tracegrade
EXPOSE 4317 4318 9464
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=6s --start-period=10s CMD ["tracegrade", "health"]
ENTRYPOINT ["tracegrade"]
CMD ["run"]
