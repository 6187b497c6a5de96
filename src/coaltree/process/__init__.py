"""Markov processes that run along the branches of a tree."""
