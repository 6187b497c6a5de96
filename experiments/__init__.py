"""The experiments of Teh, Daumé and Roy (2007), run anew: ``python -m experiments all`` in a clone of the repository.

Each module runs one experiment and returns csv tables and figures; ``python -m experiments page`` sets them beside the paper's
numbers in docs/experiments.md. Data sets are read as by `coaltree.datasets`.
"""
