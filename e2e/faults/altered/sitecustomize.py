"""Makes a test build of the product, which has no hook for it: on PYTHONPATH, Python loads this at its start.

`E2E_BUILD` names modules beside this one, parted by commas. Each has `MODULE`, a module of the product, and `patch`,
which changes it once it was imported.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any


class _Patching(importlib.abc.Loader):
    """The usual loader of a module, and a change right after it."""

    def __init__(self, usual: importlib.abc.Loader, build: Any) -> None:
        self._usual = usual
        self._build = build

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """As usual."""
        return self._usual.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """As usual, then changed."""
        self._usual.exec_module(module)
        self._build.patch(module)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, build: Any) -> None:
        self._build = build

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Only the module to be changed, found by whoever else finds it."""
        if name != self._build.MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.loader is not None
        spec.loader = _Patching(spec.loader, self._build)
        return spec


for _name in os.environ.get("E2E_BUILD", "").split(","):
    if _name:
        sys.meta_path.insert(0, _Finder(importlib.import_module(_name)))
