"""What the service costs: CPU time per span beside a naive peer, measured in one interleaved run."""
