"""The content of model files, of estimators that have been fitted."""

from coaltree.persist.model import make_record


def model_record(model):
    """Return the content of the file of an estimator, as a record."""
    return make_record(model._model)


def model_bytes(model):
    """Return the content of an estimator's file."""
    return model_record(model).to_bytes()
