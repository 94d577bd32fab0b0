"""No module of the package grows beyond what one sitting can read."""

from __future__ import annotations

from pathlib import Path

import acp_proxy

CEILING = 500
GENERATED = {"shapes_v1.py", "shapes_v2.py"}


def test_no_module_is_longer_than_the_ceiling() -> None:
    package = Path(acp_proxy.__file__).parent
    sizes = {
        str(file.relative_to(package)): len(file.read_text("utf-8").splitlines())
        for file in package.rglob("*.py")
        if file.name not in GENERATED
    }
    assert len(sizes) > 50
    assert {name: size for name, size in sizes.items() if size > CEILING} == {}
