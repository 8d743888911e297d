package pyreader

import (
	"errors"
	"fmt"
	"math"
	"math/big"

	"github.com/primus-fl/primus/internal/pyreader/internal/eval"
	"github.com/primus-fl/primus/internal/pyreader/internal/syntax"
)

// Version returns the version that a module states in literals at its top level: __version__, or
// MAJOR, MINOR and PATCH with PRE_RELEASE after them.
func Version(file string, text []byte) (string, error) {
	parsed, err := syntax.Parse(file, text, nil)
	if err != nil {
		return "", err
	}
	return stated(parsed)
}

func stated(f *syntax.File) (string, error) {
	if v := f.Version(); v != "" {
		return v, nil
	}
	return "", fmt.Errorf("%s: it states no version: want __version__ or MAJOR, MINOR and PATCH", f.Name)
}

// fileVersion returns the version that a file of a source tree states.
func fileVersion(tree, file string) (string, error) {
	files, err := source(tree)
	if err != nil {
		return "", err
	}
	parsed, err := eval.New(files).Parse(file)
	if err != nil {
		return "", err
	}
	return stated(parsed)
}

// Field is a field of a dataclass.
type Field struct {
	Below    map[string]Field // the fields of its type if that is a class of the file, else nil
	Nullable bool             // None is its default
}

// Fields returns the fields of a class of a module, by the annotations in its body.
func Fields(file string, text []byte, class string) (map[string]Field, error) {
	parsed, err := syntax.Parse(file, text, nil)
	if err != nil {
		return nil, err
	}
	classes := map[string]*syntax.Node{}
	for _, s := range parsed.Body {
		if s.Kind == syntax.ClassDef {
			classes[s.Name] = s
		}
	}
	if classes[class] == nil {
		return nil, fmt.Errorf("%s: it has no class %s, want the dataclass of the configuration", file, class)
	}
	return fieldsOf(classes, class, map[string]bool{}), nil
}

func fieldsOf(classes map[string]*syntax.Node, name string, open map[string]bool) map[string]Field {
	open[name] = true
	defer delete(open, name)
	fields := map[string]Field{}
	for _, s := range classes[name].Body {
		if s.Kind != syntax.AnnAssign || s.Target.Kind != syntax.Name {
			continue
		}
		f := Field{Nullable: s.Value.Is(syntax.Constant) && s.Value.Const == nil}
		if of := s.Annotation.Ident(); classes[of] != nil && !open[of] {
			f.Below = fieldsOf(classes, of, open)
		}
		fields[s.Target.Name] = f
	}
	return fields
}

// maxLength bounds the length of a list that an expression makes.
const maxLength = 1 << 16

// Numbers evaluates an expression of integers and lists that are added and repeated, such as
// ([0]*1+[1]*26), to an int64 or a []any.
func Numbers(text string) (any, error) {
	parsed, err := syntax.Parse("expression", []byte(text+"\n"), nil)
	if err != nil || len(parsed.Body) != 1 || parsed.Body[0].Kind != syntax.ExprStmt {
		return nil, errors.New("is not an expression")
	}
	if v, ok := evaluate(parsed.Body[0].Value); ok && integers(v) {
		return v, nil
	}
	return nil, errors.New("has more than numbers and lists that are added and repeated")
}

func integers(v any) bool {
	list, ok := v.([]any)
	for _, item := range list {
		ok = ok && integers(item)
	}
	_, number := v.(int64)
	return ok || number
}

// evaluate returns the value of an expression; known is false when it is computed. A member of an
// enumeration is its name, and a number out of a variable the number that stands in for it.
func evaluate(e *syntax.Node) (value any, known bool) {
	if e == nil {
		return nil, false
	}
	switch e.Kind {
	case syntax.Constant:
		switch v := e.Const.(type) {
		case *big.Int:
			return v.Int64(), v.IsInt64()
		case nil, bool, string, float64:
			return v, true
		}
	case syntax.UnaryOp:
		v, _ := evaluate(e.Value)
		switch v := v.(type) {
		case int64:
			return -v, e.Name == "-"
		case float64:
			return -v, e.Name == "-"
		}
	case syntax.BinOp:
		left, ok := evaluate(e.Value)
		right, both := evaluate(e.Right)
		if ok && both {
			return combine(left, e.Name, right)
		}
	case syntax.List:
		items := []any{}
		for _, item := range e.List {
			v, ok := evaluate(item)
			if !ok {
				return nil, false
			}
			items = append(items, v)
		}
		return items, true
	case syntax.Attribute:
		if base := e.Value.Ident(); base != "" {
			return e.Name, base != "args"
		}
	case syntax.Call: // int(os.getenv(name, default)) where the variable is not set
		if calls(e, "int") && len(e.List) == 1 && (calls(e.List[0], "getenv") || calls(e.List[0], "get")) && len(e.List[0].List) == 2 {
			digits, ok := e.List[0].List[1].Str()
			n, isNumber := new(big.Int).SetString(digits, 10)
			return n.Int64(), ok && isNumber
		}
	}
	return nil, false
}

// combine adds, subtracts, multiplies and raises integers, and adds and repeats lists.
func combine(left any, op string, right any) (any, bool) {
	a, first := left.(int64)
	b, second := right.(int64)
	x, list := left.([]any)
	y, lists := right.([]any)
	switch {
	case first && second && op == "+":
		return a + b, true
	case first && second && op == "-":
		return a - b, true
	case first && second && op == "*":
		return a * b, true
	case first && second && op == "**" && b >= 0 && b < 63:
		return int64(math.Pow(float64(a), float64(b))), true
	case list && lists && op == "+":
		return append(x[:len(x):len(x)], y...), len(x)+len(y) <= maxLength
	case first && lists:
		return combine(right, op, left)
	case list && second && op == "*" && (len(x) == 0 || b <= maxLength/int64(len(x))):
		repeated := []any{}
		for range b {
			if len(x) > 0 {
				repeated = append(repeated, x...)
			}
		}
		return repeated, true
	}
	return nil, false
}

// calls reports whether an expression is the call of a function, by its name or as an attribute.
func calls(e *syntax.Node, function string) bool {
	return e.Is(syntax.Call) && (e.Value.Kind == syntax.Name || e.Value.Kind == syntax.Attribute) && e.Value.Name == function
}
