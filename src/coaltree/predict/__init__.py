"""Predictions for new rows and missing cells, given trees: attachment points, densities and predictive distributions."""
