"""The service checks itself: traces through its own listener, whose verdicts are known beforehand."""
