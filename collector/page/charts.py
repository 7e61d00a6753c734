"""Small charts as SVG, without script: the content security policy needs no exception."""

import time
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from collector.store import Counts

_WIDTH, _HEIGHT = 140, 26
_BARS = 28


def run_bars(hours: Mapping[int, Counts], first_hour: int, last_hour: int) -> Markup:
    """Runs over time as bars; failed and errored runs are the red part at the bottom.

    Each bar has its time and numbers as a title.
    """
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
        title = (
            f"<title>{_time_of(index, first_hour, last_hour)}: {bucket.count} runs, {failed} failed</title>"
        )
        above = f'y="{_HEIGHT - height:.1f}" height="{height - red:.1f}"'
        shapes.append(f'<rect class="runs" {place} {above}>{title}</rect>')
        if red:
            shapes.append(
                f'<rect class="failed" {place} y="{_HEIGHT - red:.1f}" height="{red:.1f}">{title}</rect>'
            )
    return _svg(shapes, f"{sum(bucket.count for bucket in buckets)} runs over time")


def axis(first_hour: int, last_hour: int) -> tuple[str, str, str]:
    """Beginning, middle and end of the time of a chart, in UTC."""
    middle = (first_hour + last_hour + 1) // 2
    return _hour_text(first_hour), _hour_text(middle), _hour_text(last_hour + 1)


def trend(hours: Mapping[int, Counts], first_hour: int, last_hour: int) -> int | None:
    """By how many points the pass rate of the later half is above the earlier; None if either has none."""
    halves = Counts(), Counts()
    for hour, counts in hours.items():
        halves[2 * (hour - first_hour) > last_hour - first_hour].add_all(counts)
    earlier, later = (half.pass_rate for half in halves)
    return None if earlier is None or later is None else round(100 * (later - earlier))


def most_runs(hours: Mapping[int, Counts], first_hour: int, last_hour: int) -> int:
    """How many runs the highest bar of `run_bars` stands for."""
    return max(bucket.count for bucket in _bucketed(hours, first_hour, last_hour))


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


def _time_of(bucket: int, first_hour: int, last_hour: int) -> str:
    length = max(last_hour - first_hour + 1, 1)
    return _hour_text(first_hour - -bucket * length // _BARS)


def _hour_text(hour: int) -> str:
    return time.strftime("%m-%d %H:%M", time.gmtime(hour * 3600))


def _svg(shapes: Sequence[str], what: str) -> Markup:
    # Safe: only numbers and words of this module.
    return Markup(
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'preserveAspectRatio="none" role="img" aria-label="{what}">{"".join(shapes)}</svg>'
    )
