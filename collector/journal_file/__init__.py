"""The file of the journal: its tables, the forms of its records, and the process that inspects it first.

Without a door: that process starts in here at every start of the service, and must load little.
"""
