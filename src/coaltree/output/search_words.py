"""Lists of neighbours that seldom held the best partner, in words."""

from __future__ import annotations

HELD_ENOUGH = 0.5  # share of lists of neighbours that held the best partner
WHY_FEW_HELD = (
    "many partners are about equally good, as with much noise, or the lists are too short; for up to some 50,000 rows try "
    "--search exact"
)


def few_held(held: float | None) -> list[str]:
    """Say that few lists held the best partner, if it is so.

    Parameters
    ----------
    held : float or None
        The share that did; None if it is not known.

    Returns
    -------
    list of str
        One sentence or none.

    Examples
    --------
    >>> few_held(0.9), few_held(None)
    ([], [])
    >>> few_held(0.02)[0][:53]
    'Only 2 % of the lists of near rows held the best part'
    """
    if held is None or held >= HELD_ENOUGH:
        return []
    return [f"Only {100 * held:.0f} % of the lists of near rows held the best partner: {WHY_FEW_HELD}."]
