"""Loaders of data sets, on small made-up files of the published formats."""

import gzip
import hashlib
import io
import struct
import zipfile

import numpy as np
import pytest
from sklearn.decomposition import PCA

import coaltree as ct
from coaltree.datasets.download import SOURCES, Source
from coaltree.errors import InputError
from named import refused

ODD = '<script>alert(1)</script>, "a" 🦉'


@pytest.fixture
def put(tmp_path, monkeypatch):
    """Write a file into a folder of data and register its checksum."""
    monkeypatch.setenv("COALTREE_DATA", str(tmp_path))

    def write(name, content):
        content = content.encode() if isinstance(content, str) else content
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
        monkeypatch.setitem(SOURCES, name, Source("https://example.org/" + name, hashlib.sha256(content).hexdigest()))

    return write


# -- WALS ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def atlas(put):
    odd = ODD.replace('"', '""')
    put(
        "wals/v2008/languages.csv",
        "ID,Name,Latitude,Longitude,Family,Subfamily,Genus\n"
        f'ger,German,52,10,Indo-European,,Germanic\nhin,Hindi,,,Indo-European,Indo-Iranian,Indic\nodd,"{odd}",1,-2,,,\n'
        "non,Nothing,0,0,Indo-European,,Germanic\n",
    )
    put("wals/v2008/parameters.csv", 'ID,Name\n1,Tone\n2,"Order, of words"\n3,Clicks\n4,Never asked\n')
    put(
        "wals/v2008/codes.csv",
        "ID,Parameter_ID,Name\n1-1,1,No\n1-2,1,Yes\n2-1,2,SVO\n2-2,2,SOV\n2-3,2,VSO\n3-1,3,None\n",
    )
    put("wals/v2008/values.csv", VALUES)
    put(
        "wals/v2020.4/languages.csv",
        "ID,Name,Family,Subfamily,Genus\nodd,Odd,Odd,,Odd\nger,German,Indo-European,,West Germanic\n",
    )


VALUES = """\
Language_ID,Parameter_ID,Code_ID,Comment
ger,1,1-1,
ger,2,2-3,"a comment, of two
lines"
hin,2,2-2,
odd,1,1-2,
odd,2,2-1,
odd,3,3-1,
"""


def test_wals_is_loaded(atlas):
    wals = ct.datasets.load_wals()
    nan = np.nan
    np.testing.assert_array_equal(wals.states, [[0, 2, nan], [nan, 1, nan], [1, 0, 0]])
    assert wals.languages.tolist() == ["German", "Hindi", ODD]  # nothing is known of the fourth
    assert wals.features.tolist() == ["Tone", "Order, of words", "Clicks"]
    assert wals.values == (("No", "Yes"), ("SVO", "SOV", "VSO"), ("None",))
    assert wals.language_ids.tolist() == ["ger", "hin", "odd"]
    assert wals.feature_ids.tolist() == ["1", "2", "3"]
    assert wals.families.tolist() == ["Indo-European", "Indo-European", ""]
    assert wals.subfamilies.tolist() == ["", "Indo-Iranian", ""]
    assert wals.genera.tolist() == ["Germanic", "Indic", ""]
    np.testing.assert_array_equal(wals.latitudes, [52, nan, 1])
    np.testing.assert_array_equal(wals.longitudes, [10, nan, -2])


def test_wals_newest_classification(atlas):
    wals = ct.datasets.load_wals(classification="2020.4")
    assert wals.families.tolist() == ["Indo-European", "Indo-European", "Odd"]
    assert wals.subfamilies.tolist() == ["", "Indo-Iranian", ""]  # Hindi is not in the newer table
    assert wals.genera.tolist() == ["West Germanic", "Indic", "Odd"]


def test_wals_selections(atlas):
    wals = ct.datasets.load_wals()
    part = wals.select([2, 0], [False, True, True])
    np.testing.assert_array_equal(part.states, wals.states[[2, 0]][:, 1:])
    assert part.languages.tolist() == [ODD, "German"]
    assert part.values == wals.values[1:]
    assert part.longitudes.tolist() == [-2, 10]

    family = ct.datasets.select_indo_european(wals, min_known=1)
    assert family.languages.tolist() == ["German", "Hindi"]
    assert family.feature_ids.tolist() == ["1", "2"]  # the third is known of neither
    assert ct.datasets.select_indo_european(wals, min_known=2).languages.tolist() == ["German"]

    with refused("Indo-European language 3 features known fewer"):
        ct.datasets.select_indo_european(wals, min_known=3)

    dense = ct.datasets.select_densest(wals, 0.67)
    assert dense.language_ids.tolist() == ["ger", "odd"]
    assert dense.feature_ids.tolist() == ["1", "2"]
    assert ct.datasets.select_densest(wals, 1).states.shape == (3, 3)
    assert ct.datasets.select_densest(wals, 0.01).states.shape == (1, 1)
    for share in (0, 1.5, "all", np.nan):
        with refused("share 0 1"):
            ct.datasets.select_densest(wals, share)


def test_select_densest_breaks_ties_by_order():
    states = np.zeros((4, 2))
    names = np.array(list("abcd"))
    two = np.array(["x", "y"])
    wals = ct.datasets.Wals(
        states, names, two, (("s",),) * 2, names, two, names, names, names, np.zeros(4), np.zeros(4)
    )
    assert ct.datasets.select_densest(wals, 0.5).languages.tolist() == ["a", "b"]


def test_invalid_wals_options_are_rejected():
    with refused("edition 1999 2008 2020"):
        ct.datasets.load_wals("1999")
    with refused("classification mine None 2020.4"):
        ct.datasets.load_wals(classification="mine")


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("values", VALUES + "ger,1,1-2,\n", "feature '1' of 'ger' has two values"),
        ("values", VALUES + "xyz,1,1-2,\n", "value '1-2' of feature '1' for 'xyz' is not in the other files"),
        ("values", VALUES + "ger,3,1-2,\n", "value '1-2' of feature '3' for 'ger' is not in the other files"),
        ("values", "Language_ID,Parameter_ID\n", "it has no column 'Code_ID'"),
        ("values", VALUES + "ger\n", "row 7 has another number of cells than the header"),
        ("values", VALUES + 'ger,3,"3-1', "line 8: unexpected end of data"),
        (
            "languages",
            "ID,Name,Latitude,Longitude,Family,Subfamily,Genus\nger,German,north,1,,,\n",
            "could not convert",
        ),
        ("codes", b"ID,Parameter_ID,Name\n1-1,1,\xff\n", "is not utf-8"),
        ("parameters", "", "it has no column 'ID'"),
    ],
)
def test_damaged_wals_files_are_reported(atlas, put, name, content, why):
    if name == "languages":
        put("wals/v2008/values.csv", "Language_ID,Parameter_ID,Code_ID\n")
    put(f"wals/v2008/{name}.csv", content)
    with pytest.raises(InputError, match=f"wals/v2008/{name}.csv .*{why}"):
        ct.datasets.load_wals()


# -- MNIST --------------------------------------------------------------------------------------------------------------


def compressed(data):
    """Compress without the time of day, which would give parametrised tests another name in every worker."""
    return gzip.compress(data, mtime=0)


def idx(array):
    sizes = struct.pack(f">{array.ndim}I", *array.shape)
    return compressed(bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes())


@pytest.fixture
def images(put):
    images = np.random.default_rng(0).integers(0, 256, (5, 28, 28), dtype=np.uint8)
    put("mnist/t10k-images-idx3-ubyte.gz", idx(images))
    put("mnist/t10k-labels-idx1-ubyte.gz", idx(np.array([3, 0, 9, 3, 1], dtype=np.uint8)))
    lines = [",".join(map(str, [*image.ravel(), digit])) for image, digit in zip(images, "42000", strict=True)]
    put("mnist/mnist_5k.csv.gz", compressed("\n".join(lines).encode()))
    return images


def test_mnist_is_loaded(images):
    mnist = ct.datasets.load_mnist()
    np.testing.assert_array_equal(mnist.images, images)
    assert mnist.digits.tolist() == [3, 0, 9, 3, 1]
    np.testing.assert_array_equal(mnist.pixels, images.reshape(5, 784))
    assert mnist.pixels.dtype == np.float64
    sample = ct.datasets.load_mnist("sample")
    np.testing.assert_array_equal(sample.images, images)
    assert sample.digits.tolist() == [4, 2, 0, 0, 0]
    with refused("part train test sample"):
        ct.datasets.load_mnist("train")


TWO = np.zeros((2, 28, 28), dtype=np.uint8)


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("t10k-images-idx3-ubyte.gz", b"not compressed", "it cannot be decompressed"),
        ("t10k-images-idx3-ubyte.gz", idx(TWO)[:-12], "it cannot be decompressed"),
        ("t10k-images-idx3-ubyte.gz", compressed(b""), "it does not begin as such a file does"),
        ("t10k-images-idx3-ubyte.gz", idx(TWO[0]), "it does not begin as such a file does"),
        ("t10k-images-idx3-ubyte.gz", idx(TWO[:, :9]), r"its images have the shape \(9, 28\)"),
        (
            "t10k-images-idx3-ubyte.gz",
            compressed(gzip.decompress(idx(TWO))[:-1]),
            "it should hold 1568 numbers and holds 1567",
        ),
        ("t10k-labels-idx1-ubyte.gz", idx(np.zeros(2, dtype=np.uint8)), "it has 2 labels for 5 images"),
        (
            "t10k-labels-idx1-ubyte.gz",
            idx(np.full(5, 10, dtype=np.uint8)),
            "it has the label 10, and digits go from 0 to 9",
        ),
        ("mnist_5k.csv.gz", compressed(b"1,2\n3,4\n"), "its lines do not have 784 grey levels and a label"),
        ("mnist_5k.csv.gz", compressed(b"1,2\n3\n"), "a line has another number of cells"),
        (
            "mnist_5k.csv.gz",
            compressed(b"__import__('os')\n"),
            "a line has another number of cells, or one that is no",
        ),
        ("mnist_5k.csv.gz", compressed(b"256," * 784 + b"1\n"), "it holds a number that is not between 0 and 255"),
        ("mnist_5k.csv.gz", compressed(b""), "its lines do not have 784"),
    ],
)
def test_damaged_mnist_is_reported(images, put, name, content, why):
    put(f"mnist/{name}", content)
    with pytest.raises(InputError, match=f"mnist/{name} .*{why}"):
        ct.datasets.load_mnist("sample" if "csv" in name else "test")


# -- SPAMBASE -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def mails(put):
    table = np.round(np.random.default_rng(1).random((4, 57)), 3)
    lines = [",".join(map(str, [*row, kind])) for row, kind in zip(table, "1001", strict=True)]
    put("spambase/spambase.data", "\r\n".join(lines) + "\r\n")
    names = [f"word_freq_{i}" for i in range(53)] + ["char_freq_;", "run_average", "run_longest", "run_total"]
    put(
        "spambase/spambase.names",
        "| a comment: with a colon\n\n1, 0. | classes\n\n" + "".join(f"{n}: continuous.\n" for n in names),
    )
    return table, names


def test_spambase_is_loaded(mails):
    table, names = mails
    spambase = ct.datasets.load_spambase()
    np.testing.assert_array_equal(spambase.attributes, table)
    assert spambase.names.tolist() == names
    assert spambase.spam.tolist() == [True, False, False, True]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("data", "1,2\r\n", "its lines do not have 57 attributes and a class"),
        ("data", "", "its lines do not have 57 attributes and a class"),
        ("data", "1,2\r\n1\r\n", "a line has another number of cells"),
        ("data", "1," * 57 + "x\n", "or one that is no number"),
        ("data", "1," * 57 + "2\n", "it has a class other than 0 and 1"),
        ("data", "nan," * 57 + "1\n", "it holds a number that is not finite"),
        ("names", "a: continuous.\n", "it names 1 attributes, not 57"),
    ],
)
def test_damaged_spambase_is_reported(mails, put, name, content, why):
    put(f"spambase/spambase.{name}", content)
    with pytest.raises(InputError, match=f"spambase/spambase.{name} .*{why}"):
        ct.datasets.load_spambase()


def test_binarize_attributes_thresholds_columns():
    table = np.zeros((3, 57))
    table[:, 5] = [0, 0.1, 2]
    table[:, 54:] = [[1, 10, 100], [2, 20, 200], [3, 30, 300]]
    plain = ct.datasets.binarize_attributes(table)
    assert plain[:, 5].tolist() == [0, 1, 1]
    assert plain[:, 54:].tolist() == [[1, 1, 1]] * 3
    assert plain.sum() == 11
    split = ct.datasets.binarize_attributes(table, "median")
    assert split[:, 54:].tolist() == [[0, 0, 0], [0, 0, 0], [1, 1, 1]]
    np.testing.assert_array_equal(split[:, :54], plain[:, :54])
    holed = table.copy()
    holed[1, 3] = np.nan
    with pytest.raises(InputError, match="The cell in row 1, column 3 is missing"):
        ct.datasets.binarize_attributes(holed)
    with refused("run_lengths mean positive median"):
        ct.datasets.binarize_attributes(table, "mean")
    with refused("attributes shape 3 4 57 columns"):
        ct.datasets.binarize_attributes(table[:, :4])


# -- NIPS ---------------------------------------------------------------------------------------------------------------


def archive(counts, name="corpus-example/nips.corpus"):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr(name, counts)
    return packed.getvalue()


NIPS = {
    "nips.abstracts": "Neural networks learn.\nThe network of neurons: learn, LEARN, the x\nOther words\xe9 the\n".encode(
        "latin-1"
    ),
    "nips.docs": f"Connectivity\n{ODD.replace('🦉', '')}\nThird\n",
    "nips.docnames": "nips00/0001.txt\nnips00/0009.txt\nnips01/0003.txt\n",
    "nips.authors": "1\n0 2\n\n",
    "nips.authors.key": "Aazhang_B \nAbbott_L \nSejnowski_T \n",
    "nips.labels": "1\r\n0\r\n1\r\n",
    "nips.labels.key": "Theory\r\nVision\r\n",
    "nips.vols": "0\r\n0\r\n1\r\n",
    "nips.vocab": "network = 0 = 9 2 \r\nlearning = 1 = 5 1 \r\nbrain = 2 = 8 3 \r\n",
    "nips-corpus-20111211.zip": archive("2 0:4 2:1\n1 2:3\n3 0:1 1:1 2:7\n"),
}


@pytest.fixture
def papers(put):
    for name, content in NIPS.items():
        put(f"nips/{name}", content)


def test_nips_abstracts_are_loaded(papers):
    nips = ct.datasets.load_nips(min_documents=2)
    assert nips.words.tolist() == ["learn"]
    assert nips.occurs.tolist() == [[1], [1], [0]]
    assert nips.names.tolist() == ["nips00/0001", "nips00/0009", "nips01/0003"]
    assert nips.titles[1] == ODD.replace("🦉", "").strip()
    assert nips.authors == (("Abbott_L",), ("Aazhang_B", "Sejnowski_T"), ())
    assert nips.years.tolist() == [1987, 1987, 1988]
    assert nips.sections.tolist() == ["Vision", "Theory", "Vision"]


def test_nips_stop_words_can_be_kept(papers):
    nips = ct.datasets.load_nips(min_documents=2, keep_stop_words=True)
    assert nips.words.tolist() == ["learn", "the"]
    assert nips.occurs.tolist() == [[1, 0], [1, 1], [0, 1]]


def test_nips_papers_are_loaded(papers):
    nips = ct.datasets.load_nips(min_documents=2, text="papers")
    assert nips.words.tolist() == ["brain", "network"]
    assert nips.occurs.tolist() == [[1, 1], [1, 0], [1, 1]]


@pytest.mark.parametrize("text", ["abstracts", "papers"])
def test_nips_without_common_words_is_rejected(papers, text):
    with pytest.raises(InputError, match=rf"No word occurs in 1000 {text}; set min_documents lower"):
        ct.datasets.load_nips(min_documents=1000, text=text)


def test_invalid_nips_options_are_rejected(papers):
    with refused("titles abstracts papers"):
        ct.datasets.load_nips(text="titles")
    for least in (0, 0.5, True, "many"):
        with refused("min_documents 1"):
            ct.datasets.load_nips(least)


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("nips.abstracts", "one\ntwo\n", "it has 2 lines for 3 documents"),
        ("nips.labels", "1\n0\n2\n", "'2' is not a number from 0 to 1"),
        ("nips.vols", "1\n0\n-1\n", "'-1' is not a number from 0 to 99"),
        ("nips.authors", "1\n0 x\n1\n", "'x' is not a number from 0 to 2"),
        ("nips-corpus-20111211.zip", b"no archive", "corpus-example/nips.corpus cannot be read from it"),
        ("nips-corpus-20111211.zip", archive("", "other"), "corpus-example/nips.corpus cannot be read from it"),
        ("nips-corpus-20111211.zip", archive("1 0:1\n"), "corpus-example/nips.corpus has 1 lines for 3 documents"),
        ("nips-corpus-20111211.zip", archive("1 0:1\n1 3:1\n0\n"), "'3' is not a number from 0 to 2"),
    ],
)
def test_damaged_nips_is_reported(papers, put, name, content, why):
    put(f"nips/{name}", content)
    with pytest.raises(InputError, match=f"nips/{name} .*{why}"):
        ct.datasets.load_nips(2, text="papers" if "zip" in name else "abstracts")


@pytest.mark.parametrize(
    ("load", "first"),
    [
        (ct.datasets.load_wals, "wals/v2008/languages.csv"),
        (ct.datasets.load_mnist, "mnist/t10k-images-idx3-ubyte.gz"),
        (lambda: ct.datasets.load_mnist("sample"), "mnist/mnist_5k.csv.gz"),
        (ct.datasets.load_spambase, "spambase/spambase.data"),
        (ct.datasets.load_nips, "nips/nips.docs"),
    ],
)
def test_wrong_checksum_is_reported(tmp_path, monkeypatch, load, first):
    monkeypatch.setenv("COALTREE_DATA", str(tmp_path))
    (tmp_path / first).parent.mkdir(parents=True)
    (tmp_path / first).write_text("something else")
    with pytest.raises(InputError, match=rf"{first} .*published"):
        load()


# -- rows and components ------------------------------------------------------------------------------------------------


def test_sample_balanced_rows_draws_equal_counts():
    classes = np.array([2, 0, 1, 2, 0, 1, 1, 1, 2])
    rows = ct.datasets.sample_balanced_rows(classes, 2, random_state=1)
    assert classes[rows].tolist() == [0, 0, 1, 1, 2, 2]
    assert len(set(rows.tolist())) == 6
    np.testing.assert_array_equal(rows, ct.datasets.sample_balanced_rows(classes, 2, random_state=1))
    draws = {tuple(ct.datasets.sample_balanced_rows(classes, 2, seed).tolist()) for seed in range(200)}
    assert len(draws) == 18  # of 1 times 6 times 3; one would be missing in 2 cases of 10,000, if seeds were not fixed


def test_invalid_balanced_samples_are_rejected():
    with refused("n_each 3 class b 1 rows"):
        ct.datasets.sample_balanced_rows(["a", "a", "a", "b"], 3)
    with pytest.raises(InputError, match="but there are no rows"):
        ct.datasets.sample_balanced_rows([], 1)
    with refused("n_each 0 1"):
        ct.datasets.sample_balanced_rows(["a"], 0)
    with pytest.raises(InputError, match=r"classes has shape \(1, 1\)"):
        ct.datasets.sample_balanced_rows([["a"]], 1)


@pytest.mark.parametrize("shape", [(30, 8), (6, 20)])
def test_principal_components_match_definition(shape):
    X = np.random.default_rng(2).normal(size=shape) * np.arange(1, shape[1] + 1) + 5
    ours = ct.datasets.principal_components(X, 4)
    theirs = PCA(4).fit(X)
    scores = theirs.transform(X)
    signs = np.sign((ours * scores).sum(axis=0))
    np.testing.assert_allclose(ours, scores * signs, atol=1e-9)
    axes = np.linalg.lstsq(ours, X - X.mean(axis=0), rcond=None)[0]
    assert np.all(axes[np.arange(4), np.abs(axes).argmax(axis=1)] > 0)
    scaled = ct.datasets.principal_components(X, 4, unit_variance=True)
    np.testing.assert_allclose(scaled.var(axis=0), 1)
    np.testing.assert_allclose(scaled * ours.std(axis=0), ours, atol=1e-9)


def test_principal_components_of_degenerate_tables():
    X = np.outer(np.arange(4.0), [1.0, 2.0, 3.0])
    scaled = ct.datasets.principal_components(X, 3, unit_variance=True)
    np.testing.assert_allclose(scaled.var(axis=0), [1, 0, 0])
    assert np.all(ct.datasets.principal_components(np.ones((3, 2)), 2, unit_variance=True) == 0)
    assert ct.datasets.principal_components([[1.0, 2.0]], 1).tolist() == [[0.0]]


@pytest.mark.parametrize("n", [0, 3, 1.0, True])
def test_invalid_numbers_of_components_are_rejected(n):
    with refused("table shape 5 2 1"):
        ct.datasets.principal_components(np.zeros((5, 2)), n)


def test_tables_without_components_are_rejected():
    with refused("principal components complete columns"):
        ct.datasets.principal_components([[1.0, np.nan]], 1)
    with pytest.raises(InputError, match=r"The table has 1 dimension\(s\)"):
        ct.datasets.principal_components([1.0, 2.0], 1)
