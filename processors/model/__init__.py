"""What everything else speaks of: runs, calls, values, results, and the contract of an evaluator."""
