"""Questions asked of finished trees: where a new row attaches, how likely it is, what its missing cells are."""
