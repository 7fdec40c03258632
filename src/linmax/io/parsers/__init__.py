"""Compiled parsers of lines, one for each format that has its own, and what several of them share."""
