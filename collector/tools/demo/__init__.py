"""What `tracegrade demo` runs."""

from collector.tools.demo.demo_agent import SERVICE_NAME, perform, scripted_runs, send_scripted_runs

__all__ = ["SERVICE_NAME", "perform", "scripted_runs", "send_scripted_runs"]
