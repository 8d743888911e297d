package syntax_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"strings"

	"github.com/primus-fl/primus/internal/pyreader/internal/syntax"
)

// kinds are the names of the kinds of nodes, in their order.
var kinds = func() map[syntax.Kind]string {
	kinds := map[syntax.Kind]string{}
	for first, names := range map[syntax.Kind]string{
		syntax.FunctionDef: `FunctionDef ClassDef Return Delete Assign AugAssign AnnAssign TypeAlias For While If With Match Raise Try Assert
			Import ImportFrom Global Nonlocal ExprStmt Pass Break Continue`,
		syntax.BoolOp: `BoolOp NamedExpr BinOp UnaryOp Lambda IfExp Dict Set ListComp SetComp GeneratorExp DictComp Await Yield YieldFrom
			Compare Call FormattedValue JoinedStr Constant Attribute Subscript Starred Name List Tuple Slice`,
		syntax.Param: "Param Keyword Alias WithItem Handler Generator Case",
	} {
		for i, name := range strings.Fields(names) {
			kinds[first+syntax.Kind(i)] = name
		}
	}
	return kinds
}()

// dumper writes a syntax tree as testdata/dump.py does: a line for each node, field and bracket.
type dumper struct {
	file *syntax.File
	out  strings.Builder
}

func dumpAST(f *syntax.File) string {
	d := &dumper{file: f}
	for _, s := range f.Body {
		d.node(s, false)
	}
	return d.out.String()
}

func (d *dumper) line(format string, args ...any) { fmt.Fprintf(&d.out, format+"\n", args...) }

func (d *dumper) position(n *syntax.Node) {
	line, column := d.file.Position(n.Start)
	endLine, endColumn := d.file.Position(n.End)
	d.line("%d:%d-%d:%d", line, column, endLine, endColumn)
}

func (d *dumper) node(n *syntax.Node, inside bool) {
	if n == nil {
		d.line("-")
		return
	}
	d.line("(%s", kinds[n.Kind])
	if !inside && n.Kind != syntax.Generator && n.Kind != syntax.WithItem && n.Kind != syntax.Case {
		d.position(n)
	}
	inside = inside || n.Kind == syntax.JoinedStr
	if n.Async {
		d.line("async")
	}
	if n.Kind == syntax.Constant {
		d.constant(n.Const)
	}
	parts := n.Parts
	if parts == nil {
		parts = &syntax.Parts{}
	}
	for _, field := range [][2]string{{"Name", n.Name}, {"As", parts.As}, {"Level", fmt.Sprint(parts.Level)}, {"Words", strings.Join(parts.Words, " ")}} {
		if field[1] != "" && field[1] != "0" {
			d.line("%s %s", field[0], field[1])
		}
	}
	if n.Kind == syntax.Case {
		d.line("Value\n(pattern")
		d.position(n.Value)
		n.Value = nil
	}
	d.list("Keys", inside, parts.Keys...)
	d.list("Targets", inside, parts.Targets...)
	d.one("Target", inside, n.Target)
	d.one("Annotation", inside, parts.Annotation)
	d.one("Value", inside, n.Value)
	d.one("Right", inside, n.Right)
	d.list("List", inside, n.List...)
	d.list("Params", inside, parts.Params...)
	d.list("Keywords", inside, parts.Keywords...)
	d.list("Body", inside, parts.Body...)
	d.list("Handlers", inside, parts.Handlers...)
	d.list("Else", inside, parts.Else...)
	d.list("Finally", inside, parts.Finally...)
	d.list("Decorators", inside, parts.Decorators...)
	d.one("Returns", inside, parts.Returns)
	d.line(")")
}

func (d *dumper) one(field string, inside bool, n *syntax.Node) {
	if n != nil {
		d.list(field, inside, n)
	}
}

func (d *dumper) list(field string, inside bool, nodes ...*syntax.Node) {
	if len(nodes) > 0 {
		d.line("%s", field)
	}
	for _, n := range nodes {
		d.node(n, inside)
	}
}

func (d *dumper) constant(value any) {
	bits := func(f float64) string {
		return hex.EncodeToString(binary.BigEndian.AppendUint64(nil, math.Float64bits(f)))
	}
	switch v := value.(type) {
	case nil:
		d.line("None")
	case bool:
		d.line("%s", map[bool]string{true: "True", false: "False"}[v])
	case string:
		d.line("s%x", v)
	case syntax.Bytes:
		d.line("b%x", string(v))
	case *big.Int:
		d.line("i%x", v)
	case float64:
		d.line("f%s", bits(v))
	case complex128:
		d.line("c%s", bits(imag(v)))
	case syntax.Ellipsis:
		d.line("Ellipsis")
	default:
		panic(fmt.Sprintf("unexpected %T", value))
	}
}

func dumpComments(f *syntax.File) string {
	var out strings.Builder
	for _, c := range f.Comments {
		line, column := f.Position(c.Start)
		fmt.Fprintf(&out, "%d:%d %s\n", line, column, c.Text)
	}
	return out.String()
}
