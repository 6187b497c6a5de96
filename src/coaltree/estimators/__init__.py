"""The scikit-learn interface: tables in; trees, clusters, densities and filled tables out."""
