"""Renders a chart with Helm's own SDK; run by the interpreter of `.venv-checks`.

Reads one JSON object from standard input: `chart`, `values`. Prints one: `messages` of lint, and either
`manifests` by template or the `error` that refused the values.
"""

import json
import sys

import helm_python as helm  # type: ignore[import-not-found]  # only in .venv-checks


def main() -> None:
    """Lint and render once."""
    request = json.load(sys.stdin)
    answer = {"messages": helm.lint(request["chart"])["messages"]}
    try:
        with helm.Chart.load(request["chart"]) as chart:
            chart.validate_schema(request["values"])
            answer["manifests"] = chart.render(request["values"], name="demo", namespace="prod")
    except helm.HelmError as error:
        answer["error"] = str(error)
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
