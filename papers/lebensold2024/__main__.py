"""``python -m lebensold2024`` is ``dpselect paper``."""

import sys

from dpselect.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["paper"]
    sys.exit(main())
