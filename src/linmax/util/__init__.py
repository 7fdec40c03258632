"""What every room uses: checks of arguments, lazy imports, model files, output files, plots, tables."""
