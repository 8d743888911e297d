"""Print the syntax tree or the comments of Python files in the form of the Go test dump_test.go.

usage: dump.py ast|comments < list of files         one line for each file: its hash, or what Python says against it
       dump.py ast|comments FILE                    the dump itself
"""

import ast
import hashlib
import io
import struct
import sys
import tokenize
import warnings

warnings.simplefilter("ignore")
sys.setrecursionlimit(20000)

OPERATORS = {
    "Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "MatMult": "@", "BitAnd": "&", "BitOr": "|",
    "BitXor": "^", "LShift": "<<", "RShift": ">>", "Pow": "**", "And": "and", "Or": "or", "Not": "not", "USub": "-", "UAdd": "+",
    "Invert": "~", "Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=", "Is": "is", "IsNot": "is not",
    "In": "in", "NotIn": "not in",
}

# The kinds of nodes that are called otherwise in Go.
KINDS = {
    "AsyncFunctionDef": "FunctionDef", "AsyncFor": "For", "AsyncWith": "With", "TryStar": "Try", "Expr": "ExprStmt", "arg": "Param",
    "keyword": "Keyword", "alias": "Alias", "withitem": "WithItem", "ExceptHandler": "Handler", "comprehension": "Generator",
    "match_case": "Case",
}

# The fields of nodes, by those of Node in Go.
FIELDS = {
    "FunctionDef": "Name=name Params=args Body=body Decorators=decorator_list Returns=returns",
    "ClassDef": "Name=name List=bases Keywords=keywords Body=body Decorators=decorator_list",
    "Return": "Value=value", "Delete": "Targets=targets", "Assign": "Targets=targets Value=value",
    "AugAssign": "Name=op Target=target Value=value", "AnnAssign": "Target=target Annotation=annotation Value=value",
    "TypeAlias": "Target=name Value=value", "For": "Target=target Value=iter Body=body Else=orelse",
    "While": "Value=test Body=body Else=orelse", "If": "Value=test Body=body Else=orelse", "With": "List=items Body=body",
    "Match": "Value=subject List=cases", "Raise": "Value=exc Right=cause",
    "Try": "Body=body Handlers=handlers Else=orelse Finally=finalbody", "Assert": "Value=test Right=msg", "Import": "List=names",
    "ImportFrom": "Name=module Level=level List=names", "Global": "Words=names", "Nonlocal": "Words=names", "ExprStmt": "Value=value",
    "Pass": "", "Break": "", "Continue": "",
    "BoolOp": "Name=op List=values", "NamedExpr": "Target=target Value=value", "BinOp": "Name=op Value=left Right=right",
    "UnaryOp": "Name=op Value=operand", "Lambda": "Params=args Returns=body", "IfExp": "Value=test List=body,orelse",
    "Dict": "Keys=keys List=values", "Set": "List=elts", "ListComp": "Value=elt List=generators", "SetComp": "Value=elt List=generators",
    "GeneratorExp": "Value=elt List=generators", "DictComp": "Value=key Right=value List=generators", "Await": "Value=value",
    "Yield": "Value=value", "YieldFrom": "Value=value", "Compare": "Words=ops Value=left List=comparators",
    "Call": "Value=func List=args Keywords=keywords", "FormattedValue": "Level=conversion Value=value Right=format_spec",
    "JoinedStr": "List=values", "Constant": "", "Attribute": "Name=attr Value=value", "Subscript": "Value=value Right=slice",
    "Starred": "Value=value", "Name": "Name=id", "List": "List=elts", "Tuple": "List=elts", "Slice": "List=lower,upper,step",
    "Param": "Name=arg Level=role Annotation=annotation Value=default", "Keyword": "Name=arg Value=value", "Alias": "Name=name As=asname",
    "WithItem": "Target=optional_vars Value=context_expr", "Handler": "As=name Value=type Body=body",
    "Generator": "Target=target Value=iter List=ifs", "Case": "Value=pattern Right=guard Body=body",
}


def constant(value):
    if isinstance(value, str):
        return "s" + value.encode("utf-8", "surrogatepass").hex()
    if isinstance(value, bytes):
        return "b" + value.hex()
    if isinstance(value, bool) or value is None or value is Ellipsis:
        return str(value)
    if isinstance(value, int):
        return "i%x" % value
    if isinstance(value, float):
        return "f" + struct.pack(">d", value).hex()
    return "c" + struct.pack(">d", value.imag).hex()


def parameters(args):
    """The parameters of a function in the order of the source, with their roles and defaults."""
    found = []
    plain = args.posonlyargs + args.args
    for i, arg in enumerate(plain):
        at = i - len(plain) + len(args.defaults)
        arg.role, arg.default = (1 if i < len(args.posonlyargs) else 2), (args.defaults[at] if at >= 0 else None)
        found.append(arg)
    for role, arg in ((3, args.vararg), *((4, a) for a in args.kwonlyargs), (5, args.kwarg)):
        if arg is not None:
            arg.role, arg.default = role, None
            found.append(arg)
    for arg, default in zip(args.kwonlyargs, args.kw_defaults):
        arg.default = default
    return found


def write(out, node, inside):
    if node is None:
        out.append("-")
        return
    name = type(node).__name__
    kind = KINDS.get(name, name)
    if isinstance(node, ast.pattern):
        kind = "pattern"
    out.append("(" + kind)
    if hasattr(node, "lineno") and not inside:
        out.append("%d:%d-%d:%d" % (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset))
    if kind == "pattern":
        return
    inside = inside or kind == "JoinedStr" # positions within f-strings differ between versions of Python
    if name.startswith("Async") or getattr(node, "is_async", 0):
        out.append("async")
    if kind == "Constant":
        out.append(constant(node.value))
    for field in FIELDS[kind].split():
        field, _, attributes = field.partition("=")
        values = [getattr(node, a) for a in attributes.split(",")]
        value = values if len(values) > 1 else values[0]
        if isinstance(value, ast.arguments):
            value = parameters(value)
        if isinstance(value, (ast.operator, ast.unaryop, ast.boolop)):
            value = OPERATORS[type(value).__name__]
        if field == "Words":
            value = " ".join(v if isinstance(v, str) else OPERATORS[type(v).__name__] for v in value)
        if value in (None, "", 0, -1, []):
            continue
        if isinstance(value, (str, int)):
            out.append("%s %s" % (field, value))
            continue
        out.append(field)
        for each in value if isinstance(value, list) else [value]:
            write(out, each, inside)
    out.append(")")


def dump_ast(source):
    out = []
    for statement in ast.parse(source).body:
        write(out, statement, False)
    return "".join(line + "\n" for line in out)


def dump_comments(source):
    text = source.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    out = []
    depth = 0
    for t in tokenize.tokenize(io.BytesIO(text.encode()).readline):
        name = tokenize.tok_name[t.type]
        depth += {"FSTRING_START": 1, "FSTRING_END": -1}.get(name, 0)
        if name == "ERRORTOKEN":
            raise SyntaxError("error token %r" % t.string)
        if name == "COMMENT" and depth == 0:
            row, column = t.start
            out.append("%d:%d %s\n" % (row, len(lines[row - 1][:column].encode()), t.string))
    return "".join(out)


def dump(path):
    with open(path, "rb") as f:
        return {"ast": dump_ast, "comments": dump_comments}[sys.argv[1]](f.read())


def main():
    if len(sys.argv) > 2:
        sys.stdout.write(dump(sys.argv[2]))
        return
    for line in sys.stdin:
        try:
            print(hashlib.sha256(dump(line.rstrip("\n")).encode()).hexdigest(), flush=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError) as e:
            print("! %s: %s" % (type(e).__name__, str(e).replace("\n", " ")), flush=True)


main()
