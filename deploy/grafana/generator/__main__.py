"""Writes the dashboards to `deploy/grafana/dashboards`: `python -m deploy.grafana.generator`."""

from deploy.grafana.generator.files import DASHBOARDS, dashboard_files


def main() -> None:
    """Write every file."""
    for name, content in dashboard_files().items():
        (DASHBOARDS / name).write_text(content)


if __name__ == "__main__":
    main()
