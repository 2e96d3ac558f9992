"""``python -m spicegraph_service`` is the command ``spicegraph``."""

import sys

from spicegraph_service.cli import main

sys.exit(main())
