"""Small things that every room uses: checks of arguments, lazy imports, model files, reports."""
