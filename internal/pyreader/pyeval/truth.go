package pyeval

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/primus-fl/primus/internal/pyreader/pysource"
)

// Truth is true, false or unknown.
type Truth uint8

// The values of Truth.
const (
	Unknown Truth = iota
	True
	False
)

func truthOf(b bool) Truth {
	if b {
		return True
	}
	return False
}

// Not returns the opposite.
func (t Truth) Not() Truth {
	switch t {
	case True:
		return False
	case False:
		return True
	}
	return Unknown
}

func (t Truth) value() Value { return Const{t == True} }

// Truth returns the truth of a value in a condition.
func (m *Machine) Truth(v Value) Truth {
	switch v := m.resolve(v).(type) {
	case Const:
		switch c := v.V.(type) {
		case nil:
			return False
		case bool:
			return truthOf(c)
		case *big.Int:
			return truthOf(c.Sign() != 0)
		case float64:
			return truthOf(c != 0)
		case string:
			return truthOf(c != "")
		case pysource.Bytes:
			return truthOf(c != "")
		}
		return True
	case *Sequence:
		if len(v.Items) == 0 && v.Open {
			return Unknown
		}
		return truthOf(len(v.Items) > 0)
	case *Mapping:
		if len(v.Keys) == 0 && v.Open {
			return Unknown
		}
		return truthOf(len(v.Keys) > 0)
	case *Function, *Class, *Module, *Native, *SourceText:
		return True
	case *Object:
		if v.Class == nil {
			return True
		}
		if _, found, known := v.Class.find("__bool__"); !found && known {
			if _, found, _ := v.Class.find("__len__"); !found {
				return True
			}
		}
	case *Union:
		if v.Truth != Unknown {
			return v.Truth
		}
		all := m.Truth(v.Of[0])
		for _, w := range v.Of[1:] {
			if m.Truth(w) != all {
				return Unknown
			}
		}
		return all
	}
	return Unknown
}

// boolOp returns the value of and and or. The truth is known if one operand decides it whatever the
// unknown ones are.
func (m *Machine) boolOp(f *frame, e *pysource.BoolOp) Value {
	decides := True
	if e.Op == "and" {
		decides = False
	}
	var open []Value
	for i, operand := range e.Values {
		v := m.eval(f, operand)
		t := m.Truth(v)
		switch {
		case t == decides && len(open) == 0:
			return v
		case t == decides:
			return &Union{Of: append(open, v), Truth: decides}
		case t == Unknown:
			open = append(open, v)
		case i == len(e.Values)-1 && len(open) == 0:
			return v
		case i == len(e.Values)-1:
			return &Union{Of: append(open, v)}
		}
	}
	if len(open) == 1 {
		return open[0]
	}
	return &Union{Of: open}
}

func (m *Machine) unary(f *frame, e *pysource.UnaryOp) Value {
	v := m.eval(f, e.Operand)
	if e.Op == "not" {
		if t := m.Truth(v); t != Unknown {
			return t.Not().value()
		}
		return m.opaque(f, e, v)
	}
	if c, ok := v.(Const); ok {
		switch n := c.V.(type) {
		case *big.Int:
			switch e.Op {
			case "-":
				return Const{new(big.Int).Neg(n)}
			case "+":
				return c
			case "~":
				return Const{new(big.Int).Not(n)}
			}
		case float64:
			if e.Op == "-" {
				return Const{-n}
			}
		}
	}
	return m.opaque(f, e, v)
}

func constKind(v any) string {
	switch v.(type) {
	case bool:
		return "bool"
	case *big.Int:
		return "int"
	case float64:
		return "float"
	}
	return fmt.Sprintf("%T", v)
}

// number returns the value of a number, or of a bool, which is one.
func number(v any) (*big.Float, bool) {
	switch n := v.(type) {
	case bool:
		if n {
			return big.NewFloat(1), true
		}
		return new(big.Float), true
	case *big.Int:
		return new(big.Float).SetPrec(uint(max(n.BitLen(), 64))).SetInt(n), true
	case float64:
		if n == n && n-n == 0 {
			return big.NewFloat(n), true
		}
	}
	return nil, false
}

func equalConst(a, b any) Truth {
	x, ok := number(a)
	y, numbers := number(b)
	switch {
	case ok && numbers:
		return truthOf(x.Cmp(y) == 0)
	case ok != numbers:
		return False
	}
	switch a.(type) {
	case nil, string, pysource.Bytes, pysource.Ellipsis:
		return truthOf(a == b)
	}
	return Unknown
}

// equal compares two values by ==.
func equal(a, b Value) Truth {
	switch x := a.(type) {
	case Const:
		if y, ok := b.(Const); ok {
			return equalConst(x.V, y.V)
		}
		switch b.(type) {
		case *Sequence, *Mapping, *Function, *Class, *Module:
			return False
		}
	case *Sequence:
		y, ok := b.(*Sequence)
		if !ok || x.Open || y.Open {
			break
		}
		if len(x.Items) != len(y.Items) || x.Kind != y.Kind {
			return False
		}
		all := True
		for i := range x.Items {
			switch equal(x.Items[i], y.Items[i]) {
			case False:
				return False
			case Unknown:
				all = Unknown
			}
		}
		return all
	}
	if same(a, b) {
		switch a.(type) {
		case *Opaque, *Union, Argument, Variable, External:
			return Unknown
		}
		return True
	}
	return Unknown
}

// identical compares two values by is.
func identical(a, b Value) Truth {
	if isNone(a) || isNone(b) {
		other := a
		if isNone(a) {
			other = b
		}
		switch other.(type) {
		case Const:
			return truthOf(isNone(other))
		case *Sequence, *Mapping, *Function, *Class, *Module, *Object, *Native, *SourceText:
			return False
		}
		return Unknown
	}
	if x, ok := a.(Const); ok {
		if y, ok := b.(Const); ok {
			if constKind(x.V) != constKind(y.V) {
				return False
			}
			return equalConst(x.V, y.V)
		}
	}
	switch a.(type) {
	case *Function, *Class, *Module, *Object:
		switch b.(type) {
		case *Function, *Class, *Module, *Object, Const:
			return truthOf(a == b)
		}
	}
	return Unknown
}

func (m *Machine) compare(f *frame, e *pysource.Compare) Value {
	left := m.resolve(m.eval(f, e.Left))
	var parts []Value
	open := false
	for i, op := range e.Ops {
		right := m.resolve(m.eval(f, e.Comparators[i]))
		switch m.compareAny(op, left, right) {
		case False:
			return Const{false}
		case Unknown:
			open = true
		}
		parts = append(parts, left, right)
		left = right
	}
	if open {
		return m.opaque(f, e, parts...)
	}
	return Const{true}
}

// compareAny compares a value that may be one of several.
func (m *Machine) compareAny(op string, a, b Value) Truth {
	result, first := Unknown, true
	for _, x := range Alternatives(a) {
		for _, y := range Alternatives(b) {
			t := m.compareOne(op, x, y)
			if !first && t != result {
				return Unknown
			}
			result, first = t, false
		}
	}
	return result
}

func (m *Machine) compareOne(op string, a, b Value) Truth {
	switch op {
	case "==":
		return equal(a, b)
	case "!=":
		return equal(a, b).Not()
	case "is":
		return identical(a, b)
	case "is not":
		return identical(a, b).Not()
	case "in":
		return m.contains(b, a)
	case "not in":
		return m.contains(b, a).Not()
	}
	x, ok := a.(Const)
	y, both := b.(Const)
	if !ok || !both {
		return Unknown
	}
	p, ok := number(x.V)
	q, numbers := number(y.V)
	order := 0
	if ok && numbers {
		order = p.Cmp(q)
	} else {
		s, ok := x.V.(string)
		t, texts := y.V.(string)
		if !ok || !texts {
			return Unknown
		}
		order = strings.Compare(s, t)
	}
	switch op {
	case "<":
		return truthOf(order < 0)
	case "<=":
		return truthOf(order <= 0)
	case ">":
		return truthOf(order > 0)
	case ">=":
		return truthOf(order >= 0)
	}
	return Unknown
}

// contains reports whether an item is in a container.
func (m *Machine) contains(container, item Value) Truth {
	items := []Value(nil)
	open := false
	switch c := container.(type) {
	case *Sequence:
		items, open = c.Items, c.Open
	case *Mapping:
		items, open = c.Keys, c.Open
	case Const:
		s, ok := c.V.(string)
		t, text := Str(item)
		if ok && text {
			return truthOf(strings.Contains(s, t))
		}
		return Unknown
	case External:
		if name, ok := Str(item); ok && c.Path == "os.environ" && m.Env != nil {
			_, set := m.Env[name]
			return truthOf(set)
		}
		return Unknown
	default:
		return Unknown
	}
	for _, v := range items {
		switch equal(v, item) {
		case True:
			return True
		case Unknown:
			open = true
		}
	}
	if open {
		return Unknown
	}
	return False
}

// binary returns the value of an arithmetic operator on constants, and of + on texts and lists.
func (m *Machine) binary(f *frame, n pysource.Node, op string, a, b Value) Value {
	op = strings.TrimSuffix(op, "=")
	x, ok := a.(Const)
	y, both := b.(Const)
	if ok && both {
		if v, ok := arithmetic(op, x.V, y.V); ok {
			return Const{v}
		}
	}
	if s, ok := a.(*Sequence); ok && op == "+" {
		if t, ok := b.(*Sequence); ok && len(s.Items)+len(t.Items) <= maxItems {
			return &Sequence{Kind: s.Kind, Items: append(s.Items[:len(s.Items):len(s.Items)], t.Items...), Open: s.Open || t.Open, shared: !m.running}
		}
	}
	return m.opaque(f, n, a, b)
}

func arithmetic(op string, a, b any) (any, bool) {
	if s, ok := a.(string); ok {
		t, ok := b.(string)
		return s + t, ok && op == "+" && len(s)+len(t) <= maxText
	}
	x, ok := a.(*big.Int)
	y, ints := b.(*big.Int)
	if ok && ints {
		switch op {
		case "+":
			return new(big.Int).Add(x, y), true
		case "-":
			return new(big.Int).Sub(x, y), true
		case "*":
			return new(big.Int).Mul(x, y), x.BitLen()+y.BitLen() < 4096
		case "//", "%":
			if y.Sign() == 0 {
				return nil, false
			}
			quotient, rest := new(big.Int).DivMod(x, y, new(big.Int))
			if rest.Sign() != 0 && y.Sign() < 0 { // Euclid's rest is positive, Python's has the sign of the divisor
				quotient.Sub(quotient, big.NewInt(1))
				rest.Add(rest, y)
			}
			if op == "//" {
				return quotient, true
			}
			return rest, true
		}
		if op == "/" && y.Sign() != 0 {
			f, _ := new(big.Rat).SetFrac(x, y).Float64()
			return f, true
		}
		return nil, false
	}
	p, ok := number(a)
	q, numbers := number(b)
	if !ok || !numbers {
		return nil, false
	}
	u, _ := p.Float64()
	v, _ := q.Float64()
	switch op {
	case "+":
		return u + v, true
	case "-":
		return u - v, true
	case "*":
		return u * v, true
	case "/":
		return u / v, v != 0
	}
	return nil, false
}
