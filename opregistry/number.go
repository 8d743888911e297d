package opregistry

import (
	"math"
	"reflect"
	"strconv"
	"strings"
	"unsafe"
)

// number is a numeric argument with a bound.
type number struct {
	name     string
	offset   uintptr
	kind     reflect.Kind
	want     string
	lo, hi   float64
	openLo   bool // lo itself is outside
	openHi   bool
	finite   bool
	interval bool // hi counts
	optional bool // an OptionalFloat, which holds when it is left out
}

// number adds the bound of a numeric argument and reports whether it may be 0 or left out.
func (c *compiler) number(f reflect.StructField, s spec, offset uintptr, name string) bool {
	if s.bound == "" {
		return true
	}
	n := number{name: name, offset: offset, kind: f.Type.Kind()}
	if f.Type == reflect.TypeFor[OptionalFloat]() {
		n.kind, n.optional = reflect.Float32, true
	}
	switch n.kind {
	case reflect.Float32, reflect.Float64, reflect.Int, reflect.Int64, reflect.Int32, reflect.Uint64, reflect.Uint8:
	default:
		fault("argument %s of type %v has the bound %s, want one of a float, an int or a uint8", name, f.Type, s.bound)
	}
	value := func(text string) float64 {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			fault("argument %s: given bound %q, want one such as >0, >=1, finite or [0,1)", name, s.bound)
		}
		return v
	}
	switch text := s.bound; {
	case text == "finite":
		n.finite, n.want = true, "a finite number"
	case strings.HasPrefix(text, ">="):
		n.lo, n.want = value(text[2:]), "a number >= "+text[2:]
	case text[0] == '>':
		n.lo, n.openLo, n.want = value(text[1:]), true, "a number > "+text[1:]
	default:
		lo, hi, _ := strings.Cut(text[1:len(text)-1], ",")
		n.lo, n.hi, n.interval, n.openHi = value(lo), value(hi), true, strings.HasSuffix(text, ")")
		n.want = "a number in " + strings.Replace(text, ",", ", ", 1)
	}
	c.numbers = append(c.numbers, n)
	return n.optional || n.holds(0)
}

func (n *number) given(args unsafe.Pointer) bool {
	return !n.optional || (*OptionalFloat)(unsafe.Add(args, n.offset)).set
}

func (n *number) value(args unsafe.Pointer) float64 {
	p := unsafe.Add(args, n.offset)
	if n.optional {
		return float64((*OptionalFloat)(p).value)
	}
	switch n.kind {
	case reflect.Float32:
		return float64(*(*float32)(p))
	case reflect.Float64:
		return *(*float64)(p)
	case reflect.Int32:
		return float64(*(*int32)(p))
	case reflect.Uint64:
		return float64(*(*uint64)(p))
	case reflect.Uint8:
		return float64(*(*uint8)(p))
	default:
		return float64(*(*int)(p))
	}
}

func (n *number) holds(v float64) bool {
	switch {
	case n.finite:
		return !math.IsNaN(v) && !math.IsInf(v, 0)
	case n.openLo:
		return v > n.lo
	case !n.interval:
		return v >= n.lo
	}
	return v >= n.lo && (v < n.hi || v == n.hi && !n.openHi)
}
