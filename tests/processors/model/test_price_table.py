"""Which price counts for a model, and what usage costs by it."""

import pytest

from processors.model import ModelCall, ModelPrice, PriceTable, TokenUsage

CHEAP, DEAR = ModelPrice(input=1, output=2), ModelPrice(input=10, output=20)


@pytest.mark.parametrize(
    ("prices", "model", "expected"),
    [
        ({"*": CHEAP, "small": DEAR}, "small", DEAR),
        ({"small": DEAR, "*": CHEAP}, "smaller", CHEAP),
        ({"small*": CHEAP, "small-4*": DEAR}, "small-4-mini", DEAR),
        ({"small-4*": DEAR, "small*": CHEAP}, "small-4-mini", DEAR),
        ({"*-mini": CHEAP, "small*": DEAR}, "small-mini", DEAR),
        ({"????l": CHEAP, "small": DEAR}, "smell", CHEAP),
        ({"a[1]*": CHEAP}, "a[1]-x", CHEAP),
        ({"a[1]*": CHEAP}, "a1", None),
        ({"Small": CHEAP}, "small", None),
        ({"small": CHEAP}, "small-2", None),
    ],
)
def test_the_most_specific_name_counts(
    prices: dict[str, ModelPrice], model: str, expected: ModelPrice | None
) -> None:
    table = PriceTable(prices)

    assert table.price(model) is expected
    assert table.price(model) is expected  # also when it is known


def test_parts_cost_what_they_do_and_without_a_price_of_their_own_as_the_rest() -> None:
    usage = TokenUsage(1_000_000, 100_000, 400_000, 100_000, 50_000)

    assert pytest.approx(1.2) == CHEAP.cost(usage)
    priced = ModelPrice(input=1, output=2, cached_input=0.1, cache_write=1.25)
    assert pytest.approx(0.5 + 0.04 + 0.125 + 0.2) == priced.cost(usage)


def test_parts_larger_than_the_whole_make_no_negative_cost() -> None:
    assert 0 <= ModelPrice(input=5, output=0, cached_input=0).cost(TokenUsage(1, 0, 9))


def test_a_failed_call_without_usage_costs_nothing() -> None:
    calls = [ModelCall(model="m", failed=True), ModelCall(model="m", usage=TokenUsage(1_000_000, 0))]

    assert 1 == PriceTable({"m": CHEAP}).cost(calls, None, ("m",))
