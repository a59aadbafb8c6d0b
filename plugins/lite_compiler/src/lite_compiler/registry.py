"""A backend's table of lowering functions by operator; the modules that define them are imported on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Generic, TypeVar

from lite_compiler.fusion import Group
from lite_core.ir import Graph, Node, Value
from lite_core.ops.helpers import find_known_values, number_inputs

__all__ = ["Lower", "Refuse", "Registry"]

C = TypeVar("C")

#: Emits the steps of a group, whose head is a node of the registered operator, into the backend's lowering context.
Lower = Callable[[C, Group], None]
#: Returns the reason why a node cannot be run, or None.
Refuse = Callable[[Node], "str | None"]


@dataclass(frozen=True, slots=True)
class _Entry(Generic[C]):
    """A registered operator: the arguments of :meth:`Registry.lowers` or :meth:`Registry.register_rewritten`."""

    lower: Lower[C] | None
    refuse: Refuse
    epilogue: bool = False
    needs_numbers: bool = False
    known_inputs: tuple[int, ...] = ()


class Registry(Generic[C]):
    """The operators that a backend runs, by qualified name such as ``Conv`` or ``lite.YoloBox``.

    Modules of the backend register lowering functions, one module for each operator family. A module is imported when
    one of its operators is first looked up, so that a model imports only the modules it needs. The table of families
    tells which module that is. Importing a module raises an error if the table and the registrations differ. Operators
    without a kernel are not listed anywhere.

    Args:
        package: the package that contains the modules.
        families: for each module, the operators that it registers, separated by spaces.
        default_family: the module that registers the operators that ``families`` does not list.
        kernel_name: the word for a kernel in error messages, for example ``CPU kernel``.
    """

    def __init__(self, package: str, families: Mapping[str, str], *, default_family: str, kernel_name: str) -> None:
        self._package, self._default_family, self._kernel_name = package, default_family, kernel_name
        #: The operators that each module registers; those of the default family are not listed.
        self.families = {family: tuple(operators.split()) for family, operators in families.items()}
        self._family_of = {op: family for family, operators in self.families.items() for op in operators}
        self._imported: set[str] = set()
        self._entries: dict[str, _Entry[C]] = {}

    # **** registration ****

    def lowers(
        self,
        *ops: str,
        refuse: Refuse = lambda node: None,
        epilogue: bool = False,
        needs_numbers: bool = False,
        known_inputs: Sequence[int] = (),
    ) -> Callable[[Lower[C]], Lower[C]]:
        """Return a decorator that registers the lowering function of operators.

        Args:
            ops: qualified names of the operators.
            refuse: returns the reason why a node cannot be run because of its types or attributes, or None. Shapes may
                be unknown.
            epilogue: True if the function also lowers the element-wise nodes that follow, the tail of its group. Else
                its groups have no tail.
            needs_numbers: True if the operator's numbers, such as axes or a number of results, must be known when the
                node is lowered; see :func:`lite_core.ops.helpers.number_inputs` and :meth:`data_dependent_nodes`.
            known_inputs: positions of other inputs whose elements must be known then.
        """

        def add(function: Lower[C]) -> Lower[C]:
            for op in ops:
                self._add(
                    op, _Entry(function, refuse, epilogue, needs_numbers, tuple(known_inputs)), function.__module__
                )
            return function

        return add

    def register_rewritten(self, module: str, *ops: str, refuse: Refuse = lambda node: None) -> None:
        """Register operators that ``module`` replaces by other operators before a graph is lowered."""
        for op in ops:
            self._add(op, _Entry(None, refuse), module)

    def _add(self, op: str, entry: _Entry[C], module: str) -> None:
        expected = f"{self._package}.{self._family_of.get(op, self._default_family)}"
        if module != expected:
            raise ValueError(f"{module} registers {op}, but the table of families assigns {op} to {expected}")
        if op in self._entries:
            raise ValueError(f"{op} is registered twice")
        self._entries[op] = entry

    # **** queries ****

    def registered_operators(self) -> set[str]:
        """Return all operators that the backend runs, though perhaps not with every element type and attribute.

        Only the module of the default family is imported, because the table does not list its operators.
        """
        self.import_family(self._default_family)
        return {*self._family_of, *self._entries}

    def find_lowering(self, node: Node) -> tuple[Lower[C] | None, str]:
        """Return the lowering function of a node, or None and the reason why the node cannot be lowered."""
        entry = self._entry(node)
        if entry is None or entry.lower is None:
            return None, self._missing(node)
        reason = entry.refuse(node)
        return (entry.lower, "") if reason is None else (None, reason)

    def refusal(self, node: Node) -> str | None:
        """Return the reason why a node cannot be run, or None if it can be run, directly or rewritten."""
        entry = self._entry(node)
        return self._missing(node) if entry is None else entry.refuse(node)

    def is_rewritten(self, node: Node) -> bool:
        """Return True if a node is replaced by other nodes before the graph is lowered."""
        entry = self._entry(node)
        return entry is not None and entry.lower is None

    def takes_epilogue(self, node: Node) -> bool:
        """Return True if the element-wise nodes after a node can be part of its step."""
        entry = self._entry(node)
        return entry is not None and entry.epilogue

    def data_dependent_nodes(self, graph: Graph) -> list[Node]:
        """Return the nodes that cannot be lowered for any shapes, because inputs that must be known depend on data.

        They run on the host between two stages of a partition; see :class:`lite_compiler.staging.StagedExecutable`.
        """
        needed = {node: found for node in graph.nodes if (found := self._known_inputs(node))}
        known = find_known_values(graph) if needed else set()
        return [node for node, values in needed.items() if not known.issuperset(values)]

    def _known_inputs(self, node: Node) -> list[Value]:
        """Return the inputs whose elements must be known when the node is lowered."""
        entry = self._entry(node)
        if entry is None:
            return []
        positions = (*entry.known_inputs, *(number_inputs(node) if entry.needs_numbers else ()))
        inputs = [node.inputs[i] for i in positions if i < len(node.inputs)]
        return [v for v in inputs if v is not None]

    def _missing(self, node: Node) -> str:
        return f"there is no {self._kernel_name} for {node.qualified_op}"

    def _entry(self, node: Node) -> _Entry[C] | None:
        op = node.qualified_op
        family = self._family_of.get(op, self._default_family)
        if family not in self._imported:
            self.import_family(family)
        return self._entries.get(op)

    def import_family(self, family: str) -> None:
        """Import the module of a family, as the first lookup of one of its operators does.

        Raises:
            ValueError: the module does not register what the table of families lists for it.
        """
        import_module(f"{self._package}.{family}")
        missing = [op for op in self.families.get(family, ()) if op not in self._entries]
        if missing:
            raise ValueError(
                f"{self._package}.{family} does not register {', '.join(missing)}, which the table of families lists"
            )
        self._imported.add(family)
