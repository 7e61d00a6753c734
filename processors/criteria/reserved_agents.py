"""Names of agents that belong to tracegrade itself."""

SELF_CHECK_AGENT = "tracegrade.self-check"
"""The agent of the traces by which the service checks itself. Criteria files cannot name it."""
