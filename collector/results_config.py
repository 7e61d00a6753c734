"""`results`: in which form verdicts leave, and whether spans wait for them."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from processors.annotation import ContentRules
from processors.documents import StrictModel
from processors.texts.linear_regex import compile_linear

_MAX_PATTERNS = 100
_DEFAULT_EMIT = {"hold": ("span_event",), "stream": ("log",), "verdicts_only": ("log",)}


class ResultsConfig(StrictModel):
    """How verdicts travel."""

    mode: Literal["hold", "stream", "verdicts_only"] = "hold"
    """hold: spans wait for the verdict, so that events ride on them. stream: spans are forwarded as they
    come, verdicts follow. verdicts_only: no span is forwarded."""
    emit: tuple[Literal["span_event", "log", "span"], ...] = Field(default=("span_event",), min_length=1)
    """span_event: events on the agents' spans, where these are held. log: OTLP log records. span: a small
    span for each graded run. Without spans that wait, the default is log."""
    annotations: tuple[Literal["openinference"], ...] = ()
    """openinference: evaluation attributes in addition to the events, on the agents' spans where these are
    held, else on the spans of the verdicts."""

    content: Literal["full", "none"] = "full"
    """What verdicts, in every form, show of messages, tool arguments and tool results. none: neither content
    nor explanations. Spans that are forwarded keep their content."""
    redact: tuple[str, ...] = Field(
        default=(), max_length=_MAX_PATTERNS, examples=[[r"[\w.+-]+@[\w-]+\.[\w.-]+"]]
    )
    """Regular expressions (RE2). What matches is hidden in every form of a verdict, whatever `content` is;
    spans that are forwarded stay as they are."""

    @field_validator("redact")
    @classmethod
    def _check_patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for place, written in enumerate(patterns):
            try:
                pattern = compile_linear(written)
            except ValueError as error:
                raise ValueError(f"[{place}]: {error}") from None
            if pattern.search("") is not None:
                raise ValueError(f"[{place}]: the pattern fits the empty text: expected what is to be hidden")
        return patterns

    @model_validator(mode="before")
    @classmethod
    def _fill_emit(cls, data: object) -> object:
        """The default form of a verdict depends on the mode."""
        if isinstance(data, Mapping) and "emit" not in data:
            mode = data.get("mode")
            if isinstance(mode, str) and mode in _DEFAULT_EMIT:
                return {**data, "emit": _DEFAULT_EMIT[mode]}
        return data

    @model_validator(mode="after")
    def _check_forms(self) -> Self:
        if len(set(self.emit)) < len(self.emit):
            raise ValueError("emit: expected each form once")
        if self.mode != "hold":
            if "span_event" in self.emit:
                raise ValueError(
                    f'emit: "span_event" needs mode "hold": in "{self.mode}" no span waits for its verdict; '
                    'expected "log", "span" or both'
                )
            if self.annotations and "span" not in self.emit:
                raise ValueError(
                    f'annotations: in "{self.mode}" they are written on the spans of the verdicts; '
                    'expected "span" in emit'
                )
        return self

    @property
    def holds_spans(self) -> bool:
        """Whether spans leave with their verdict, so that something can be written on them."""
        return self.mode == "hold"

    def content_rules(self) -> ContentRules:
        """What may be shown of a graded run."""
        return ContentRules(self.content, self.redact)


UNWRITTEN = ResultsConfig.model_construct(emit=())
"""For verdicts that are looked at and leave in no form."""
