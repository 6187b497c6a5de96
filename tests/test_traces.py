"""Plots of traces of Markov chains, and their section in a report."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest

import coaltree as ct
from coaltree.errors import MissingDependencyError
from coaltree.report.build import report_facts
from coaltree.report.page import MAX_LINE_POINTS, page
from coaltree.report.sections import support_view
from named import refused
from report_pages import Page, verdict

pytestmark = [
    pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning"),
    pytest.mark.usefixtures("_no_figures_left"),
]


@pytest.fixture
def _no_figures_left():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def fitted():
    X = np.repeat([0.0, 6.0], 4)[:, None] + np.random.default_rng(0).normal(size=(8, 2))
    chains = {"inference": "mcmc", "n_chains": 3, "n_samples": 400}
    return ct.CoalescentClustering(**chains, noise=0.1, random_state=0).fit(X)


def chains_of(n_chains, n_samples, n=3):
    X = np.arange(float(n))[:, None]
    return ct.mcmc(X, ct.OrnsteinUhlenbeck(), n_samples, n_chains, random_state=0)


# -- the picture -------------------------------------------------------------------------------------


def test_plot_traces_draws_all_chains_and_warmup(fitted):
    sample = fitted.sample_
    axes = ct.plot_traces(fitted)
    for name in ("log_joint", "root_height"):
        np.testing.assert_array_equal([line.get_ydata() for line in axes[name].get_lines()], sample.traces[name])
        (shade,) = axes[name].patches
        assert (shade.get_x(), shade.get_width()) == (0, sample.warmup)
        low, high = axes[name].get_ylim()
        assert low < sample.traces[name][:, sample.warmup :].min()
        assert high > sample.traces[name][:, sample.warmup :].max()
    assert f"R-hat {max(sample.r_hat.values()):.3f}" in axes["log_joint"].get_title(loc="left")
    legend = [text.get_text() for text in axes["log_joint"].get_legend().get_texts()]
    assert legend == ["chain 1", "chain 2", "chain 3"]
    axes["log_joint"].figure.canvas.draw()


def test_plot_traces_axes_option(fitted):
    _, mine = plt.subplot_mosaic([["root_height", "log_joint"]])
    assert ct.plot_traces(fitted.sample_, axes=mine) == {name: mine[name] for name in ("log_joint", "root_height")}
    with refused("axes mapping log_joint root_height matplotlib Axes"):
        ct.plot_traces(fitted, axes={"log_joint": mine["log_joint"]})


@pytest.mark.parametrize(("n_chains", "n_samples", "n"), [(1, 30, 3), (2, 1, 3), (13, 6, 2)])
def test_plot_traces_of_few_samples_and_many_chains(n_chains, n_samples, n):
    axes = ct.plot_traces(chains_of(n_chains, n_samples, n))
    assert len(axes["log_joint"].get_lines()) == n_chains
    assert axes["log_joint"].get_legend() is None or n_chains == 2
    assert "nan" not in axes["log_joint"].get_title(loc="left")
    axes["log_joint"].figure.canvas.draw()


def test_plot_traces_rejects_results_without_chains():
    with refused("type Tree mcmc"):
        ct.plot_traces(ct.simulate_tree(3, 0))


def test_missing_matplotlib_has_install_hint(fitted, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with refused("matplotlib pip install coaltree[plot]", MissingDependencyError):
        ct.plot_traces(fitted)


# -- the report --------------------------------------------------------------------------------------


def test_chain_verdict_describes_convergence(fitted):
    facts, sample = report_facts(fitted._model), fitted.sample_
    answer = verdict(facts, "Markov chains")
    assert answer.state == "good"
    assert answer.answer.startswith(sample.verdict)
    assert f"R-hat, here {max(sample.r_hat.values()):.3f}," in answer.answer
    assert f"worth {min(sample.effective_samples.values()):,.0f} independent ones" in answer.answer
    assert f"leaf {100 * sample.acceptance['leaf']:.3g} %" in answer.answer
    apart = replace(
        facts, sample=replace(facts.sample, converged=False, verdict="Not yet."), remarks=("Not yet.", "Else.")
    )
    assert verdict(apart, "Markov chains").state == "look"
    assert verdict(apart, "noticed").points == ("Else.",)
    alone = replace(facts, sample=replace(facts.sample, traces=facts.sample.traces[:1], r_hat=np.nan, acceptance={}))
    assert verdict(alone, "Markov chains").state == "plain"
    assert "here not known" in verdict(alone, "Markov chains").answer
    assert "accepted" not in verdict(alone, "Markov chains").answer


def test_report_shows_traces_and_support(fitted):
    facts, sample = report_facts(fitted._model), fitted.sample_
    html = page(facts)
    document = Page(html).text
    assert "Log joint density of 3 Markov chains after the warm-up" in document
    assert "Log evidence" not in document
    lines = [part.split('points="')[1].split('"')[0] for part in html.split('<polyline style="--c: ')[1:]]
    assert len(lines) == 3
    samples = sample.traces["log_joint"][:, sample.warmup :]
    samples = samples[:, :: -(-samples.shape[1] // MAX_LINE_POINTS)]
    draws = np.array([[float(point.split(",")[1]) for point in line.split()] for line in lines])
    low, high = samples.min(), samples.max()
    np.testing.assert_allclose(60 * (high - samples) / (high - low), draws, atol=0.051)
    assert support_view(facts).summary in document


def test_report_of_one_row_has_no_chain_section():
    model = ct.CoalescentClustering(inference="mcmc", random_state=0).fit([[1.0]])
    assert "Markov" not in Page(page(report_facts(model._model))).text
