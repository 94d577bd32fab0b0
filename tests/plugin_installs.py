"""Puts plugins where Python finds them, as an installer would leave them: a package and its metadata."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

GROUP = "acp_proxy.plugins"
REPOSITORY = Path(__file__).resolve().parents[1]
TRANSCRIPT = REPOSITORY / "plugins" / "transcript"


def install(
    site: Path,
    distribution: str,
    plugins: Mapping[str, str],
    modules: Mapping[str, str] | None = None,
    version: str = "1.2.3",
) -> None:
    """Write a distribution into `site`: `plugins` maps names to `module:Class`, `modules` names to source."""
    info = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
    entries = [f"{name} = {target}" for name, target in plugins.items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *entries, ""]))
    for name, source in (modules or {}).items():
        (site / f"{name}.py").write_text(dedent(source))


def install_project(site: Path, project: Path) -> None:
    """Write the metadata that the project's own pyproject.toml asks for; its package stays where it is."""
    declared = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    install(site, declared["name"], declared["entry-points"][GROUP], version=declared["version"])


def python_path(*folders: Path) -> str:
    """A PYTHONPATH for child processes with these folders before whatever is there already."""
    return os.pathsep.join([*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])])
