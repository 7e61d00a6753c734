"""Words by language: data, one file a language, in the form of `processors.response_handling.lexicon.Words`."""
