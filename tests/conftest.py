import os

# Before anything imports scipy: scikit-learn's check of array API input is skipped without it.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
# No window may open, whatever the machine has.
os.environ.setdefault("MPLBACKEND", "Agg")

from hypothesis import settings

# The first call of a kernel compiles it, so no deadline; on the server the same examples every time.
settings.register_profile("coaltree", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("coaltree")
