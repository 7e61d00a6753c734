#!/usr/bin/env bash
# opentelemetry-instrumentation-openai-v2 2.4b0 accepts any opentelemetry-util-genai from 0.4b0 on, so that pip
# installs 1.3b0 beside it, which no longer has the module that the instrumentation imports: it installs without a
# conflict and cannot be imported. With opentelemetry-util-genai 1.1b0 it works.
#
# Observed: `pip check` has no complaint with 1.3b0 and the import fails; with 1.1b0 it succeeds. Fails if that is
# no longer so.
set -euo pipefail

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
for version in 1.3b0 1.1b0; do
  "$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    opentelemetry-instrumentation-openai-v2==2.4b0 opentelemetry-util-genai==$version openai==2.54.0 httpx==0.28.1 \
    opentelemetry-sdk==1.45.2
  "$folder/venv/bin/pip" --disable-pip-version-check check
  observed="$("$folder/venv/bin/python" -c 'import opentelemetry.instrumentation.openai_v2 as module; print("imported")' 2>&1 | tail -1 || true)"
  echo "opentelemetry-util-genai $version: $observed"
  case "$version" in
    1.3b0) [[ $observed == "ModuleNotFoundError: No module named 'opentelemetry.util.genai.instruments'" ]] ;;
    1.1b0) [[ $observed == imported ]] ;;
  esac || { echo "This is not what was observed." >&2; exit 1; }
done
