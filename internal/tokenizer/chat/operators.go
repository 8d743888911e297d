package chat

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

func (e *evaluator) unary(x unaryExpr, s *scope) any {
	v := e.value(x.value, s)
	if x.op == "not" {
		return !truth(v)
	}
	if i, ok := integer(v); ok {
		if x.op == "-" {
			return -i
		}
		return i
	}
	f, ok := v.(float64)
	if !ok {
		e.fail(x.position(), "the sign %s is before %s, want a number", x.op, typeName(v))
	}
	if x.op == "-" {
		return -f
	}
	return f
}

func (e *evaluator) binary(x binaryExpr, s *scope) any {
	left := e.value(x.left, s)
	switch x.op {
	case "and":
		if !truth(left) {
			return left
		}
		return e.value(x.right, s)
	case "or":
		if truth(left) {
			return left
		}
		return e.value(x.right, s)
	}
	right := e.value(x.right, s)
	if x.op == "~" {
		return e.join(x.position(), show(e.walk(x.position()), left), show(e.walk(x.position()), right))
	}
	if a, ok := left.(string); ok {
		if b, ok := right.(string); ok && x.op == "+" {
			return e.join(x.position(), a, b)
		}
	}
	if a, ok := left.(*list); ok {
		if b, ok := right.(*list); ok && x.op == "+" && a.tuple == b.tuple {
			e.spend(x.position(), len(a.items)+len(b.items))
			return &list{append(append([]any{}, a.items...), b.items...), a.tuple}
		}
	}
	if x.op == "*" {
		if v, ok := e.repeat(x.position(), left, right); ok {
			return v
		}
		if v, ok := e.repeat(x.position(), right, left); ok {
			return v
		}
	}
	if v, ok := e.arithmetic(x.position(), x.op, left, right); ok {
		return v
	}
	e.fail(x.position(), "%s cannot be applied to %s and %s", x.op, typeName(left), typeName(right))
	return nil
}

func (e *evaluator) join(at int, a, b string) string {
	if len(a)+len(b) > maxOutput {
		e.fail(at, "the text is longer than %d bytes", maxOutput)
	}
	e.spend(at, (len(a)+len(b))/64)
	return a + b
}

// repeat returns a string or a list several times.
func (e *evaluator) repeat(at int, v, times any) (any, bool) {
	n, ok := integer(times)
	if !ok {
		return nil, false
	}
	n = max(n, 0)
	switch v := v.(type) {
	case string:
		if n > maxOutput || int64(len(v))*n > maxOutput {
			e.fail(at, "the text is longer than %d bytes", maxOutput)
		}
		e.spend(at, len(v)*int(n)/64)
		return strings.Repeat(v, int(n)), true
	case *list:
		n = min(n, maxSteps)
		e.spend(at, min(len(v.items), maxSteps)*int(n))
		repeated := &list{tuple: v.tuple}
		for range n {
			repeated.items = append(repeated.items, v.items...)
		}
		return repeated, true
	}
	return nil, false
}

func (e *evaluator) arithmetic(at int, op string, left, right any) (any, bool) {
	a, ok := number(left)
	b, both := number(right)
	if !ok || !both {
		return nil, false
	}
	i, whole := integer(left)
	k, bothWhole := integer(right)
	if b == 0 && (op == "/" || op == "//" || op == "%") {
		e.fail(at, "division by zero")
	}
	if whole && bothWhole && op != "/" && !(op == "**" && k < 0) {
		return e.integers(at, op, i, k), true
	}
	switch op {
	case "+":
		return a + b, true
	case "-":
		return a - b, true
	case "*":
		return a * b, true
	case "/":
		return a / b, true
	case "//":
		return math.Floor(a / b), true
	case "%":
		m := math.Mod(a, b)
		if m != 0 && (m < 0) != (b < 0) {
			m += b
		}
		return m, true
	}
	return math.Pow(a, b), true
}

// integers computes with integers, whose results must fit into 64 bits.
func (e *evaluator) integers(at int, op string, a, b int64) int64 {
	var v int64
	fits := true
	switch op {
	case "+":
		v = a + b
		fits = (v > a) == (b > 0)
	case "-":
		v = a - b
		fits = (v < a) == (b > 0)
	case "*":
		v, fits = product(a, b)
	case "//":
		v = a / b
		if a%b != 0 && (a < 0) != (b < 0) {
			v--
		}
	case "%":
		v = a % b
		if v != 0 && (v < 0) != (b < 0) {
			v += b
		}
	case "**":
		v = 1
		for range min(b, 64) {
			if v, fits = product(v, a); !fits {
				break
			}
		}
		if b > 64 && a != 0 && a != 1 {
			fits = a == -1
			if a == -1 && b%2 != 0 {
				v = -1
			}
		}
		if b > 64 && a == 0 {
			v = 0
		}
	}
	if !fits {
		e.fail(at, "the result of %d %s %d is out of range", a, op, b)
	}
	return v
}

func product(a, b int64) (int64, bool) {
	v := a * b
	return v, a == 0 || v/a == b && !(a == -1 && b == math.MinInt64)
}

func (e *evaluator) compare(at int, op string, left, right any) bool {
	switch op {
	case "==":
		return equal(e.walk(at), left, right)
	case "!=":
		return !equal(e.walk(at), left, right)
	case "in":
		return e.contains(at, right, left)
	case "not in":
		return !e.contains(at, right, left)
	}
	c, ok := order(e.walk(at), left, right)
	if !ok {
		e.fail(at, "%s cannot be applied to %s and %s", op, typeName(left), typeName(right))
	}
	switch op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

// contains reports whether a value is in another.
func (e *evaluator) contains(at int, all, one any) bool {
	switch all := all.(type) {
	case string:
		part, ok := one.(string)
		if !ok {
			e.fail(at, "in: given %s, want a string to look for in a string", typeName(one))
		}
		e.spend(at, len(all)/64)
		return strings.Contains(all, part)
	case *Map:
		if !hashable(one) {
			return false
		}
		_, ok := all.get(one)
		return ok
	default:
		for _, item := range e.items(at, all) {
			if equal(e.walk(at), item, one) {
				return true
			}
		}
	}
	return false
}

// attribute returns an attribute of a value: a method, else an item.
func (e *evaluator) attribute(at int, of any, name string) any {
	switch of := of.(type) {
	case undefined:
		e.fail(at, "%s is undefined, so that it has no attribute %s", of.name, name)
	case *Map:
		if m, ok := mapMethods[name]; ok {
			return method(name, m, of)
		}
		if v, ok := of.get(name); ok {
			return v
		}
	case string:
		if m, ok := stringMethods[name]; ok {
			return method(name, m, of)
		}
	case *list:
		if m, ok := listMethods[name]; ok {
			return method(name, m, of)
		}
	case *namespace:
		if v, ok := of.attributes[name]; ok {
			return v
		}
	case *loop:
		if name == "changed" {
			e.fail(at, "loop.changed is not supported")
		}
		return of.attribute(name)
	}
	if slices.Contains(otherMethods, name) {
		e.fail(at, "the method %s of %s is not supported", name, typeName(of))
	}
	return undefined{"the attribute " + name + " of " + typeName(of)}
}

func (e *evaluator) index(at int, of, index any) any {
	switch of := of.(type) {
	case undefined:
		e.fail(at, "%s is undefined, so that it has no items", of.name)
	case *Map:
		if hashable(index) {
			if v, ok := of.get(index); ok {
				return v
			}
		}
	case *list:
		if i, ok := integer(index); ok {
			if i < 0 {
				i += int64(len(of.items))
			}
			if 0 <= i && i < int64(len(of.items)) {
				return of.items[i]
			}
		}
	case string:
		if i, ok := integer(index); ok {
			e.spend(at, len(of)/64)
			if i < 0 {
				i += int64(utf8.RuneCountInString(of))
			}
			for _, r := range of {
				if i == 0 {
					return string(r)
				}
				i--
			}
		}
	}
	if name, ok := index.(string); ok {
		return e.attribute(at, of, name)
	}
	return undefined{"the item " + show(e.walk(at), index) + " of " + typeName(of)}
}

// slice returns a part of a list or a string.
func (e *evaluator) slice(x sliceExpr, s *scope) any {
	of := e.value(x.of, s)
	bound := func(part expr) *int64 {
		if part == nil {
			return nil
		}
		v := e.value(part, s)
		if v == nil {
			return nil
		}
		i, ok := integer(v)
		if !ok {
			e.fail(part.position(), "given %s in a slice, want an integer", typeName(v))
		}
		return &i
	}
	from, to, step := bound(x.from), bound(x.to), bound(x.step)
	by := int64(1)
	if step != nil {
		by = *step
	}
	if by == 0 {
		e.fail(x.position(), "the step of a slice is 0")
	}
	switch of := of.(type) {
	case string:
		runes := []rune(of)
		e.spend(x.position(), len(runes)/8)
		var b strings.Builder
		for _, i := range indexes(len(runes), from, to, by) {
			b.WriteRune(runes[i])
		}
		return b.String()
	case *list:
		part := &list{tuple: of.tuple}
		for _, i := range indexes(len(of.items), from, to, by) {
			part.items = append(part.items, of.items[i])
		}
		e.spend(x.position(), len(part.items))
		return part
	}
	if u, ok := of.(undefined); ok {
		e.fail(x.position(), "%s is undefined, so that it has no items", u.name)
	}
	e.fail(x.position(), "%s has no slices", typeName(of))
	return nil
}

// indexes returns the indexes of a slice of n items.
func indexes(n int, from, to *int64, step int64) []int {
	length := int64(n)
	low, high := int64(0), length
	if step < 0 {
		low, high = -1, length-1
	}
	clamp := func(v *int64, otherwise int64) int64 {
		if v == nil {
			return otherwise
		}
		i := *v
		if i < 0 {
			i += length
		}
		return min(max(i, low), high)
	}
	begin, end := clamp(from, low), clamp(to, high)
	if step < 0 {
		begin, end = clamp(from, high), clamp(to, low)
	}
	var all []int
	for i := begin; step > 0 && i < end || step < 0 && i > end; {
		all = append(all, int(i))
		if step > length || step < -length {
			break
		}
		i += step
	}
	return all
}
