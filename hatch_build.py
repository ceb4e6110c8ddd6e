"""Compiles the one file of C beside the Python that does the same; without a compiler it is left out."""

from __future__ import annotations

import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MODULE = "tensafe.copies.walking._plain"
FOLDER = "src/tensafe/copies/walking"


class CompiledWalk(BuildHookInterface):
    """Adds the compiled module to a wheel; beside its source, where the project is installed to be edited."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or not _is_useful_here():
            return
        self.scratch = Path(tempfile.mkdtemp())
        folder = Path(self.root, "src") if version == "editable" else self.scratch / "built"
        built = _built(Path(self.root, FOLDER), folder, self.scratch)
        if built is None:
            self.app.display_warning(f"{MODULE} was not compiled: copies of plain trees will be slower")
        elif version != "editable":
            build_data["force_include"][str(built)] = built.relative_to(folder).as_posix()
            build_data["pure_python"] = False
            build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        shutil.rmtree(getattr(self, "scratch", ""), ignore_errors=True)


def _is_useful_here() -> bool:
    """Not under other interpreters, nor where it would bring back the global lock."""
    return sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")


def _built(sources: Path, folder: Path, scratch: Path) -> Path | None:
    """The compiled module under this folder; None where it could not be compiled."""
    try:
        from setuptools import Distribution, Extension
        from setuptools.command.build_ext import build_ext
    except ImportError:
        return None
    headers = [str(sources / "_pointers.h")]
    extension = Extension(MODULE, [str(sources / "_plain.c")], depends=headers, optional=True)
    command = build_ext(Distribution({"name": "tensafe", "ext_modules": [extension]}))
    command.build_lib = str(folder)
    command.build_temp = str(scratch)
    command.ensure_finalized()
    target = Path(command.get_ext_fullpath(MODULE))
    try:
        target.unlink(missing_ok=True)
        command.run()
    except OSError:  # a folder that nobody may write to; on Windows, a module that is in use
        return None
    return target if target.exists() else None
