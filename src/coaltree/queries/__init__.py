"""Questions asked of a finished tree."""
