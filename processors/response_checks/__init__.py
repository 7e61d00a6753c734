"""Deterministic checks of how an agent handled what its tools returned, one file each.

`response_checks.checks` lists them. A check reads an `AgentResponse` and says whether it applies and what
violates it; it knows no configuration file, no score and no other check.
"""
