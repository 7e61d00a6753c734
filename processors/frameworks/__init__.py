"""What single agent frameworks do: a file for each, and next to it a page on what is supported.

A file holds the `DIALECT` that reads the framework's spans, the `REWRITE` of its runs, the
`RECORDS` in which it sends content, or several of these.
"""
