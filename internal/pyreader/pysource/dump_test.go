package pysource_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strings"

	"github.com/primus-fl/primus/internal/pyreader/pysource"
)

// dumper writes a syntax tree as testdata/dump.py does: a line for each node, field and bracket.
type dumper struct {
	file *pysource.File
	out  strings.Builder
}

func dumpAST(f *pysource.File) string {
	d := &dumper{file: f}
	d.value(reflect.ValueOf(f.Body), false)
	return d.out.String()
}

func (d *dumper) line(format string, args ...any) { fmt.Fprintf(&d.out, format+"\n", args...) }

// positionless are nodes that have no place in Python's tree.
var positionless = map[string]bool{"arguments": true, "withitem": true, "comprehension": true, "match_case": true}

// pythonNames are of the nodes that are called otherwise in Python.
var pythonNames = map[string]string{
	"ExprStmt": "Expr", "Arguments": "arguments", "Arg": "arg", "Keyword": "keyword", "Alias": "alias", "WithItem": "withitem",
	"Generator": "comprehension", "MatchCase": "match_case",
}

func (d *dumper) value(v reflect.Value, inside bool) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			d.line("-")
			return
		}
		if v.Kind() == reflect.Pointer {
			d.node(v, inside)
			return
		}
		d.value(v.Elem(), inside)
	case reflect.Slice:
		d.line("[")
		for i := range v.Len() {
			d.value(v.Index(i), inside)
		}
		d.line("]")
	case reflect.String:
		d.line("s%x", v.String())
	case reflect.Int:
		d.line("n%d", v.Int())
	default:
		panic("unexpected " + v.Kind().String())
	}
}

func (d *dumper) node(v reflect.Value, inside bool) {
	s := v.Elem()
	name := s.Type().Name()
	if other, ok := pythonNames[name]; ok {
		name = other
	}
	isField := func(field string) bool { return s.FieldByName(field).IsValid() }
	switch {
	case isField("Async") && name != "comprehension" && s.FieldByName("Async").Bool():
		name = "Async" + name
	case isField("Star") && s.FieldByName("Star").Bool():
		name = "TryStar"
	case isField("Kind"):
		name = s.FieldByName("Kind").String()
	}
	d.line("(%s", name)
	if node, ok := v.Interface().(pysource.Node); ok && !inside && !positionless[name] {
		line, column := d.file.Position(node.Range().Start)
		endLine, endColumn := d.file.Position(node.Range().End)
		d.line("%d:%d-%d:%d", line, column, endLine, endColumn)
	}
	inside = inside || name == "JoinedStr"
	for i := range s.NumField() {
		d.field(name, s.Type().Field(i).Name, s.Field(i), inside)
	}
	d.line(")")
}

// optional are the texts that are None in Python when they are empty.
var optional = map[string]bool{
	"keyword.Name": true, "alias.AsName": true, "ExceptHandler.Name": true, "MatchMapping.Rest": true, "MatchStar.Name": true,
	"MatchAs.Name": true, "ImportFrom.Module": true,
}

func (d *dumper) field(node, field string, v reflect.Value, inside bool) {
	path := node + "." + field
	switch {
	case field == "Span" || field == "stmtNode" || field == "exprNode" || field == "patternNode" || field == "Kind" || field == "Star",
		field == "Async" && node != "comprehension", field == "Default", strings.HasSuffix(path, "Comp.Value") && v.IsNil() && node != "DictComp",
		path == "GeneratorExp.Value", path == "TypeVarTuple.Bound", path == "ParamSpec.Bound":
	case path == "Constant.Value", path == "MatchSingleton.Value":
		d.constant(v.Interface())
	case field == "Async":
		d.line("n%d", map[bool]int{true: 1}[v.Bool()])
	case optional[path] && v.String() == "":
		d.line("-")
	case path == "AnnAssign.Value":
		d.value(v, inside)
	default:
		d.value(v, inside)
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
	case pysource.Bytes:
		d.line("b%x", string(v))
	case *big.Int:
		d.line("i%x", v)
	case float64:
		d.line("f%s", bits(v))
	case complex128:
		d.line("c%s", bits(imag(v)))
	case pysource.Ellipsis:
		d.line("Ellipsis")
	default:
		panic(fmt.Sprintf("unexpected %T", value))
	}
}

var tokenNames = map[pysource.TokenKind]string{
	pysource.NameToken: "NAME", pysource.NumberToken: "NUMBER", pysource.StringToken: "STRING", pysource.OpToken: "OP",
	pysource.Newline: "NEWLINE", pysource.Indent: "INDENT", pysource.Comment: "COMMENT", pysource.BlankNewline: "NL",
}

// dumpTokens leaves out dedents, whose places differ between versions of Python.
func dumpTokens(tokens []pysource.Token, f *pysource.File) string {
	var out strings.Builder
	for _, t := range tokens {
		name := tokenNames[t.Kind]
		if name == "" {
			continue
		}
		text := t.Text
		if t.Kind == pysource.Newline || t.Kind == pysource.BlankNewline {
			text = ""
		}
		line, column := f.Position(t.Start)
		fmt.Fprintf(&out, "%s %d:%d %x\n", name, line, column, text)
	}
	return out.String()
}
