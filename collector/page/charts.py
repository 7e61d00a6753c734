"""Small charts as SVG, without script: the content security policy needs no exception."""

import time
from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup, escape

from collector.store import Counts

_WIDTH, _HEIGHT = 140, 26
_BARS = 28
_MAX_MARKS = 20


def run_bars(hours: Mapping[int, Counts], shown: range, releases: Mapping[str, int]) -> Markup:
    """Runs over time as bars; failed and errored runs are the red part at the bottom.

    Each bar has its time and numbers as a title. A line marks the hour in which each release began, but the
    first.
    """
    buckets = _bucketed(hours, shown)
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
        title = f"<title>{_time_of(index, shown)}: {bucket.count} runs, {failed} failed</title>"
        above = f'y="{_HEIGHT - height:.1f}" height="{height - red:.1f}"'
        shapes.append(f'<rect class="runs" {place} {above}>{title}</rect>')
        if red:
            shapes.append(
                f'<rect class="failed" {place} y="{_HEIGHT - red:.1f}" height="{red:.1f}">{title}</rect>'
            )
    return _svg(
        [*shapes, *_marks(releases, shown)], f"{sum(bucket.count for bucket in buckets)} runs over time"
    )


def axis(shown: range) -> tuple[str, str, str]:
    """Beginning, middle and end of the time of a chart, in UTC."""
    return _hour_text(shown.start), _hour_text((shown.start + shown.stop) // 2), _hour_text(shown.stop)


def trend(hours: Mapping[int, Counts], shown: range) -> int | None:
    """By how many points the pass rate of the later half is above the earlier; None if either has none."""
    halves = Counts(), Counts()
    for hour, counts in hours.items():
        halves[2 * (hour - shown.start) >= len(shown)].add_all(counts)
    earlier, later = (half.pass_rate for half in halves)
    return None if earlier is None or later is None else round(100 * (later - earlier))


def most_runs(hours: Mapping[int, Counts], shown: range) -> int:
    """How many runs the highest bar of `run_bars` stands for."""
    return max(bucket.count for bucket in _bucketed(hours, shown))


def score_line(hours: Mapping[int, Counts], shown: range, releases: Mapping[str, int]) -> Markup:
    """The mean score over time as a line between 0 and 1, with releases; a gap where nothing was scored."""
    step = _WIDTH / _BARS
    points: list[list[str]] = [[]]
    for index, bucket in enumerate(_bucketed(hours, shown)):
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
    return _svg([*shapes, *_marks(releases, shown)], "mean score over time")


def _marks(releases: Mapping[str, int], shown: range) -> Iterator[str]:
    """A line for each release that replaced another within the time; what it is called is its title."""
    later = sorted((hour, version) for version, hour in releases.items())[1:]
    for hour, version in [release for release in later if release[0] in shown][-_MAX_MARKS:]:
        x = _WIDTH * (hour - shown.start) / len(shown)
        title = f"<title>{escape(version[:60] or 'no version')} began: {_hour_text(hour)}</title>"
        yield f'<line class="release" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{_HEIGHT}">{title}</line>'


def _bucketed(hours: Mapping[int, Counts], shown: range) -> Sequence[Counts]:
    buckets = [Counts() for _ in range(_BARS)]
    for hour, counts in hours.items():
        if hour in shown:
            buckets[(hour - shown.start) * _BARS // len(shown)].add_all(counts)
    return buckets


def _time_of(bucket: int, shown: range) -> str:
    return _hour_text(shown.start - -bucket * len(shown) // _BARS)


def _hour_text(hour: int) -> str:
    return time.strftime("%m-%d %H:%M", time.gmtime(hour * 3600))


def _svg(shapes: Sequence[str], what: str) -> Markup:
    # Safe: only numbers, words of this module, and escaped versions.
    return Markup(
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'preserveAspectRatio="none" role="img" aria-label="{what}">{"".join(shapes)}</svg>'
    )
