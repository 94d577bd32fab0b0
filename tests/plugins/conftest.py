"""The plugins of this repository are importable by tests whether or not they are installed."""

from __future__ import annotations

import sys

from plugin_installs import TRANSCRIPT

if str(TRANSCRIPT) not in sys.path:
    sys.path.insert(0, str(TRANSCRIPT))
