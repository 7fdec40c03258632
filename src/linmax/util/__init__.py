"""Helpers for all packages: checks of arguments, lazy imports, model files, output files, plots, tables."""
