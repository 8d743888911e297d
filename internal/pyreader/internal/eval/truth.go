package eval

import (
	"math/big"
	"strings"

	"github.com/primus-fl/primus/internal/pyreader/internal/syntax"
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
	if t == Unknown {
		return Unknown
	}
	return truthOf(t == False)
}

// value returns the truth as a value, nil if it is not known.
func (t Truth) value() Value {
	if t == Unknown {
		return nil
	}
	return t == True
}

// Truth returns the truth of a value in a condition.
func (m *Machine) Truth(v Value) Truth {
	switch v := m.Resolve(v).(type) {
	case none:
		return False
	case bool:
		return truthOf(v)
	case *big.Int:
		return truthOf(v.Sign() != 0)
	case float64:
		return truthOf(v != 0)
	case string:
		return truthOf(v != "")
	case syntax.Bytes:
		return truthOf(v != "")
	case complex128, syntax.Ellipsis, *Function, *Class, *Module, *Native, *SourceText:
		return True
	case *Sequence:
		return filled(len(v.Items), v.Open)
	case *Mapping:
		return filled(len(v.Keys), v.Open)
	case *Object:
		if v.class == nil {
			return True
		}
		_, hasBool, known := v.class.find("__bool__")
		if _, hasLen, _ := v.class.find("__len__"); !hasBool && known && !hasLen {
			return True
		}
	case *Union:
		if v.truth != Unknown {
			return v.truth
		}
		all := m.Truth(v.of[0])
		for _, w := range v.of[1:] {
			if m.Truth(w) != all {
				return Unknown
			}
		}
		return all
	}
	return Unknown
}

// filled returns the truth of a container that has items, and more of them if it is open.
func filled(items int, open bool) Truth {
	if items == 0 && open {
		return Unknown
	}
	return truthOf(items > 0)
}

func (m *Machine) unary(f *frame, e *syntax.Node) Value {
	v := m.eval(f, e.Value)
	switch n := v.(type) {
	case *big.Int:
		switch e.Name {
		case "-":
			return new(big.Int).Neg(n)
		case "+":
			return n
		case "~":
			return new(big.Int).Not(n)
		}
	case float64:
		if e.Name == "-" {
			return -n
		}
	}
	if e.Name == "not" {
		if t := m.Truth(v); t != Unknown {
			return t.Not().value()
		}
	}
	return m.opaque(f, e, v)
}

// number returns the value of a number, or of a bool, which is one.
func number(v Value) (*big.Float, bool) {
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

// equalConst compares two constants by ==.
func equalConst(a, b Value) Truth {
	x, ok := number(a)
	y, numbers := number(b)
	switch {
	case ok && numbers:
		return truthOf(x.Cmp(y) == 0)
	case ok != numbers:
		return False
	}
	switch a.(type) {
	case none, string, syntax.Bytes, syntax.Ellipsis:
		return truthOf(a == b)
	}
	return Unknown
}

// equal compares two values by ==.
func equal(a, b Value) Truth {
	left := maxItems
	return equalWithin(a, b, &left)
}

// equalWithin gives up after a number of values, since a value may hold another one many times.
func equalWithin(a, b Value, left *int) Truth {
	if *left--; *left < 0 {
		return Unknown
	}
	if isConst(a) {
		switch b.(type) {
		case *Sequence, *Mapping, *Function, *Class, *Module:
			return False
		}
		if isConst(b) {
			return equalConst(a, b)
		}
		return Unknown
	}
	x, isList := a.(*Sequence)
	y, lists := b.(*Sequence)
	if isList && lists && !x.Open && !y.Open {
		if len(x.Items) != len(y.Items) || x.Kind != y.Kind {
			return False
		}
		all := True
		for i := range x.Items {
			switch equalWithin(x.Items[i], y.Items[i], left) {
			case False:
				return False
			case Unknown:
				all = Unknown
			}
		}
		return all
	}
	switch a.(type) {
	case *Opaque, *Union, Argument, Variable, External:
		return Unknown
	}
	if a == b {
		return True
	}
	return Unknown
}

// identical compares two values by is.
func identical(a, b Value) Truth {
	defined := func(v Value) bool {
		switch v.(type) {
		case *Function, *Class, *Module, *Object:
			return true
		}
		return false
	}
	if a == None || b == None {
		other := a
		if a == None {
			other = b
		}
		switch other.(type) {
		case *Sequence, *Mapping, *Native, *SourceText:
			return False
		}
		if isConst(other) || defined(other) {
			return truthOf(other == None)
		}
		return Unknown
	}
	switch {
	case isConst(a) && isConst(b):
		if constKind(a) != constKind(b) {
			return False
		}
		return equalConst(a, b)
	case defined(a) && (defined(b) || isConst(b)):
		return truthOf(a == b)
	}
	return Unknown
}

func (m *Machine) compare(f *frame, e *syntax.Node) Value {
	left := m.Resolve(m.eval(f, e.Value))
	var parts []Value
	open := false
	for i, op := range e.Words {
		right := m.Resolve(m.eval(f, e.List[i]))
		switch m.compareAny(op, left, right) {
		case False:
			return false
		case Unknown:
			open = true
		}
		parts = append(parts, left, right)
		left = right
	}
	if open {
		return m.opaque(f, e, parts...)
	}
	return true
}

// compareAny compares values that may be one of several.
func (m *Machine) compareAny(op string, a, b Value) Truth {
	result, first := Unknown, true
	for _, x := range alternatives(a) {
		for _, y := range alternatives(b) {
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
	p, ok := number(a)
	q, numbers := number(b)
	s, isText := a.(string)
	t, texts := b.(string)
	order := 0
	switch {
	case ok && numbers:
		order = p.Cmp(q)
	case isText && texts:
		order = strings.Compare(s, t)
	default:
		return Unknown
	}
	switch op {
	case "<":
		return truthOf(order < 0)
	case "<=":
		return truthOf(order <= 0)
	case ">":
		return truthOf(order > 0)
	}
	return truthOf(order >= 0)
}

// contains reports whether an item is in a container.
func (m *Machine) contains(container, item Value) Truth {
	var items []Value
	open := false
	name, isText := item.(string)
	switch c := container.(type) {
	case *Sequence:
		items, open = c.Items, c.Open
	case *Mapping:
		items, open = c.Keys, c.Open
	case string:
		if isText {
			return truthOf(strings.Contains(c, name))
		}
		return Unknown
	case External:
		if isText && c.Path == "os.environ" && m.Env != nil {
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
func (m *Machine) binary(f *frame, e *syntax.Node, a, b Value) Value {
	if v := arithmetic(e.Name, a, b); v != nil {
		return v
	}
	s, ok := a.(*Sequence)
	t, lists := b.(*Sequence)
	if ok && lists && e.Name == "+" && len(s.Items)+len(t.Items) <= maxItems {
		sum := m.list(s.Kind, append(s.Items[:len(s.Items):len(s.Items)], t.Items...)...)
		sum.Open = s.Open || t.Open
		return sum
	}
	return m.opaque(f, e, a, b)
}

// arithmetic returns the value of an operator on constants, nil if it is not known.
func arithmetic(op string, a, b Value) Value {
	if s, ok := a.(string); ok {
		if t, ok := b.(string); ok && op == "+" && len(s)+len(t) <= maxText {
			return s + t
		}
		return nil
	}
	x, ok := a.(*big.Int)
	y, ints := b.(*big.Int)
	if ok && ints {
		switch {
		case op == "+":
			return new(big.Int).Add(x, y)
		case op == "-":
			return new(big.Int).Sub(x, y)
		case op == "*" && x.BitLen()+y.BitLen() < 4096:
			return new(big.Int).Mul(x, y)
		case op == "/" && y.Sign() != 0:
			f, _ := new(big.Rat).SetFrac(x, y).Float64()
			return f
		case (op == "//" || op == "%") && y.Sign() != 0:
			quotient, rest := new(big.Int).DivMod(x, y, new(big.Int))
			if rest.Sign() != 0 && y.Sign() < 0 { // Euclid's rest is positive, Python's has the sign of the divisor
				quotient.Sub(quotient, big.NewInt(1))
				rest.Add(rest, y)
			}
			if op == "//" {
				return quotient
			}
			return rest
		}
		return nil
	}
	p, ok := number(a)
	q, numbers := number(b)
	if !ok || !numbers {
		return nil
	}
	u, _ := p.Float64()
	v, _ := q.Float64()
	switch {
	case op == "+":
		return u + v
	case op == "-":
		return u - v
	case op == "*":
		return u * v
	case op == "/" && v != 0:
		return u / v
	}
	return nil
}
