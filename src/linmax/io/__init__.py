"""Files and pipes: sources, formats, parsers, vocabularies, and the batches of rows that they give."""
