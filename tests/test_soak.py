"""Many fits in one process: memory, threads and copies."""

import copy
import io
import pickle
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pandas as pd
import pytest
import soak
from distributed.protocol import deserialize, serialize

import coaltree as ct

pytestmark = [
    pytest.mark.usefixtures("short_chains"),
    pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning"),
]


@pytest.mark.slow
def test_memory_does_not_grow_over_many_fits():
    """A small version, in which single pages count: ``tools/soak.py 2000`` requires less than 1 %."""
    growth, _ = soak.soak(44)
    assert growth < 0.05


def table(seed, n=20):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(rng.integers(0, 2, n)[:, None] * 3.0, 1.0, size=(n, 3)), columns=list("abc"))
    X.iloc[2, 1] = np.nan
    return X.assign(d=list("uvwx") * (n // 4))


def fit(seed):
    return ct.CoalescentClustering(random_state=seed, n_jobs=2).fit(table(seed))


def answers(model, seed):
    X = table(seed + 100, 8)
    places = model.place(X)
    return model.labels_.tolist(), model.score_samples(X).tolist(), places.branch.tolist(), places.log_density.tolist()


def test_concurrent_predictions_agree():
    """Fits, and predictions of models shared by threads, whose trees are drawn at the first prediction."""
    shared = [fit(seed) for seed in range(2)]
    expected = [answers(fit(seed), seed) for seed in range(2)]

    def work(k):
        seed = k % 2
        return answers(fit(seed) if k % 3 == 0 else shared[seed], seed)

    with ThreadPoolExecutor(4) as pool:
        actual = list(pool.map(work, range(12)))
    assert actual == [expected[k % 2] for k in range(12)]


def through_joblib(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


def through_dask(model):
    """As Dask sends it from process to process."""
    return deserialize(*serialize(model))


@pytest.mark.parametrize(
    "send", [lambda model: pickle.loads(pickle.dumps(model)), copy.copy, copy.deepcopy, through_joblib, through_dask]
)
@pytest.mark.parametrize("predicts_first", [False, True], ids=["before the first question", "after it"])
def test_copied_models_predict_equally(send, predicts_first):
    model = fit(0)
    expected = answers(model, 0) if predicts_first else None
    again = send(model)
    assert answers(again, 0) == (expected or answers(model, 0))
