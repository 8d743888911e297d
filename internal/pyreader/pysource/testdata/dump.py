"""Print the syntax tree or the tokens of Python files in the form of the Go test dump_test.go.

usage: dump.py ast|tokens < list of files         one line for each file: its hash, or what Python says against it
       dump.py ast|tokens FILE                    the dump itself
"""

import ast
import hashlib
import struct
import sys
import tokenize
import warnings

warnings.simplefilter("ignore")
sys.setrecursionlimit(20000)

SKIPPED = {"ctx", "type_comment", "kind", "simple", "type_ignores"}
OPERATORS = {
    "Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "MatMult": "@", "BitAnd": "&", "BitOr": "|",
    "BitXor": "^", "LShift": "<<", "RShift": ">>", "Pow": "**", "And": "and", "Or": "or", "Not": "not", "USub": "-", "UAdd": "+",
    "Invert": "~", "Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=", "Is": "is", "IsNot": "is not",
    "In": "in", "NotIn": "not in",
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


def write(out, node, inside):
    if node is None:
        out.append("-")
    elif isinstance(node, list):
        out.append("[")
        for item in node:
            write(out, item, inside)
        out.append("]")
    elif isinstance(node, str):
        out.append("s" + node.encode("utf-8", "surrogatepass").hex())
    elif isinstance(node, int):
        out.append("n%d" % node)
    else:
        name = type(node).__name__
        if name in OPERATORS:
            out.append("s" + OPERATORS[name].encode().hex())
            return
        out.append("(" + name)
        # positions within f-strings differ between versions of Python
        if hasattr(node, "lineno") and not inside:
            out.append("%d:%d-%d:%d" % (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset))
        inside = inside or isinstance(node, ast.JoinedStr)
        for field in node._fields:
            if field in SKIPPED or field == "default_value":
                continue
            value = getattr(node, field, None)
            if field == "type_params" and not value:
                value = []
            if isinstance(node, (ast.Constant, ast.MatchSingleton)) and field == "value":
                out.append(constant(value))
            else:
                write(out, value, inside)
        if sys.version_info < (3, 12) and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            out.extend("[]")
        out.append(")")


def dump_ast(path):
    with open(path, "rb") as f:
        source = f.read()
    out = []
    write(out, ast.parse(source, path).body, False)
    return "".join(line + "\n" for line in out)


def dump_tokens(path):
    out = []
    depth, start = 0, None
    with open(path, "rb") as f:
        lines = f.read().decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    table = lines.split("\n")

    def between(a, b):
        if a[0] == b[0]:
            return table[a[0] - 1][a[1]:b[1]]
        middle = table[a[0]:b[0] - 1]
        return "\n".join([table[a[0] - 1][a[1]:], *middle, table[b[0] - 1][:b[1]]])

    from io import BytesIO
    for t in tokenize.tokenize(BytesIO(lines.encode()).readline):
        name = tokenize.tok_name[t.type]
        text = t.string
        begin = t.start
        if name == "FSTRING_START":
            if depth == 0:
                start = t.start
            depth += 1
            continue
        if name == "FSTRING_END":
            depth -= 1
            if depth == 0:
                name, text, begin = "STRING", between(start, t.end), start
        if depth > 0 or name in ("ENCODING", "DEDENT", "ENDMARKER"):
            continue
        if name == "ERRORTOKEN":
            raise SyntaxError("error token %r" % text)
        if name in ("NEWLINE", "NL"):
            text = ""
        out.append("%s %d:%d %s" % (name, begin[0], len(table[begin[0] - 1][:begin[1]].encode()), text.encode().hex()))
    return "".join(line + "\n" for line in out)


def main():
    dump = {"ast": dump_ast, "tokens": dump_tokens}[sys.argv[1]]
    if len(sys.argv) > 2:
        sys.stdout.write(dump(sys.argv[2]))
        return
    for line in sys.stdin:
        try:
            print(hashlib.sha256(dump(line.rstrip("\n")).encode()).hexdigest(), flush=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError) as e:
            print("! %s: %s" % (type(e).__name__, str(e).replace("\n", " ")), flush=True)


main()
