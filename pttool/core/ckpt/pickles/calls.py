"""The calls in a pickle that stand for plain objects, as those objects."""

from pttool.core.ckpt.pickles.nodes import Call, Dict, Global, List, Node, Persistent, Set

# What protocols 0 and 1 call to make an object of its first argument, a class.
RECONSTRUCTORS = ("copyreg._reconstructor", "copy_reg._reconstructor")
SETS = ("builtins.set", "builtins.frozenset", "__builtin__.set", "__builtin__.frozenset")


def called(function: Node, args: Node, kwargs: Node = None) -> Node:
    """Return the node of a call: a dict, set or bytes where that is all that it makes.

    A class that old torch.save kept with its source text beside it stands for itself.
    """
    function = named(function) or function
    if not isinstance(function, Global) or not isinstance(args, tuple):
        return Call(function, args, kwargs)
    path = function.path
    plain: Node = None
    if path == "collections.OrderedDict":
        plain = _ordered_dict(args)
    elif path in RECONSTRUCTORS and len(args) == 3:
        plain = Call(args[0], ())
    elif path in SETS and len(args) == 1 and isinstance(args[0], List):
        plain = Set(args[0].items)
    elif path == "_codecs.encode":
        plain = _encoded(args)
    return Call(function, args, kwargs) if plain is None else plain


def named(function: Node) -> Global | None:
    """Return the name that a function is fetched by, or None for one that is computed."""
    if isinstance(function, Persistent) and isinstance(function.id, tuple):
        return next((part for part in function.id[:2] if isinstance(part, Global)), None)
    return function if isinstance(function, Global) else None


def _ordered_dict(args: tuple[Node, ...]) -> Dict | None:
    """Return an OrderedDict, which is empty at first; old ones are called with their pairs."""
    if not args:
        return Dict()
    if len(args) != 1 or not isinstance(args[0], List):
        return None
    pairs = []
    for pair in args[0].items:
        parts = pair.items if isinstance(pair, List) else pair
        if not (isinstance(parts, (list, tuple)) and len(parts) == 2):
            return None
        pairs.append((parts[0], parts[1]))
    return Dict(pairs)


def _encoded(args: tuple[Node, ...]) -> bytes | None:
    """Return bytes, which protocols below 3 write as a text with a character for each."""
    if len(args) != 2 or args[1] not in ("latin1", "latin-1") or not isinstance(args[0], str):
        return None
    try:
        return args[0].encode("latin-1")
    except UnicodeEncodeError:
        return None
