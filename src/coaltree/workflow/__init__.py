"""From a table to a fitted model, which estimators, plots, reports, files and commands share."""
