# mypy: ignore-errors
"""An agent under a real instrumentation, run in an environment of its own: `program.py EMITTER MODEL_URL`.

Its content goes to log records, over the stock exporters that the environment configures. What the model at
`MODEL_URL` requests is done by the tools below; one of them raises. It imports nothing of the project.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from opentelemetry import trace
from opentelemetry._logs import set_logger_provider
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

PROMPT = "What is the weather in Tokyo, compared with Kyoto, with a forecast?"
SPANS, RECORDS = TracerProvider(), LoggerProvider()
SPANS.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
RECORDS.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))


def get_temperature(city: str) -> str:
    """Temperature in a city, in celsius."""
    return json.dumps({"city": city, "temperature": {"Tokyo": 25.0, "Kyoto": 23.5}[city]})


def get_humidity(city: str) -> str:
    """Relative humidity in a city, in percent."""
    return json.dumps({"city": city, "humidity": 60})


def get_forecast(city: str, days: int) -> str:
    """Weather forecast of a city for some days."""
    raise RuntimeError(f"station of {city} is offline")


TOOLS: dict[str, Callable[..., str]] = {
    function.__name__: function for function in (get_temperature, get_humidity, get_forecast)
}


def call(name: str, arguments: dict[str, Any]) -> str:
    try:
        return TOOLS[name](**arguments)
    except RuntimeError as error:
        return f"Error: {error}"


def with_openai(url: str) -> None:
    """The loop that people write themselves."""
    from openai import OpenAI

    client = OpenAI(base_url=f"{url}/v1", api_key="none")
    messages: list[Any] = [{"role": "user", "content": PROMPT}]
    tools: list[Any] = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in TOOLS]
    while True:
        answer = client.chat.completions.create(model="scripted", messages=messages, tools=tools)
        message = answer.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return
        for request in message.tool_calls:
            content = call(request.function.name, json.loads(request.function.arguments))
            messages.append({"role": "tool", "tool_call_id": request.id, "content": content})


def with_anthropic(url: str) -> None:
    from anthropic import Anthropic

    client = Anthropic(base_url=url, api_key="none")
    messages: list[Any] = [{"role": "user", "content": PROMPT}]
    tools: list[Any] = [{"name": name, "input_schema": {"type": "object"}} for name in TOOLS]
    while True:
        answer = client.messages.create(model="scripted", max_tokens=99, messages=messages, tools=tools)
        messages.append({"role": "assistant", "content": [part.model_dump() for part in answer.content]})
        requests = [part for part in answer.content if part.type == "tool_use"]
        if not requests:
            return
        results = [
            {"type": "tool_result", "tool_use_id": request.id, "content": call(request.name, request.input)}
            for request in requests
        ]
        messages.append({"role": "user", "content": results})


def genai_openai(url: str) -> None:
    from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor

    OpenAIInstrumentor().instrument(tracer_provider=SPANS, logger_provider=RECORDS)
    with_openai(url)


def genai_anthropic(url: str) -> None:
    from opentelemetry.instrumentation.genai.anthropic import AnthropicInstrumentor

    AnthropicInstrumentor().instrument(tracer_provider=SPANS, logger_provider=RECORDS)
    with_anthropic(url)


def openai_v2(url: str) -> None:
    from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor

    OpenAIInstrumentor().instrument(tracer_provider=SPANS, logger_provider=RECORDS)
    with_openai(url)


def traceloop_openai(url: str) -> None:
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    OpenAIInstrumentor(use_legacy_attributes=False).instrument(tracer_provider=SPANS, logger_provider=RECORDS)
    with_openai(url)


def openlit(url: str) -> None:
    import openlit as package

    package.init(pricing_json=os.devnull)  # else it fetches a list of prices
    with_openai(url)


def genai_langchain(url: str) -> None:
    from langchain.agents import create_agent
    from langchain.agents.middleware import wrap_tool_call
    from langchain.messages import ToolMessage
    from langchain_openai import ChatOpenAI
    from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor

    LangChainInstrumentor().instrument(tracer_provider=SPANS, logger_provider=RECORDS)

    @wrap_tool_call
    def answer_errors(request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except RuntimeError as error:
            return ToolMessage(f"Error: {error}", tool_call_id=request.tool_call["id"])

    model = ChatOpenAI(model="scripted", base_url=f"{url}/v1", api_key="none")
    agent = create_agent(model, list(TOOLS.values()), name="weather_agent", middleware=[answer_errors])
    agent.invoke({"messages": [{"role": "user", "content": PROMPT}]})


def pydantic_ai(url: str) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.models.instrumented import InstrumentationSettings
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    settings = InstrumentationSettings(
        tracer_provider=SPANS, logger_provider=RECORDS, event_mode="logs", version=1
    )
    model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=f"{url}/v1", api_key="none"))
    agent = Agent(model, name="weather_agent", instrument=settings)

    @agent.tool_plain(name="get_temperature")
    def temperature(city: str) -> str:
        return call("get_temperature", {"city": city})

    @agent.tool_plain(name="get_humidity")
    def humidity(city: str) -> str:
        return call("get_humidity", {"city": city})

    @agent.tool_plain(name="get_forecast")
    def forecast(city: str, days: int) -> str:
        return call("get_forecast", {"city": city, "days": days})

    agent.run_sync(PROMPT)


EMITTERS = {
    function.__name__: function
    for function in (
        genai_openai, genai_anthropic, genai_langchain, openai_v2, openlit, pydantic_ai, traceloop_openai,
    )
}  # fmt: skip
HAS_AGENT_SPAN = ("genai_langchain", "pydantic_ai")


def main() -> None:
    emitter, url = sys.argv[1:]
    trace.set_tracer_provider(SPANS)
    set_logger_provider(RECORDS)
    if emitter in HAS_AGENT_SPAN:
        EMITTERS[emitter](url)
    else:
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "weather_agent"}
        with SPANS.get_tracer("program").start_as_current_span("invoke_agent", attributes=attributes):
            EMITTERS[emitter](url)
    RECORDS.shutdown()
    SPANS.shutdown()


main()
