"""Fonts for names in any script."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

# For what matplotlib's own font lacks, as far as they are installed.
_FALLBACKS = (
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Noto Sans JP",
    "Noto Sans SC",
    "Noto Sans KR",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
    "WenQuanYi Zen Hei",
    "Hiragino Sans",
    "PingFang SC",
    "Apple SD Gothic Neo",
    "Yu Gothic",
    "Microsoft YaHei",
    "Malgun Gothic",
    "Segoe UI Symbol",
    "Arial Unicode MS",
)


@contextlib.contextmanager
def any_script() -> Iterator[None]:
    """Draw text in whatever script the installed fonts know, and the rest as boxes without a warning.

    Both making and drawing the text belong into the block: a text takes its fonts when it is made, and matplotlib warns
    when it is drawn.
    """
    import matplotlib
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    families = [*matplotlib.rcParams["font.family"], *(name for name in _FALLBACKS if name in installed)]
    with matplotlib.rc_context({"font.family": families}), warnings.catch_warnings():
        # Which glyphs are missing, and which scripts are set without their ligatures.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support", category=UserWarning)
        yield
