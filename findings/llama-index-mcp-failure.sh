#!/usr/bin/env bash
# llama-index-tools-mcp 0.4.8 with llama-index-core 0.14.25 and mcp 1.30.0: a tool of an MCP server that fails
# (isError of its result is true) is a success to the framework. ToolOutput.is_error is false, and what the model gets
# is Python's printed form of the protocol's object, `meta=None content=[TextContent(...)] ... isError=True`, not the
# text of the error. Where OpenInference meets it, its span of the call has status OK and its output.value says
# "is_error":false next to "isError":true.
#
# Observed: status OK, is_error false, isError true, the printed object as the content. Fails if that is no longer so.
set -euo pipefail

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  llama-index-core==0.14.25 llama-index-tools-mcp==0.4.8 mcp==1.30.0 \
  openinference-instrumentation-llama-index==4.6.1 opentelemetry-sdk==1.45.2

cat > "$folder/server.py" <<'PYTHON'
from mcp.server.fastmcp import FastMCP

server = FastMCP("files")


@server.tool()
def delete_file(path: str) -> str:
    """Delete a file."""
    raise ValueError("the disk is read-only")


server.run()
PYTHON
cat > "$folder/run.py" <<'PYTHON'
"""One call of a tool that fails; prints how its span reports that."""

import asyncio
import json
import pathlib
import sys

from llama_index.core.tools import ToolOutput
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

spans, tracers = InMemorySpanExporter(), TracerProvider()
tracers.add_span_processor(SimpleSpanProcessor(spans))
LlamaIndexInstrumentor().instrument(tracer_provider=tracers)


async def call() -> ToolOutput:
    client = BasicMCPClient(sys.executable, args=[str(pathlib.Path(__file__).with_name("server.py"))])
    (tool,) = await McpToolSpec(client=client).to_tool_list_async()
    return await tool.acall(path="a.txt")


returned = asyncio.run(call())
(span,) = [span for span in spans.get_finished_spans() if span.attributes.get("tool.name") == "delete_file"]
written = json.loads(span.attributes["output.value"])
print(
    span.status.status_code.name, returned.is_error, written["is_error"], written["raw_output"]["isError"],
    returned.content.startswith("meta=None content=[TextContent("),
)
PYTHON

observed="$("$folder/venv/bin/python" "$folder/run.py" 2>/dev/null | tail -1)"
echo "$observed"
[[ $observed == "OK False False True True" ]] || {
  echo "This is not what was observed." >&2
  exit 1
}
