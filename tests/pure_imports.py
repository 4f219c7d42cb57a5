"""The import-linter contract `pure`: some modules may import only what .importlinter lists, and each other.

The standard library is allowed but for the listed parts of it that read clocks, files or the network.
"""

from __future__ import annotations

import fnmatch
import sys

import grimp
from importlinter import Contract, ContractCheck, fields, output


class PureImports(Contract):
    """Direct imports only: what an allowed module imports in turn is its own affair."""

    type_name = "pure"

    modules = fields.ListField(subfield=fields.StringField())
    allowed = fields.ListField(subfield=fields.StringField())
    forbidden_standard = fields.ListField(subfield=fields.StringField())

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:
        """Every import of a pure module that the lists do not allow."""
        del verbose
        pure = {module for module in graph.modules if self._matches(module, self.modules)}
        faults = [
            f"{module} -> {imported} (line {_line(graph, module, imported)})"
            for module in sorted(pure)
            for imported in sorted(graph.find_modules_directly_imported_by(module))
            if imported not in pure and not self._is_allowed(imported)
        ]
        return ContractCheck(kept=not faults, metadata={"faults": faults})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """The faults, one a line."""
        for fault in check.metadata["faults"]:
            output.print_error(fault)

    def _is_allowed(self, module: str) -> bool:
        top = module.split(".", 1)[0]
        if top in sys.stdlib_module_names:
            return not self._matches(top, self.forbidden_standard)
        return self._matches(module, self.allowed)

    @staticmethod
    def _matches(module: str, patterns: object) -> bool:
        assert isinstance(patterns, list)
        return any(fnmatch.fnmatchcase(module, pattern) for pattern in patterns)


def _line(graph: grimp.ImportGraph, importer: str, imported: str) -> int:
    details = graph.get_import_details(importer=importer, imported=imported)
    return details[0]["line_number"] if details else 0
