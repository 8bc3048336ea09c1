"""Hypothesis tries the same examples every time, so that the suite says the same of the same code.

``DPSELECT_EXPLORE=1`` (set by ``make test-full``) lets it look for new ones.
"""

import os

from hypothesis import settings

settings.register_profile("steady", derandomize=True)
settings.register_profile("explore")
settings.load_profile("explore" if os.environ.get("DPSELECT_EXPLORE") else "steady")
