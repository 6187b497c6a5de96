"""The scikit-learn door: tables in; trees, clusters, densities and filled tables out."""
