"""Figures, drawn with matplotlib, which is imported only when needed."""
