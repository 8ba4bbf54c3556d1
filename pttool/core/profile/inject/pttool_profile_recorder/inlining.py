"""Put hooks into a function of torch without a frame, a name or a line of their own.

A wrapper would show: in each traceback that passes through it, in a warning's stack level, in the
depth of recursion, in what the script imported before. So the function's source is compiled again
with the hook's calls in it, under its own file name and line numbers, and becomes its code.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    from collections.abc import Sequence
    from types import CodeType
    from typing import Any

HOOK = "pttool's hook"  # the constant that the hook takes the place of
BODY = "BODY"  # a statement that the function's own body takes the place of
ALWAYS = """
_pttool_hook = HOOK
try:
    _pttool_token = _pttool_hook.enter({arguments})
except RecursionError:  # which the body's next call is to raise
    _pttool_token = None
except BaseException as _pttool_error:  # of a signal's handler, as Ctrl-C: not from the hook
    raise _pttool_error.with_traceback(None)
try:
    BODY
finally:
    if _pttool_token is not None:
        try:
            _pttool_hook.leave(_pttool_token)
        except BaseException as _pttool_error:
            raise _pttool_error.with_traceback(None)
"""
# Dynamo, which traces some of these functions, folds the condition away and sees the body alone.
UNLESS_TRACED = "if torch.compiler.is_dynamo_compiling():\n    BODY\nelse:" + ALWAYS.replace(
    "\n", "\n    "
)


class Hook:
    """What can be put into a function: has `enter`, and as needed `leave` and `mark`."""

    def __deepcopy__(self, memo: "dict[int, Any]") -> "Hook":
        """Return itself: Dynamo copies the constants of the code that it resumes."""
        return self


def inline(
    function: "Any",
    hook: Hook,
    arguments: str = "",
    *,
    inner: str | None = None,
    may_be_traced: bool = False,
    before_call: str | None = None,
) -> None:
    """Have a function call `hook.enter(arguments)` first and `hook.leave(what that gave)` last.

    `arguments` are names of its parameters; None from `enter` leaves out `leave`. With `inner`, it
    is the function of that name defined in it that does so. With `before_call`, a return of a
    method of that name of self is preceded by `hook.mark(self, its argument)`.

    Raises ValueError for a function that isn't as expected, OSError without its source.
    """
    import ast

    code = function.__code__
    lines, first_line = _source(function)
    *classes, name = code.co_qualname.split(".")
    header = [f"{' ' * depth}class {each}:\n" for depth, each in enumerate(classes)]
    tree = ast.parse("".join([*header, *lines]))
    ast.increment_lineno(tree, first_line - 1 - len(header))
    path = [name] if inner is None else [name, inner]
    definition = _definition(tree, path)
    if before_call is not None:
        _mark(definition, before_call)
    around = UNLESS_TRACED if may_be_traced else ALWAYS
    _surround(definition, around.format(arguments=arguments))
    function.__code__ = _recompiled(tree, code, [*classes, name], hook)


def _source(function: "Any") -> "tuple[list[str], int]":
    """Return a function's lines and the first one's number; leave no file in linecache.

    Each traceback that is printed has linecache look at all of its files again.
    """
    import inspect
    import linecache

    kept = set(linecache.cache)
    try:
        return inspect.getsourcelines(function)
    finally:
        for name in set(linecache.cache) - kept:
            del linecache.cache[name]


def _definition(tree: "ast.AST", path: "Sequence[str]") -> "ast.FunctionDef":
    import ast

    found: ast.AST = tree
    for name in path:
        found = next(
            each
            for each in ast.walk(found)
            if isinstance(each, ast.FunctionDef) and each.name == name
        )
    assert isinstance(found, ast.FunctionDef)
    return found


def _surround(definition: "ast.FunctionDef", around: str) -> None:
    """Put statements around a function's body, below its docstring."""
    import ast

    body = definition.body
    has_docstring = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    statements = _statements(around, definition.lineno)
    for node in [each for statement in statements for each in ast.walk(statement)]:
        inside = getattr(node, "body", None)
        if isinstance(inside, list) and ast.unparse(inside[0]) == BODY:
            node.body = body[has_docstring:]  # type: ignore[attr-defined]
    definition.body = [*body[:has_docstring], *statements]


def _mark(definition: "ast.FunctionDef", method: str) -> None:
    """Put a call of `hook.mark` before the statement that returns self.METHOD(argument)."""
    import ast

    for index, statement in enumerate(definition.body):
        if (
            isinstance(statement, ast.Return)
            and isinstance(call := statement.value, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr == method
            and isinstance(call.args[0], ast.Name)
        ):
            mark = f"_pttool_hook.mark(self, {call.args[0].id})"
            definition.body[index:index] = _statements(mark, statement.lineno)
            return
    raise ValueError(f"{definition.name} returns no {method}")


def _statements(source: str, line: int) -> "list[ast.stmt]":
    """Parse statements that all stand at one line."""
    import ast

    tree = ast.parse(source.replace("HOOK", repr(HOOK)))
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.expr):
            node.lineno = node.end_lineno = line
            node.col_offset = node.end_col_offset = 0
    return tree.body


def _recompiled(
    tree: "ast.Module", code: "CodeType", path: "Sequence[str]", hook: Hook
) -> "CodeType":
    import __future__

    features = 0
    for name in __future__.all_feature_names:
        features |= getattr(__future__, name).compiler_flag
    new = compile(tree, code.co_filename, "exec", flags=code.co_flags & features, dont_inherit=True)
    for name in path:
        new = next(each for each in new.co_consts if getattr(each, "co_name", None) == name)
    if new.co_freevars != code.co_freevars:
        raise ValueError(f"{code.co_qualname} closes over other variables")
    return _hooked(new, hook)


def _hooked(code: "CodeType", hook: Hook) -> "CodeType":
    constants = tuple(
        _hooked(each, hook)
        if isinstance(each, type(code))
        else (hook if type(each) is str and each == HOOK else each)
        for each in code.co_consts
    )
    return code.replace(co_consts=constants)
