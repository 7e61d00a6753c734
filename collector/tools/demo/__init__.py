"""What `tracegrade demo` runs."""

from collector.tools.demo.demo_agent import scripted_runs, send_scripted_runs

__all__ = ["scripted_runs", "send_scripted_runs"]
