"""How agents are graded: `processors.evaluation` of the service file."""

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StringConstraints, field_validator

from collector.config_fields import BUILTIN, CriteriaSources, Section
from collector.container import usable_cores
from collector.conversations import ConversationsConfig
from collector.workers.config import WorkersConfig
from processors.carriers import discover_dialects
from processors.documents import StrictModel
from processors.model import ModelPrice, PriceTable
from processors.shapes import Dialect, DialectMapping

_Price: TypeAlias = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]


class ModelPriceConfig(StrictModel):
    """What a million tokens cost, in a currency of your choice: one for all models."""

    input: _Price
    """Per million input tokens."""
    output: _Price
    """Per million output tokens, reasoning included."""
    cached_input: _Price | None = None
    """Per million input tokens read from a cache. Default: the price of other input."""
    cache_write: _Price | None = None
    """Per million input tokens written to a cache. Default: the price of other input."""


ModelPricesConfig: TypeAlias = Mapping[
    Annotated[str, StringConstraints(min_length=1, max_length=200)], ModelPriceConfig
]
"""Prices by the name of a model, in which `*` stands for any characters and `?` for one."""


class EvaluationConfig(WorkersConfig):
    """How agents are graded."""

    criteria: CriteriaSources = Field(default=(BUILTIN,), examples=[[BUILTIN, "criteria/*.yaml"]])
    """Criteria files, folders of them or globs, and builtin: the checks that need no reference, for every
    agent. Files can change and switch off each of them."""
    processes: Annotated[int, Field(ge=0, le=64)] | Literal["auto"] = 0
    """Number of processes that grade finished traces. 0: the receiving process grades; auto: one fewer than
    the cores that it may use, CPU limits included. See docs/deployment.md."""
    dialects: tuple[DialectMapping, ...] = ()
    """Telemetry conventions of your own. All known frameworks are read without any of these."""
    model_prices: ModelPricesConfig = Field(
        default_factory=dict, examples=[{"small-model*": {"input": 0.5, "output": 1.5, "cached_input": 0.25}}]
    )
    """Prices per million tokens by model name (`*` and `?` allowed). An exact name takes precedence, then the
    pattern with more characters, then the later one. Without prices no run has a cost. Read at startup."""
    conversations: Section[ConversationsConfig] = ConversationsConfig()

    def own_dialects(self) -> list[Dialect]:
        """The telemetry conventions that the file describes."""
        return [mapping.dialect() for mapping in self.dialects]

    def price_table(self) -> PriceTable | None:
        """What models cost; None where the file does not specify it."""
        if not self.model_prices:
            return None
        return PriceTable(
            {name: ModelPrice(**price.model_dump()) for name, price in self.model_prices.items()}
        )

    @property
    def grading_processes(self) -> int:
        """How many processes grade in addition to the one that receives."""
        if self.processes == "auto":
            return usable_cores() - 1
        return self.processes

    @field_validator("dialects")
    @classmethod
    def _check_names(cls, dialects: tuple[DialectMapping, ...]) -> tuple[DialectMapping, ...]:
        taken = {dialect.name for dialect in discover_dialects()}
        for mapping in dialects:
            if mapping.name in taken:
                raise ValueError(f'two dialects are called "{mapping.name}": expected a name of its own')
            taken.add(mapping.name)
        return dialects
