"""The content of model files, of estimators that have been fitted."""

from coaltree.persist.model import to_state


def saved_state(model):
    """Return what a file keeps of an estimator."""
    return to_state(model._model)


def model_bytes(model):
    """Return the content of an estimator's file."""
    return saved_state(model).to_bytes()
