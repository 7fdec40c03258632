"""What every face of the library answers today, kept in files, so that a change inside shows where it changes results."""
