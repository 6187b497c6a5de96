"""Published sizes and facts of the data sets, where their files are available."""

import hashlib

import numpy as np

import coaltree as ct
from coaltree.datasets.download import SOURCES


def test_published_files_have_expected_checksums(published_data):
    present = {name: published_data / name for name in SOURCES if (published_data / name).is_file()}
    assert present
    for name, path in present.items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == SOURCES[name].sha256, name


def test_wals_2008_has_published_size(published_data):
    wals = ct.datasets.load_wals("2008")
    assert wals.states.shape == (2561, 142)
    known = ~np.isnan(wals.states)
    assert known.sum() == 58_065
    assert len(set(wals.languages)) == 2561
    assert len(set(wals.families) - {""}) == 146
    assert len(set(wals.genera) - {""}) == 415
    assert (wals.families == "").sum() == (wals.genera == "").sum() == 71
    assert sum(map(len, wals.values)) == 659
    assert {len(values) for values in wals.values} <= set(range(2, 10))
    for j, values in enumerate(wals.values):
        assert np.nanmax(wals.states[:, j]) < len(values)
    german = wals.language_ids.tolist().index("ger")
    order = wals.features.tolist().index("Order of Subject, Object and Verb")
    assert wals.values[order][int(wals.states[german, order])] == "No dominant order"
    assert wals.genera[german] == "Germanic"
    assert (wals.latitudes[german], wals.longitudes[german]) == (52, 10)


def test_select_indo_european_matches_paper(published_data):
    part = ct.datasets.select_indo_european(ct.datasets.load_wals("2008"))
    assert part.states.shape == (48, 139)
    assert (part.genera == "Germanic").sum() == 7
    assert (part.genera == "Celtic").sum() == 5
    assert np.all((~np.isnan(part.states)).sum(axis=1) >= 26)
    assert {"139", "140", "141"}.isdisjoint(part.feature_ids)


def test_select_densest_matches_paper(published_data):
    wals = ct.datasets.load_wals("2008")
    shares = [np.mean(~np.isnan(ct.datasets.select_densest(wals, p).states)) for p in (0.1, 0.2, 0.3, 0.4, 0.5)]
    assert ct.datasets.select_densest(wals, 0.1).states.shape == (256, 14)
    # The paper's extraction had .94, .80, .66, .53, .43 known.
    np.testing.assert_allclose(shares, [0.94, 0.80, 0.66, 0.53, 0.43], atol=0.06)


def test_wals_2020_has_published_size(published_data):
    wals = ct.datasets.load_wals("2020")
    assert wals.states.shape == (2660, 192)
    assert (~np.isnan(wals.states)).sum() == 76_475
    newest = ct.datasets.load_wals("2020", classification="2020.4")
    assert not (newest.families == "").any()
    assert not (newest.genera == "").any()
    np.testing.assert_array_equal(newest.states, wals.states)


def test_mnist_has_published_size(published_data):
    mnist = ct.datasets.load_mnist()
    assert mnist.images.shape == (10_000, 28, 28)
    assert np.bincount(mnist.digits).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    sample = ct.datasets.load_mnist("sample")
    assert sample.images.shape == (5_000, 28, 28)
    assert np.bincount(sample.digits).tolist() == [500] * 10


def test_spambase_has_published_size(published_data):
    spambase = ct.datasets.load_spambase()
    assert spambase.attributes.shape == (4601, 57)
    assert spambase.spam.sum() == 1813
    assert spambase.names[[0, 48, 56]].tolist() == ["word_freq_make", "char_freq_;", "capital_run_length_total"]
    binary = ct.datasets.binarize_attributes(spambase.attributes)
    assert binary[:, 54:].all()  # there is no mail without a capital letter
    split = ct.datasets.binarize_attributes(spambase.attributes, "median")
    np.testing.assert_allclose(split[:, 54:].mean(axis=0), 0.5, atol=0.03)


def test_nips_abstracts_have_published_size(published_data):
    nips = ct.datasets.load_nips()
    assert len(nips.occurs) == len(nips.titles) == len(nips.authors) == 1740
    assert np.bincount(nips.years - 1987).tolist() == [90, 95, 101, 143, 144, 127, 144, 140, 152, 152, 151, 151, 150]
    assert sum(map(len, nips.authors)) == 3990
    assert len({author for authors in nips.authors for author in authors}) == 2037
    assert (nips.sections == "Algorithms and Architectures").sum() == 265
    assert (nips.titles[0], nips.authors[0]) == ("Connectivity Versus Entropy", ("Abu-Mostafa_Y",))
    assert len(set(nips.names)) == 1740
    assert nips.occurs.sum(axis=0).min() >= 100
    assert {"network", "learning", "neurons", "markov"} <= set(nips.words)
    assert 140 <= len(nips.words) <= 170


def test_nips_papers_have_published_size(published_data):
    nips = ct.datasets.load_nips(1, text="papers")
    assert nips.occurs.sum() == 933_295
    assert nips.occurs.shape == (1740, 13_649)
    word = nips.words.tolist().index("network")
    assert nips.occurs[:, word].sum() == 1395
