"""Alert rules as data: from objectives, baselines and volume to a Prometheus rule file, and nothing else."""
