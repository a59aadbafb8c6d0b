"""How a backend lowers operators: functions by qualified name, in modules that are imported when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Generic, TypeVar

from lite_compiler.fusion import Group
from lite_compiler.known import known_values
from lite_core.ir import Graph, Node, Value

__all__ = ["Lower", "Refuse", "Registry"]

C = TypeVar("C")

#: Emits the steps of a group, whose head is of the operator it is registered for, into what a backend lowers with.
Lower = Callable[[C, Group], None]
#: Why a node cannot be run, a sentence, or None.
Refuse = Callable[[Node], "str | None"]


@dataclass(frozen=True, slots=True)
class _Entry(Generic[C]):
    """How an operator is run: what :meth:`Registry.lowers` or :meth:`Registry.rewritten` was told."""

    lower: Lower[C] | None
    refuse: Refuse
    epilogue: bool = False
    known: tuple[int, ...] = ()


class Registry(Generic[C]):
    """The operators that a backend runs, by qualified name: ``Conv`` or ``lite.YoloBox``.

    Modules of the backend register how they are run. One is imported when an operator that it registers is first asked
    for: a model imports only what it needs. So that this can be known before, a table says which module that is. The
    table is held to be true: what a module registers and is not listed for it, or is listed and not registered, is an
    error when the module is imported. An operator that nobody registers needs no entry anywhere.

    Args:
        package: whose modules they are.
        families: by module the operators that it registers, separated by spaces.
        rest: the module that registers all others.
        kernels: what messages say that there is none of, for example ``CPU kernel``.
    """

    def __init__(self, package: str, families: Mapping[str, str], *, rest: str, kernels: str) -> None:
        self._package, self._rest, self._kernels = package, rest, kernels
        #: By module the operators that it registers; those of ``rest`` are not listed.
        self.families = {family: tuple(operators.split()) for family, operators in families.items()}
        self._homes = {op: family for family, operators in self.families.items() for op in operators}
        self._imported: set[str] = set()
        self._entries: dict[str, _Entry[C]] = {}

    # **** registering ****

    def lowers(
        self, *ops: str, refuse: Refuse = lambda node: None, epilogue: bool = False, known: Sequence[int] = ()
    ) -> Callable[[Lower[C]], Lower[C]]:
        """Register how operators are run.

        Args:
            ops: qualified names.
            refuse: says why a node with its types and attributes cannot be run, if so. Shapes may be unknown.
            epilogue: the element-wise nodes that follow can be part of the step: the function then runs all of its
                group, else it only sees groups without a tail.
            known: positions of inputs whose elements must be known when the node is lowered: axes, a number of
                results. See :meth:`undecided`.
        """

        def add(function: Lower[C]) -> Lower[C]:
            for op in ops:
                self._add(op, _Entry(function, refuse, epilogue, tuple(known)), function.__module__)
            return function

        return add

    def rewritten(self, module: str, *ops: str, refuse: Refuse = lambda node: None) -> None:
        """Register operators that are written with others before a graph is lowered; ``module`` is who does so."""
        for op in ops:
            self._add(op, _Entry(None, refuse), module)

    def _add(self, op: str, entry: _Entry[C], module: str) -> None:
        home = f"{self._package}.{self._homes.get(op, self._rest)}"
        if module != home:
            raise ValueError(f"{module} registers {op}, which the table of families says is of {home}")
        if op in self._entries:
            raise ValueError(f"there are two ways to lower {op}")
        self._entries[op] = entry

    # **** asking ****

    def registered_operators(self) -> set[str]:
        """All operators that are run, if not with every element type and attribute; their modules stay where they are.

        One module is imported: that of the operators which the table does not list.
        """
        self.import_family(self._rest)
        return {*self._homes, *self._entries}

    def find_lowering(self, node: Node) -> tuple[Lower[C] | None, str]:
        """How a node is lowered, or None and the reason why it cannot be."""
        entry = self._entry(node)
        if entry is None or entry.lower is None:
            return None, self._missing(node)
        reason = entry.refuse(node)
        return (entry.lower, "") if reason is None else (None, reason)

    def refusal(self, node: Node) -> str | None:
        """Why a node cannot be run, a sentence; None when it can, as it is or written with others."""
        entry = self._entry(node)
        return self._missing(node) if entry is None else entry.refuse(node)

    def is_rewritten(self, node: Node) -> bool:
        """Whether a node is written with others before a graph is lowered."""
        entry = self._entry(node)
        return entry is not None and entry.lower is None

    def takes_epilogue(self, node: Node) -> bool:
        """Whether the element-wise nodes that follow can be part of its step."""
        entry = self._entry(node)
        return entry is not None and entry.epilogue

    def undecided(self, graph: Graph) -> list[Node]:
        """Nodes that cannot be lowered whatever the shapes: elements that must be known depend on data.

        They run on the host between two pieces of a partition; see :class:`lite_compiler.staging.StagedExecutable`.
        """
        known = known_values(graph)
        return [node for node in graph.nodes if not known.issuperset(self._needed(node))]

    def _needed(self, node: Node) -> list[Value]:
        """Inputs whose elements must be known when the node is lowered."""
        entry = self._entry(node)
        inputs = [] if entry is None else [node.inputs[i] for i in entry.known if i < len(node.inputs)]
        return [v for v in inputs if v is not None]

    def _missing(self, node: Node) -> str:
        return f"there is no {self._kernels} for {node.qualified_op}"

    def _entry(self, node: Node) -> _Entry[C] | None:
        op = node.qualified_op
        family = self._homes.get(op, self._rest)
        if family not in self._imported:
            self.import_family(family)
        return self._entries.get(op)

    def import_family(self, family: str) -> None:
        """Import a module that registers operators, as the first question about one of them does.

        Raises:
            ValueError: the table of families is wrong about it.
        """
        import_module(f"{self._package}.{family}")
        missing = [op for op in self.families.get(family, ()) if op not in self._entries]
        if missing:
            raise ValueError(
                f"{self._package}.{family} is listed with {', '.join(missing)}, and does not register them"
            )
        self._imported.add(family)
