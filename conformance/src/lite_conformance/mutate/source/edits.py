"""The edits of a syntax tree: for each node, the other nodes that a programmer might have written by mistake."""

from __future__ import annotations

import ast
from collections.abc import Iterator

__all__ = ["replacements"]

#: A kind of fault, and the node that takes the place of the right one.
Edit = tuple[str, ast.AST]

_ARITHMETIC: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div, ast.Add),
    ast.Div: (ast.Mult, ast.FloorDiv),
    ast.FloorDiv: (ast.Div, ast.Mult),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd, ast.BitXor),
    ast.BitXor: (ast.BitOr,),
}

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}

#: Functions and types, by the last part of their names, and what is easily taken for them.
_NAMES: dict[str, tuple[str, ...]] = {
    "floor": ("ceil", "rint"),
    "ceil": ("floor",),
    "rint": ("floor", "trunc"),
    "trunc": ("floor", "rint"),
    "round": ("floor",),
    "min": ("max",),
    "max": ("min",),
    "minimum": ("maximum", "fmin"),
    "maximum": ("minimum", "fmax"),
    "argmin": ("argmax",),
    "argmax": ("argmin",),
    "any": ("all",),
    "all": ("any",),
    "sum": ("prod", "mean"),
    "prod": ("sum",),
    "mean": ("sum",),
    "add": ("subtract",),
    "subtract": ("add",),
    "multiply": ("true_divide",),
    "true_divide": ("floor_divide",),
    "floor_divide": ("true_divide",),
    "cumsum": ("cumprod",),
    "fmod": ("mod",),
    "mod": ("fmod",),
    "exp": ("expm1", "exp2"),
    "expm1": ("exp",),
    "log": ("log1p", "log2"),
    "log1p": ("log",),
    "sqrt": ("cbrt", "square"),
    "square": ("abs",),
    "abs": ("negative",),
    "negative": ("abs",),
    "sign": ("abs",),
    "reciprocal": ("negative",),
    "sin": ("cos", "tan"),
    "cos": ("sin",),
    "tan": ("sin", "tanh"),
    "arcsin": ("arctan", "arccos"),
    "arccos": ("arcsin",),
    "arctan": ("arcsin", "tanh"),
    "sinh": ("cosh", "sin"),
    "cosh": ("sinh",),
    "tanh": ("arctan", "sinh"),
    "arcsinh": ("arctan", "sinh"),
    "arccosh": ("arcsinh",),
    "arctanh": ("arcsin",),
    "logical_and": ("logical_or",),
    "logical_or": ("logical_and",),
    "logical_xor": ("logical_or",),
    "logical_not": ("asarray",),
    "bitwise_and": ("bitwise_or",),
    "bitwise_or": ("bitwise_and", "bitwise_xor"),
    "bitwise_xor": ("bitwise_or",),
    "bitwise_not": ("negative",),
    "left_shift": ("right_shift",),
    "right_shift": ("left_shift",),
    "greater": ("greater_equal", "less"),
    "greater_equal": ("greater",),
    "less": ("less_equal", "greater"),
    "less_equal": ("less",),
    "equal": ("not_equal",),
    "not_equal": ("equal",),
    "isneginf": ("isposinf", "isinf"),
    "isposinf": ("isneginf", "isinf"),
    "isinf": ("isnan",),
    "isnan": ("isinf",),
    "isfinite": ("isinf",),
    "zeros": ("ones",),
    "ones": ("zeros",),
    "zeros_like": ("ones_like",),
    "ones_like": ("zeros_like",),
    "tril": ("triu",),
    "triu": ("tril",),
    "inf": ("nan",),
    "float64": ("float32",),
    "float32": ("float16",),
    "pi": ("e",),
}

_LARGEST_EPSILON = 1e-3


def replacements(node: ast.AST) -> Iterator[Edit]:
    """Yield the kinds and the replacements of one expression or statement."""
    if isinstance(node, ast.BinOp):
        yield from _binary(node)
    elif isinstance(node, ast.AugAssign):
        for other in _ARITHMETIC.get(type(node.op), ()):
            yield "arithmetic", ast.AugAssign(node.target, other(), node.value)
    elif isinstance(node, ast.Compare):
        for number, operator in enumerate(node.ops):
            for other_comparison in _COMPARISONS.get(type(operator), ()):
                ops = [*node.ops[:number], other_comparison(), *node.ops[number + 1 :]]
                yield "comparison", ast.Compare(node.left, ops, node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield "boolean", ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp):
        if not (isinstance(node.operand, ast.Constant) and isinstance(node.op, ast.USub)):
            yield "sign", node.operand
    elif isinstance(node, ast.Constant):
        yield from _constant(node)
    elif isinstance(node, (ast.Name, ast.Attribute)):
        yield from _name(node)
    elif isinstance(node, ast.Call):
        yield from _call(node)
    elif isinstance(node, ast.Slice):
        yield from _slice(node)
    elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
        yield from _condition(node)
    elif isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
        yield from _comprehension(node)
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) and len(node.value.elts) > 1:
        first, second, *others = node.value.elts
        yield "outputs swapped", ast.Return(ast.Tuple([second, first, *others], ast.Load()))


def _binary(node: ast.BinOp) -> Iterator[Edit]:
    if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
        return  # a text
    for other in _ARITHMETIC.get(type(node.op), ()):
        yield "arithmetic", ast.BinOp(node.left, other(), node.right)
    if isinstance(node.op, (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult)):
        yield "order", ast.BinOp(node.right, node.op, node.left)
    # A small number that is added protects from a division by zero.
    if isinstance(node.op, ast.Add) and any(_is_epsilon(side) for side in (node.left, node.right)):
        yield "epsilon", node.left if _is_epsilon(node.right) else node.right


def _is_epsilon(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return "epsilon" in node.id or node.id == "eps"
    return isinstance(node, ast.Constant) and isinstance(node.value, float) and 0 < node.value <= _LARGEST_EPSILON


def _constant(node: ast.Constant) -> Iterator[Edit]:
    value = node.value
    if isinstance(value, bool):
        yield "constant", ast.Constant(not value)
    elif isinstance(value, int):
        yield "constant", ast.Constant(value + 1)
        yield "constant", ast.Constant(value - 1)
    elif isinstance(value, float):
        yield "constant", ast.Constant(value + 1.0)
        yield "constant", ast.Constant(value * 1.01 if value else -1.0)


def _name(node: ast.Name | ast.Attribute) -> Iterator[Edit]:
    if not isinstance(node.ctx, ast.Load):
        return
    for other in _NAMES.get(node.attr if isinstance(node, ast.Attribute) else node.id, ()):
        if isinstance(node, ast.Attribute):
            yield "function", ast.Attribute(node.value, other, ast.Load())
        elif other in ("min", "max", "any", "all", "sum"):
            yield "function", ast.Name(other, ast.Load())


def _call(node: ast.Call) -> Iterator[Edit]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    for number, keyword in enumerate(node.keywords):
        others = [*node.keywords[:number], *node.keywords[number + 1 :]]
        if keyword.arg not in ("dtype", "copy", None):
            yield "argument dropped", ast.Call(node.func, node.args, others)
        if keyword.arg == "axis" and not isinstance(keyword.value, (ast.Constant, ast.Tuple)):
            earlier = ast.BinOp(keyword.value, ast.Sub(), ast.Constant(1))
            changed = [*node.keywords[:number], ast.keyword("axis", earlier), *node.keywords[number + 1 :]]
            yield "axis", ast.Call(node.func, node.args, changed)
    if name == "where" and len(node.args) == 3:
        condition, yes, no = node.args
        yield "order", ast.Call(node.func, [condition, no, yes], node.keywords)
        yield "condition", yes
        yield "condition", no
    elif len(node.args) == 2 and name in ("subtract", "divide", "true_divide", "power", "arctan2", "matmul", "mod"):
        yield "order", ast.Call(node.func, node.args[::-1], node.keywords)
    if name in ("maximum", "minimum", "max", "min") and len(node.args) == 2 and not node.keywords:
        for bound in node.args:
            if not isinstance(bound, ast.Starred):
                yield "bound dropped", bound
    elif name == "clip" and node.args and isinstance(node.func, ast.Attribute):
        yield "bound dropped", node.args[0]
    elif name in ("sorted", "reversed", "abs", "round", "unique", "flip", "square", "sqrt") and len(node.args) == 1:
        yield "call dropped", node.args[0]
    elif name == "range" and len(node.args) < 3 and not isinstance(node.args[-1], ast.Constant):
        shorter = ast.BinOp(node.args[-1], ast.Sub(), ast.Constant(1))
        yield "range", ast.Call(node.func, [*node.args[:-1], shorter], [])


def _slice(node: ast.Slice) -> Iterator[Edit]:
    one = ast.Constant(1)
    if node.upper is not None and not isinstance(node.upper, ast.Constant):
        yield "slice", ast.Slice(node.lower, ast.BinOp(node.upper, ast.Sub(), one), node.step)
    if node.lower is not None and not isinstance(node.lower, ast.Constant):
        yield "slice", ast.Slice(ast.BinOp(node.lower, ast.Add(), one), node.upper, node.step)
        yield "slice", ast.Slice(None, node.upper, node.step)
    if node.step is not None:
        yield "slice", ast.Slice(node.lower, node.upper, None)


def _condition(node: ast.If | ast.While | ast.IfExp) -> Iterator[Edit]:
    if isinstance(node, ast.IfExp):
        yield "condition", node.body
        yield "condition", node.orelse
    elif isinstance(node, ast.If):
        yield "condition", ast.If(ast.Constant(True), node.body, node.orelse)
        yield "condition", ast.If(ast.Constant(False), node.body, node.orelse)
    else:
        yield "condition", ast.While(ast.Constant(False), node.body, node.orelse)


def _comprehension(node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Iterator[Edit]:
    for number, generator in enumerate(node.generators):
        if generator.ifs:
            all_of_them = ast.comprehension(generator.target, generator.iter, [], generator.is_async)
            generators = [*node.generators[:number], all_of_them, *node.generators[number + 1 :]]
            yield "condition", type(node)(node.elt, generators)
