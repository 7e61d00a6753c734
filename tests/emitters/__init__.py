"""Real instrumentations over real exporters, and the model server that scripts what their agents do."""
