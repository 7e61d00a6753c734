"""What models cost, as the service file writes it. None is built in: they change, and are negotiated."""

from collections.abc import Mapping
from typing import Annotated, TypeAlias

from pydantic import Field, StringConstraints

from processors.documents import StrictModel
from processors.model import ModelPrice, PriceTable

_Price: TypeAlias = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]


class ModelPriceConfig(StrictModel):
    """What a million tokens cost, in a currency of your choice: one for all models."""

    input: _Price = Field(description="For a million tokens that the model was given.")
    output: _Price = Field(description="For a million tokens that the model made, reasoning included.")
    cached_input: _Price | None = Field(
        default=None,
        description="For a million tokens of input that came out of a cache. Left out: as other input.",
    )
    cache_write: _Price | None = Field(
        default=None,
        description="For a million tokens of input that went into a cache. Left out: as other input.",
    )


ModelPricesConfig: TypeAlias = Mapping[
    Annotated[str, StringConstraints(min_length=1, max_length=200)], ModelPriceConfig
]
"""Prices by the name of a model, in which `*` stands for any characters and `?` for one."""


def price_table(prices: ModelPricesConfig) -> PriceTable | None:
    """The table of `prices`; None where there are none."""
    if not prices:
        return None
    return PriceTable({name: ModelPrice(**price.model_dump()) for name, price in prices.items()})
