"""Declaration of operators: signature, attributes, inference and NumPy reference.

An operator is declared by decorating its reference::

    @op("LeakyRelu", "X: T -> Y: T", types={"T": FLOATS}, attributes={"alpha": 0.01}, infer=same_as_first)
    def leaky_relu(x, *, alpha):
        \"\"\"``y = x if x >= 0 else alpha * x``.\"\"\"
        return np.where(x >= 0, x, alpha * x)

The signature is a small language: ``name: T`` names a tensor of the type variable ``T`` (or of a fixed
element type such as ``int64``); ``?`` marks an optional tensor, ``*`` a variadic one at the end, and
``**`` a variadic one whose tensors may differ in type.

The reference receives one argument per input (``None`` for an input left out; a variadic input is
unpacked) and the attributes, including defaults, as keywords. It may have further keywords:
``n_outputs`` is the number of outputs of the node, ``run_graph`` a function that runs a sub-graph, and
``infer_outputs`` a function that returns the inferred types of the node's outputs. Input arrays are
read-only. float16 and bfloat16 inputs arrive as float32, and results are converted to the element types
of the signature.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from lite_core.errors import GraphError, LiteError
from lite_core.ir import Attribute, DType, Graph, Node, Shape, SymbolicDim, TensorType
from lite_core.ops.inference import Inference

__all__ = [
    "REGISTRY",
    "AttributeSpec",
    "OpDef",
    "Parameter",
    "choice",
    "define",
    "op",
    "optional",
    "package_of",
    "providers",
    "register",
    "required",
]

Array = np.ndarray[Any, Any]
Inferred = TensorType | Shape | None
InferFunction = Callable[[Inference], Sequence[Inferred]]

_KINDS: dict[str, Callable[[Any], bool]] = {
    "int": lambda a: isinstance(a, int) and not isinstance(a, bool),
    "float": lambda a: isinstance(a, (int, float)) and not isinstance(a, bool),
    "str": lambda a: isinstance(a, str) and not isinstance(a, DType),
    "dtype": lambda a: isinstance(a, DType),
    "ints": lambda a: isinstance(a, tuple) and all(isinstance(i, int) for i in a),
    "floats": lambda a: isinstance(a, tuple) and all(isinstance(i, (int, float)) for i in a),
    "strs": lambda a: isinstance(a, tuple) and all(isinstance(i, str) for i in a),
    "tensor": lambda a: isinstance(a, np.ndarray),
    "graph": lambda a: isinstance(a, Graph),
}


class Parameter(NamedTuple):
    """One input or output of a signature."""

    name: str
    type: str
    optional: bool = False
    variadic: bool = False
    #: A variadic parameter whose tensors may differ in element type.
    heterogeneous: bool = False


class AttributeSpec(NamedTuple):
    """The kind and the allowed values of an attribute.

    ``kind`` is one of int, float, str, dtype, ints, floats, strs, tensor, graph.
    """

    kind: str
    default: Any = None
    required: bool = False
    choices: tuple[str, ...] = ()

    def problem(self, attribute: Attribute) -> str | None:
        """Return the reason why ``attribute`` does not fit, or None."""
        if not _KINDS[self.kind](attribute):
            return f"must be of kind {self.kind}, is {attribute!r}"
        if self.choices and attribute not in self.choices:
            return f"must be one of {', '.join(self.choices)}, is {attribute!r}"
        return None


def required(kind: str) -> AttributeSpec:
    """Specify an attribute that every node must have."""
    return AttributeSpec(kind, required=True)


def optional(kind: str) -> AttributeSpec:
    """Specify an optional attribute without a default; the reference receives None if it is left out."""
    return AttributeSpec(kind)


def choice(*choices: str) -> AttributeSpec:
    """Specify a string attribute with a fixed set of values; the first is the default."""
    return AttributeSpec("str", default=choices[0], choices=choices)


@dataclass(frozen=True, slots=True)
class OpDef:
    """An operator of the opset."""

    name: str
    domain: str
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    types: Mapping[str, tuple[DType, ...]]
    attributes: Mapping[str, AttributeSpec]
    reference: Callable[..., Any]
    infer: InferFunction
    #: Computes the elements of the output from the known elements of the inputs (shape arithmetic).
    propagate: Callable[[Inference], Array | None] | None = None
    extra_keywords: frozenset[str] = field(default_factory=frozenset)
    #: Names of the inputs whose elements must be known numbers before a node is compiled, see :func:`define`.
    numbers: tuple[str, ...] = ()
    #: Cache: the element types of the type variables, by those of the inputs. It is read for every node of every plan.
    _bound: dict[tuple[DType | None, ...], Mapping[str, DType]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def qualified_name(self) -> str:
        return f"{self.domain}.{self.name}" if self.domain else self.name

    @property
    def documentation(self) -> str:
        return inspect.getdoc(self.reference) or ""

    @property
    def min_inputs(self) -> int:
        return max((i + 1 for i, p in enumerate(self.inputs) if not p.optional and not p.variadic), default=0)

    @property
    def fixed_inputs(self) -> int:
        """The number of inputs before a variadic one, including optional inputs."""
        return sum(not p.variadic for p in self.inputs)

    @property
    def signature(self) -> str:
        """The signature in the notation of its declaration: ``X: T, W: T -> Y: T``."""

        def listed(parameters: tuple[Parameter, ...]) -> str:
            def mark(p: Parameter) -> str:
                return "?" if p.optional else "**" if p.heterogeneous else "*" if p.variadic else ""

            return ", ".join(f"{p.name}: {p.type}{mark(p)}" for p in parameters)

        return f"{listed(self.inputs)} -> {listed(self.outputs)}"

    def parameter(self, index: int, *, output: bool = False) -> Parameter | None:
        """Return the parameter at a position, or None past the end."""
        parameters = self.outputs if output else self.inputs
        if index < len(parameters):
            return parameters[index]
        return parameters[-1] if parameters and parameters[-1].variadic else None

    @property
    def working_type(self) -> str:
        """The type variable or fixed element type that a node computes in.

        This is the type variable that the first output shares with an input: for ``Where`` that of X and Y. If they
        share none, it is the type of the first input, or of the output if there are no inputs.
        """
        result = self.outputs[0].type
        is_shared = result in self.types and any(p.type == result for p in self.inputs)
        return result if is_shared or not self.inputs else self.inputs[0].type

    def working_dtype(self, node: Node) -> DType | None:
        """Return the element type that a node computes in (see :attr:`working_type`), or None if it has no tensors."""
        for index, value in enumerate(node.inputs):
            parameter = self.parameter(index)
            if value is not None and parameter is not None and parameter.type == self.working_type:
                return value.dtype
        return next((v.dtype for v in (*node.inputs, *node.outputs) if v is not None), None)

    def attributes_of(self, node: Node) -> dict[str, Any]:
        """Return the node's attributes, with defaults for those it does not set."""
        return {k: node.attributes.get(k, spec.default) for k, spec in self.attributes.items()}

    def types_in_run(self, node: Node, inputs: Sequence[Array | None]) -> list[TensorType | None]:
        """Return the types of a node's outputs, None for an omitted one, given the arrays of its inputs.

        A shape that the graph leaves open may depend on elements, such as those of a shape input, which are known only
        in a run.
        """
        types = [None if v is None else v.type for v in node.outputs]
        if all(t is None or t.is_static for t in types):
            return types
        known = [None if a is None else TensorType.of_array(a) for a in inputs]
        inferred = self.infer_types(Inference(known, self.attributes_of(node), len(types), inputs))
        return [None if t is None else i for t, i in zip(types, inferred)]

    def check_kernel(self, function: Callable[..., Any]) -> None:
        """Raise ValueError if a function cannot take the attributes of the operator as keywords."""
        parameters = inspect.signature(function).parameters
        takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        missing = [name for name in self.attributes if name not in parameters and not takes_any]
        if missing:
            raise ValueError(
                f"kernel {function.__name__} of {self.qualified_name} does not take the attribute(s) "
                f"{', '.join(missing)}; name them as keywords or take **attributes"
            )

    def check(self, node: Node) -> Iterable[str]:
        """Yield a sentence for every way in which a node does not fit the signature."""
        if len(node.inputs) < self.min_inputs:
            yield f"{self.qualified_name} needs {self.min_inputs} inputs, has {len(node.inputs)}"
        for index, value in enumerate(node.inputs):
            parameter = self.parameter(index)
            if parameter is None:
                yield f"{self.qualified_name} takes {len(self.inputs)} inputs, has {len(node.inputs)}"
                break
            if value is None and not parameter.optional:
                yield f"input {parameter.name} is missing"
        for index in range(len(node.outputs)):
            if self.parameter(index, output=True) is None:
                yield f"{self.qualified_name} has {len(self.outputs)} outputs, the node {len(node.outputs)}"
                break
        for key, attribute in node.attributes.items():
            spec = self.attributes.get(key)
            if spec is None:
                known = ", ".join(self.attributes) or "none"
                yield f"{self.qualified_name} has no attribute {key!r} (it has: {known})"
            elif problem := spec.problem(attribute):
                yield f"attribute {key!r} {problem}"
        for key, spec in self.attributes.items():
            if spec.required and key not in node.attributes:
                yield f"attribute {key!r} is missing"
        yield from self._bind_types([None if v is None else v.type for v in node.inputs], {})

    def _bind_types(self, types: Sequence[TensorType | None], bound: dict[str, DType]) -> Iterable[str]:
        """Bind type variables to element types in ``bound``; yield a sentence for each input that does not fit."""
        for index, tensor in enumerate(types):
            parameter = self.parameter(index)
            if tensor is None or parameter is None:
                continue
            allowed = self.types.get(parameter.type)
            if allowed is None:
                if tensor.dtype != parameter.type:
                    yield f"input {parameter.name} must be {parameter.type}, is {tensor.dtype}"
            elif tensor.dtype not in allowed:
                names = ", ".join(d.value for d in allowed)
                yield f"input {parameter.name} must be one of {names}, is {tensor.dtype}"
            elif not parameter.heterogeneous and bound.setdefault(parameter.type, tensor.dtype) != tensor.dtype:
                yield (
                    f"input {parameter.name} is {tensor.dtype}, but {parameter.type} is already "
                    f"{bound[parameter.type]} by another input"
                )

    def _bound_types(self, types: Sequence[TensorType | None]) -> Mapping[str, DType]:
        """Return the element types of the type variables. Raises GraphError if inputs do not fit the signature."""
        dtypes = tuple([None if t is None else t.dtype for t in types])
        found = self._bound.get(dtypes)
        if found is None:
            bound: dict[str, DType] = {}
            problems = list(self._bind_types(types, bound))
            if problems:
                raise GraphError("; ".join(problems))
            found = self._bound[dtypes] = bound
        return found

    def infer_types(self, inference: Inference) -> list[TensorType]:
        """Infer the types of a node's outputs.

        Raises:
            GraphError: the inputs do not fit the signature or each other.
        """
        bound = self._bound_types(inference.types)
        try:
            results: object = self.infer(inference)
            if not isinstance(results, Iterable) or isinstance(results, (str, bytes, Mapping)):
                wanted = "a list of 1 shape" if len(self.outputs) == 1 else f"a list of {len(self.outputs)} shapes"
                raise TypeError(f"it returned {results!r:.80}, expected {wanted}")
            found = [self._output_type(i, inferred, bound) for i, inferred in enumerate(results)]
            if self.domain not in ("", "lite"):
                self._check_inferred(found, inference.n_outputs)
            return found
        except (LiteError, KeyboardInterrupt):
            raise
        except BaseException as error:
            owner = f"{getattr(self.infer, '__module__', '')} of {package_of(self.domain)}"
            raise GraphError(
                f"the inference of {self.qualified_name}, in the module {owner}, failed with "
                f"{type(error).__name__}: {error}"
            ) from error

    def _check_inferred(self, found: Sequence[TensorType], n_outputs: int) -> None:
        """Raise TypeError or ValueError if the inference of a plugin's operator returned anything but types."""
        if len(found) < min(n_outputs, len(self.outputs)):
            raise ValueError(f"it returned {len(found)} types, expected {n_outputs}")
        for type_ in found:
            wrong = [dim for dim in type_.shape or () if not isinstance(dim, (int, SymbolicDim))]
            if wrong:
                raise TypeError(f"{wrong[0]!r} is not a dimension: it must be an int or a dimension of an input")

    def _output_type(self, index: int, inferred: Inferred, bound: Mapping[str, DType]) -> TensorType:
        if isinstance(inferred, TensorType):
            return inferred
        parameter = self.parameter(index, output=True)
        assert parameter is not None, f"{self.qualified_name} inferred more outputs than it has"
        dtype = bound.get(parameter.type) or DType.of(parameter.type)
        return TensorType(dtype, None if inferred is None else tuple(inferred))


#: The operators of the opset, by domain and name; those of families that are not imported yet are missing.
REGISTRY: dict[tuple[str, str], OpDef] = {}

#: By domain, the distribution of the installed plugin that provides its operators, and its version.
providers: dict[str, tuple[str, str]] = {}


def package_of(domain: str) -> str:
    """Return the distribution and version that provides the operators of a domain, for messages."""
    known = providers.get(domain, ("lite-core" if domain in ("", "lite") else "this program",))
    return " ".join(known).removesuffix(" -")


def register(definition: OpDef) -> None:
    """Add an operator. Raises ValueError if the name is taken."""
    key = (definition.domain, definition.name)
    if key in REGISTRY:
        raise ValueError(f"operator {definition.qualified_name} is already defined")
    REGISTRY[key] = definition


def define(
    reference: Callable[..., Any],
    name: str,
    signature: str,
    *,
    infer: InferFunction,
    types: Mapping[str, Iterable[DType]] | None = None,
    attributes: Mapping[str, Any] | None = None,
    domain: str = "",
    propagate: Callable[[Inference], Array | None] | None = None,
    numbers: Sequence[str] = (),
) -> OpDef:
    """Return an operator's definition without adding it to the opset, for a plugin's ``lite_ops`` hook.

    Args:
        reference: computes the operator with NumPy; see the module's docstring.
        name: the operator's name; in the default domain that of ONNX.
        signature: inputs and outputs in the small language of this module.
        infer: returns, for each output, its shape (the element type follows from the signature), a
            TensorType, or None for an unknown rank.
        types: the element types that each type variable may stand for.
        attributes: name to default value (the kind follows from it), or an :class:`AttributeSpec`.
        domain: ``""`` for ONNX's operators, ``"lite"`` for operators of Lite that ONNX lacks, else the
            plugin's domain.
        propagate: shape arithmetic, see :class:`OpDef`.
        numbers: names of the inputs whose elements decide the output's shape (the shape of Reshape) or which elements
            are computed together (the axis of CumSum). A backend that compiles for fixed shapes must know them:
            :mod:`lite_core.ops.helpers`.

    Raises:
        ValueError: the signature is malformed.
    """
    inputs, outputs = _parse_signature(signature)
    keywords = inspect.signature(reference).parameters
    return OpDef(
        name,
        domain,
        inputs,
        outputs,
        {k: tuple(v) for k, v in (types or {}).items()},
        {k: _attribute_spec(v) for k, v in (attributes or {}).items()},
        reference,
        infer,
        propagate,
        frozenset(k for k in ("n_outputs", "run_graph", "infer_outputs") if k in keywords),
        tuple(numbers),
    )


def op(name: str, signature: str, **details: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare an operator of Lite's opset by decorating its reference. Takes the arguments of :func:`define`."""

    def declare(reference: Callable[..., Any]) -> Callable[..., Any]:
        register(define(reference, name, signature, **details))
        return reference

    return declare


def _parse_signature(signature: str) -> tuple[tuple[Parameter, ...], tuple[Parameter, ...]]:
    left, _, right = signature.partition("->")
    inputs, outputs = _parse_parameters(left, signature), _parse_parameters(right, signature)
    if not outputs:
        raise ValueError(f"signature {signature!r} has no output; write -> NAME: TYPE at its end")
    return inputs, outputs


def _parse_parameters(text: str, signature: str) -> tuple[Parameter, ...]:
    parameters = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, _, type_ = (t.strip() for t in part.partition(":"))
        bare = type_.rstrip("?*")
        mark = type_[len(bare) :]
        if not bare:
            raise ValueError(f"signature {signature!r}: {name!r} has no type; write NAME: TYPE")
        if not (name.isidentifier() and bare.isidentifier() and mark in ("", "?", "*", "**")):
            raise ValueError(f"signature {signature!r}: {part!r} is no name and type; write NAME: TYPE")
        parameters.append(Parameter(name, bare, mark == "?", mark in ("*", "**"), mark == "**"))
    return tuple(parameters)


def _attribute_spec(default: Any) -> AttributeSpec:
    if isinstance(default, AttributeSpec):
        return default
    if isinstance(default, tuple):
        kind = "floats" if any(isinstance(d, float) for d in default) else "ints"
        return AttributeSpec(kind, default)
    kind = next(k for k in ("dtype", "int", "float", "str") if _KINDS[k](default))
    return AttributeSpec(kind, default)
