"""Graded runs as people read them on a console."""

from collector.printing.run_printout import RunPrintout, count_outcomes, counts_text

__all__ = ["RunPrintout", "count_outcomes", "counts_text"]
