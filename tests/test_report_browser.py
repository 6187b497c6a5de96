"""The report in a real browser: what a reader sees and does."""

import json
import math
import os
import re
import shutil
import time
from dataclasses import replace

import numpy as np
import pytest

import coaltree as ct
from coaltree.report.build import report_facts
from coaltree.report.facts import RealFacts
from coaltree.report.page import page
from coaltree.table.encoding import EncodedColumn
from coaltree.table.scaling import ColumnScale
from coaltree.tree.cut import cut_by_count
from coaltree.workflow.profile import Profile
from report_pages import HOSTILE, mixed_frame

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = os.environ.get("COALTREE_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = [
    pytest.mark.usefixtures("short_chains"),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium; tools/install_browser.sh installs one"),
    pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning"),
]
N = 36
OWN = ("file:", "data:", "blob:")
WINDOW = {"width": 1200, "height": 900}


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def many_leaves(facts, n):
    """Return the facts of a tree of so many leaves, over one column in the order of the leaves."""
    tree, none = ct.simulate_tree(n, random_state=0), np.zeros(0)
    values = np.empty(n)
    values[tree.leaf_order] = np.arange(n)
    column = RealFacts("place", values, none, none, none, none)
    rows = none.astype(int)
    held_out_facts = replace(facts.held_out, rows=rows, scores=none, inspected=rows, evenly=none.astype(bool))
    parameters = {"place": facts.parameters["mass"]}
    labels, cells = cut_by_count(tree, 3), values[:, None]
    return replace(
        facts,
        tree=tree,
        labels=labels,
        columns=(column,),
        profile=Profile([EncodedColumn("place", 0, (), ColumnScale(0.0, 1.0), False)], cells, cells, labels),
        parameters=parameters,
        incomplete_rows=rows,
        held_out=held_out_facts,
        log_ratios=np.linspace(-3, 20, n - 1),
    )


def shared_frame():
    frame = mixed_frame(N)
    group = np.arange(N) % 3
    frame["swims"] = np.where(group == 0, "yes", "no")
    frame["dives"] = np.array(["often", "no", "yes"])[group]
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Reports on a table with names that are not, on many leaves, and on one row."""
    folder = tmp_path_factory.mktemp("reports")
    frame = mixed_frame(N, names=HOSTILE)
    model = ct.CoalescentClustering(n_clusters=3).fit(frame)
    model.report(folder / "table.html", title=HOSTILE[0])
    (folder / "many.html").write_text(page(many_leaves(report_facts(model._model), 2500)), encoding="utf-8")
    ct.CoalescentClustering().fit(frame[:1]).report(folder / "one.html")
    ct.CoalescentClustering().fit(shared_frame()).report(folder / "shared.html")
    X = np.random.default_rng(1).normal(size=(12, 2)) + np.repeat([[0.0], [6.0]], 6, axis=0)
    X[3, 0] = np.nan
    sampler = ct.CoalescentClustering(inference="smc", n_particles=40, random_state=0)
    sampler.fit(X).report(folder / "sampled.html")
    return folder


@pytest.fixture(scope="module")
def browser_page(browser):
    """One page for all tests: a renderer that has compiled the scripts once shows the next report in a third of a second."""
    context, wrong = browser.new_context(), []
    context.route(re.compile("^http"), lambda route: route.abort())
    page = context.new_page()
    page.on("request", lambda request: None if request.url.startswith(OWN) else wrong.append(request.url))
    page.on("requestfailed", lambda request: wrong.append(f"failed: {request.url[:80]}"))
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    yield page, wrong
    context.close()


@pytest.fixture
def open_page(browser_page, folder):
    """Return a function that opens a report anew; whatever goes wrong in the page fails the test."""
    page, wrong = browser_page
    wrong.clear()

    def open_report(name="table.html", viewport=WINDOW, color_scheme="light"):
        page.mouse.move(0, 0)
        page.set_viewport_size(viewport)
        page.emulate_media(color_scheme=color_scheme, media="screen")
        page.goto((folder / name).as_uri())
        page.wait_for_selector("#picture[data-tips] .main-svg", state="attached")
        return page

    yield open_report
    assert wrong == []


def wait_until(page, condition, seconds=30):
    """Wait until an expression is true in the page.

    Playwright's own waiting evaluates text in the page, which the policy of a report forbids.
    """
    deadline = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < deadline, f"never true: {condition}"
        page.wait_for_timeout(20)


def wait_for_status(page, text):
    """Wait until the line below the picture has a text, whatever the case of its letters."""
    wait_until(page, f"document.getElementById('status').innerText.toLowerCase().includes({json.dumps(text.lower())})")


def wait_for_tips(page, relation):
    """Wait until the number of tips fulfils a relation, such as "< 36"."""
    wait_until(page, f"Number(document.getElementById('picture').dataset.tips) {relation}")


def tips(page):
    return int(page.evaluate("document.getElementById('picture').dataset.tips"))


def branches(page):
    """Count the branches that are drawn, from the lines of the picture."""
    return page.evaluate(
        """document.getElementById('picture').data.filter(t => t.meta === 'branches')
        .reduce((n, t) => n + t.x.filter(x => x === null).length, 0)"""
    )


def rows_of_heatmaps(page):
    return page.evaluate(
        "document.getElementById('picture').data.filter(t => t.type === 'heatmap').map(t => t.z.length)"
    )


def merge_point(page, choose="nodes.indexOf(Math.max(...nodes))"):
    """Return where on the screen a merge is, by default the root."""
    return page.evaluate(
        """() => {
            const picture = document.getElementById('picture');
            const trace = picture.data.find(t => t.meta === 'merges'), nodes = trace.customdata;
            const k = CHOOSE, layout = picture._fullLayout, box = picture.getBoundingClientRect();
            return [box.left + layout.xaxis._offset + layout.xaxis.d2p(trace.x[k]),
                    box.top + layout.yaxis._offset + layout.yaxis.d2p(trace.y[k]), nodes[k]];
        }""".replace("CHOOSE", choose)  # the page's policy forbids eval
    )


def see(page, point):
    """Scroll until a point is in sight."""
    page.evaluate("([x, y]) => window.scrollBy(0, y - 400)", point[:2])


def test_report_opens_without_console_messages(open_page):
    page = open_page()
    assert page.title() == HOSTILE[0]
    assert page.inner_text("h1") == HOSTILE[0]
    assert tips(page) == N
    assert branches(page) == 2 * (N - 1)
    assert rows_of_heatmaps(page) == [N, N]


def test_injected_scripts_do_not_run(browser, folder):
    """Scripts, event handlers and pictures that are added to a report neither run nor load anything."""
    context = browser.new_context()
    requests = []
    context.route(re.compile("^http"), lambda route: (requests.append(route.request.url), route.abort()))
    page = context.new_page()
    text = (folder / "table.html").read_text(encoding="utf-8")
    attack = (
        "<script>window.ran = 1</script><img src='http://example.org/x.png' onerror='window.ran = 2'>"
        "<script src='http://example.org/x.js'></script><iframe src='http://example.org/'></iframe>"
        "<a id='trap' href='javascript:window.ran=3'>x</a><div style='background: url(http://example.org/y.png)'>y</div>"
    )
    (folder / "attacked.html").write_text(text.replace("<main>", "<main>" + attack), encoding="utf-8")
    page.goto((folder / "attacked.html").as_uri())
    page.wait_for_selector("#picture .main-svg", state="attached")
    page.evaluate("document.getElementById('trap').click()")
    page.wait_for_timeout(100)
    assert page.evaluate("window.ran === undefined")
    assert page.evaluate("document.querySelectorAll('#picture .main-svg').length") > 0
    context.close()
    assert requests == []


def test_names_are_shown_as_text(open_page):
    page = open_page()
    labels = page.evaluate("[...document.querySelectorAll('.ytick text')].map(t => t.textContent)")
    assert len(labels) == N
    assert "<script>alert(1)</script>" in labels
    assert any(label.startswith("</script><img src") for label in labels)
    assert "<b>bold</b> &lt;" in labels
    assert page.locator("img").count() == 0
    columns = page.evaluate("[...document.querySelectorAll('.x2tick text')].map(t => t.textContent)")
    assert "<i>years</i>" in columns


@pytest.mark.parametrize("query", ["row 20", "ROW 20", HOSTILE[1]])
def test_search_finds_row(open_page, query):
    page = open_page()
    page.fill("#leaf", query)
    page.press("#leaf", "Enter")
    wait_for_status(page, query)
    wait_until(page, "document.getElementById('picture').layout.shapes.length === 1")
    wait_until(
        page,
        "document.getElementById('picture').layout.yaxis.ticktext.filter(t => t.startsWith('<b>')).length === 1",
    )
    # its mark is drawn, and in sight
    wait_until(
        page,
        """() => {
            const marks = [...document.querySelectorAll('#picture .shapelayer path')];
            const top = marks.length === 1 ? marks[0].getBoundingClientRect().top : -1;
            return 0 < top && top < window.innerHeight;
        }""",
    )


def test_search_reports_unknown_row(open_page):
    page = open_page()
    page.fill("#leaf", "unicorn")
    page.click("#search button")
    wait_for_status(page, "no row")
    wait_for_status(page, "unicorn")


def test_search_expands_and_zooms(open_page):
    page = open_page()
    page.click("#fold")
    wait_for_tips(page, "=== 3")
    page.fill("#leaf", "row 20")
    page.press("#leaf", "Enter")
    wait_for_tips(page, "> 3")


def test_click_toggles_clade(open_page):
    page = open_page()
    see(page, merge_point(page, "nodes.indexOf(Math.max(...nodes) - 1)"))
    x, y, node = merge_point(page, "nodes.indexOf(Math.max(...nodes) - 1)")
    page.mouse.move(x, y)
    page.mouse.click(x, y)
    wait_until(page, f"document.getElementById('picture').dataset.tips < {N}")
    left = tips(page)
    assert branches(page) == 2 * (left - 1)
    assert rows_of_heatmaps(page) == [left, left]
    assert page.inner_text("#status").startswith("Collapsed: Clade of ")
    see(page, merge_point(page, f"nodes.indexOf({node})"))
    x, y, _ = merge_point(page, f"nodes.indexOf({node})")
    page.mouse.move(x, y)
    page.mouse.click(x, y)
    wait_until(page, f"document.getElementById('picture').dataset.tips == {N}")


def test_keyboard_toggles_clade(open_page):
    page = open_page()
    page.focus("#picture")
    page.keyboard.press("ArrowRight")
    wait_for_status(page, f"Clade of {N} leaves")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    wait_for_tips(page, f"< {N}")
    wait_for_status(page, "Collapsed")
    page.keyboard.press("Enter")
    wait_for_tips(page, f"=== {N}")
    page.keyboard.press("+")
    span = "Math.abs(document.getElementById('picture').layout.yaxis.range.reduce((low, high) => high - low))"
    wait_until(page, f"{span} < {0.6 * N}")
    page.keyboard.press("0")
    wait_until(page, f"Math.abs({span} - {N + 0.4}) < 1e-9")


def test_tab_key_visits_controls_in_order(open_page):
    page = open_page("table.html")
    reached = []
    for _ in range(32):  # the cards come first
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none" or reached[-1] == "BODY"
    expected = ["theme", "leaf", "fold", "unfold", "closer", "farther", "reset", "picture"]
    assert [name for name in reached if name in expected] == expected


def test_hover_shows_merge(open_page):
    page = open_page()
    see(page, merge_point(page, "nodes.indexOf(Math.max(...nodes) - 1)"))
    x, y, _ = merge_point(page, "nodes.indexOf(Math.max(...nodes) - 1)")
    page.mouse.move(x - 3, y)
    page.mouse.move(x, y)
    page.wait_for_selector("#tip:not([hidden])")
    text = page.inner_text("#tip")
    assert text.startswith("Clade of ")
    assert "Height " in text
    assert re.search("times better than|as well as two", text)
    assert "elsewhere" in text


def test_hover_shows_cells(open_page):
    page = open_page()
    place = """([row, axis]) => {
        const picture = document.getElementById('picture'), layout = picture._fullLayout, box = picture.getBoundingClientRect();
        const k = layout.yaxis.ticktext.indexOf(row);
        return [box.left + layout[axis]._offset + layout[axis].d2p(0),
                box.top + layout.yaxis._offset + layout.yaxis.d2p(layout.yaxis.tickvals[k])];
    }"""
    frame = mixed_frame(N, names=HOSTILE)
    for row, axis, column in [
        ("row 20", "xaxis2", "mass"),
        ("row 12", "xaxis2", "mass"),
        ("emoji 🦉", "xaxis3", "cover"),
    ]:
        see(page, page.evaluate(place, [row, axis]))
        x, y = page.evaluate(place, [row, axis])
        page.mouse.move(x - 2, y)
        page.mouse.move(x, y)
        wait_until(page, f"document.getElementById('tip').innerText.startsWith({row!r})")
        value = frame.loc[row, column]
        text = page.inner_text("#tip")
        if row == "row 12":
            assert "mass: missing; model expects " in text
            assert "±" in text
        else:
            assert text.endswith(f"{column}: {value if column == 'cover' else f'{value:.6g}'}")


def test_themes_and_print_have_right_colours(open_page):
    def paper():
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    page = open_page(color_scheme="dark")
    dark = paper()
    assert sum(map(int, dark[4:-1].split(","))) < 150
    # on paper all is light and unfolded
    page.emulate_media(media="print")
    wait_until(page, "document.documentElement.dataset.theme === 'light'")
    assert page.evaluate("[...document.querySelectorAll('details')].every(d => d.open)")
    page.emulate_media(media="screen")
    wait_until(page, "document.documentElement.dataset.theme === 'dark'")
    page = open_page()
    assert paper() == "rgb(255, 255, 255)"
    page.click("#theme")
    assert paper() == dark
    assert page.evaluate("document.getElementById('picture').layout.font.color") == "#e6e9ee"
    page.click("#theme")
    assert paper() == "rgb(255, 255, 255)"


@pytest.mark.parametrize("name", ["table.html", "many.html", "one.html"])
def test_report_fits_narrow_screen(open_page, name):
    page = open_page(name, viewport={"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.set_viewport_size({"width": 320, "height": 800})
    wait_until(page, "document.documentElement.scrollWidth <= 320")


def test_report_follows_window_resize(open_page):
    page = open_page()
    page.set_viewport_size({"width": 500, "height": 800})
    wait_until(page, "document.querySelector('#picture .main-svg').getBoundingClientRect().width < 500")
    assert page.evaluate("document.documentElement.scrollWidth") <= 500


def test_many_leaves_are_collapsed_and_expandable(open_page):
    page = open_page("many.html")
    assert tips(page) == 50
    assert branches(page) == 98
    page.fill("#leaf", "1234")
    page.press("#leaf", "Enter")
    assert page.inner_text("#status").startswith("Found 1234: it is in the marked clade of ")
    marked = page.evaluate("document.getElementById('picture').layout.shapes.map(s => (s.y0 + s.y1) / 2)")
    bold = page.evaluate("document.getElementById('picture').layout.yaxis.ticktext.findIndex(t => t.startsWith('<b>'))")
    places = page.evaluate("document.getElementById('picture').layout.yaxis.tickvals")
    assert marked == [pytest.approx(places[bold])]
    members = page.evaluate("JSON.parse(document.getElementById('data').textContent).members")
    sizes = [len(member) for member in members if "1234" in member]
    assert f"clade of {sizes[0]:,} leaves" in page.inner_text("#status")


def test_unexpandable_clades_show_message(open_page):
    page = open_page("many.html")
    page.click("#unfold")
    assert tips(page) == 50
    assert "a tree of 2,500 leaves is drawn by its oldest clades" in page.inner_text("#status")
    see(page, merge_point(page, "nodes.findIndex(node => node < 50)"))
    x, y, _ = merge_point(page, "nodes.findIndex(node => node < 50)")
    page.mouse.move(x, y)
    page.mouse.click(x, y)
    wait_until(page, "document.getElementById('status').innerText.includes('too large to draw; its leaves are ')")
    page = open_page()
    page.click("#unfold")
    assert page.inner_text("#status") == ""


def test_mode_bar_does_not_cover_column_names(open_page):
    page = open_page()
    page.hover("#picture")
    boxes = page.evaluate(
        """[...document.querySelectorAll('#picture .modebar, .x2tick text, .x3tick text')].map(e => {
            const b = e.getBoundingClientRect(); return [e.tagName, b.left, b.right]; })"""
    )
    bar = next(box for box in boxes if box[0] == "DIV")
    assert bar[2] > bar[1]
    assert all(left > bar[2] for tag, left, _ in boxes if tag == "text")
    assert len(boxes) == 6


def test_categories_have_one_colour_across_columns(open_page):
    page = open_page("shared.html")
    displayed = page.evaluate("[...document.querySelectorAll('#legend .key')].map(k => k.innerText.split(/\\n/))")
    assert ["flies, swims", "no", "yes"] in displayed
    z = page.evaluate("document.getElementById('picture').data.find(t => t.meta === 'categorical').z")
    columns = page.evaluate("document.getElementById('picture').layout.xaxis3.ticktext")
    names = page.evaluate("document.getElementById('picture').layout.yaxis.ticktext")
    frame, shades = shared_frame(), {}
    for column in ("flies", "swims", "dives"):
        for name, cells in zip(names, z, strict=True):
            value = frame.loc[name, column]
            if value is not None and value == value:
                shades.setdefault(value, set()).add(cells[columns.index(column)])
    assert shades.keys() == {"yes", "no", "often"}
    assert all(len(value) == 1 for value in shades.values())
    assert len(set.union(*shades.values())) == 3


def test_support_is_drawn_at_branches(open_page):
    page = open_page("sampled.html")
    actual = page.evaluate(
        """(() => { const t = document.getElementById('picture').data.find(t => t.meta === 'support');
            return t.x.map((x, k) => [x, t.text[k].trim()]); })()"""
    )
    data = page.evaluate("JSON.parse(document.getElementById('data').textContent)")
    known = {
        (round(h**0.5, 4), f"{math.floor(100 * s + 0.5)}")
        for h, s in zip(data["heights"], data["support"], strict=True)
        if s
    }
    assert len(actual) > 3
    assert all((round(x, 4), text) in known for x, text in actual)
    boxes = page.evaluate(
        "[...document.querySelectorAll('#picture .textpoint')].map(t => { const b = t.getBoundingClientRect(); "
        "return [b.left, b.right, b.top, b.bottom]; })"
    )
    assert len(boxes) == len(actual)
    for k, (left, right, top, bottom) in enumerate(boxes):
        for other in boxes[:k]:
            assert right <= other[0] + 1 or left >= other[1] - 1 or bottom <= other[2] + 4 or top >= other[3] - 4


def test_page_of_one_row(open_page):
    page = open_page("one.html")
    visible = page.locator("button:visible, input:visible, main svg:visible")
    assert visible.evaluate_all("found => found.map((own) => own.id)") == ["theme"]
    assert page.locator("main > :visible").count() == 1
    assert page.locator("main > .note").is_visible()
    page.click("#theme")
    assert page.get_attribute("html", "data-theme") == "dark"
