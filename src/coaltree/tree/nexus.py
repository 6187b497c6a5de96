"""The text of NEXUS tree files: several trees over the same leaves.

Names are quoted as in Newick text, and DendroPy 5 has the limits with names that :mod:`coaltree.tree.newick` lists. Our
own reader is :mod:`coaltree.tree.nexus_reader`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .newick import quoted


def render(names: Sequence[str], trees: Iterable[tuple[str, str]]) -> str:
    """Write a file of trees.

    Parameters
    ----------
    names : sequence of str
        Names of the leaves; number ``i`` is written as ``i + 1`` in the trees.
    trees : iterable of (str, str)
        A plain name for every tree, and its text.

    Returns
    -------
    str

    Examples
    --------
    >>> print(render(["ape", "wise man"], [("T", "[&R] (1:1.0,2:1.0);")]))
    #NEXUS
    <BLANKLINE>
    Begin taxa;
        Dimensions ntax=2;
        Taxlabels
            ape
            'wise man'
            ;
    End;
    <BLANKLINE>
    Begin trees;
        Translate
            1 ape,
            2 'wise man'
            ;
    tree T = [&R] (1:1.0,2:1.0);
    End;
    <BLANKLINE>
    """
    labels = [quoted(name) for name in names]
    return "\n".join(
        [
            "#NEXUS",
            "",
            "Begin taxa;",
            f"    Dimensions ntax={len(labels)};",
            "    Taxlabels",
            *(f"        {label}" for label in labels),
            "        ;",
            "End;",
            "",
            "Begin trees;",
            "    Translate",
            ",\n".join(f"        {key} {label}" for key, label in enumerate(labels, 1)),
            "        ;",
            *(f"tree {name} = {text}" for name, text in trees),
            "End;",
            "",
        ]
    )
