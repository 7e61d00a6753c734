"""Small charts as SVG, without script: the content security policy needs no exception."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from collector.store import Counts

_WIDTH, _HEIGHT = 140, 26
_BARS = 28


def run_bars(hours: Mapping[int, Counts], first_hour: int, last_hour: int) -> Markup:
    """Runs over time as bars; failed and errored runs are the red part at the bottom."""
    buckets = _bucketed(hours, first_hour, last_hour)
    most = max((bucket.count for bucket in buckets), default=0) or 1
    step = _WIDTH / len(buckets)
    shapes = []
    for index, bucket in enumerate(buckets):
        if not bucket.count:
            continue
        height = max((_HEIGHT - 1) * bucket.count / most, 2)
        failed = bucket.outcomes.get("fail", 0) + bucket.outcomes.get("error", 0)
        red = max(height * failed / bucket.count, 1.5) if failed else 0
        place = f'x="{index * step:.1f}" width="{step - 1:.1f}"'
        shapes.append(f'<rect class="runs" {place} y="{_HEIGHT - height:.1f}" height="{height - red:.1f}"/>')
        if red:
            shapes.append(f'<rect class="failed" {place} y="{_HEIGHT - red:.1f}" height="{red:.1f}"/>')
    return _svg(shapes, f"{sum(bucket.count for bucket in buckets)} runs over time")


def score_line(hours: Mapping[int, Counts], first_hour: int, last_hour: int) -> Markup:
    """The mean score over time as a line between 0 and 1; a gap where nothing was scored."""
    step = _WIDTH / _BARS
    points: list[list[str]] = [[]]
    for index, bucket in enumerate(_bucketed(hours, first_hour, last_hour)):
        score = bucket.mean_score
        if score is None:
            if points[-1]:
                points.append([])
            continue
        height = 2 + (_HEIGHT - 4) * (1 - min(max(score, 0), 1))
        points[-1].append(f"{(index + 0.5) * step:.1f},{height:.1f}")
    shapes = [f'<line class="base" x1="0" x2="{_WIDTH}" y1="{_HEIGHT - 1}" y2="{_HEIGHT - 1}"/>']
    for part in points:
        if len(part) == 1:
            x, y = part[0].split(",")
            shapes.append(f'<circle class="dot" cx="{x}" cy="{y}" r="2"/>')
        elif part:
            shapes.append(f'<polyline class="score" points="{" ".join(part)}"/>')
    return _svg(shapes, "mean score over time")


def _bucketed(hours: Mapping[int, Counts], first_hour: int, last_hour: int) -> Sequence[Counts]:
    buckets = [Counts() for _ in range(_BARS)]
    length = max(last_hour - first_hour + 1, 1)
    for hour, counts in hours.items():
        if first_hour <= hour <= last_hour:
            buckets[min((hour - first_hour) * _BARS // length, _BARS - 1)].add_all(counts)
    return buckets


def _svg(shapes: Sequence[str], what: str) -> Markup:
    # Safe: only numbers and words of this module.
    return Markup(
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'role="img" aria-label="{what}">{"".join(shapes)}</svg>'
    )
