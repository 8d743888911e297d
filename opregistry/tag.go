package opregistry

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/tensor"
)

// spec is what tags and schema say of one argument. The package documentation has the notation.
type spec struct {
	index  int // relative to that of the struct it is in; −1 without a form in C
	name   string
	access accessSpec
	dtypes DTypes
	like   string // the operand whose dtype it has
	shape  string // in brackets or parentheses, "" for any
	needed need
	given  string // with needWhen: the argument that decides
	may    []string
	length string // of a list: the symbol for its number of tensors
	was    []string
	lead   bool
	packed bool   // contiguous
	masked bool   // −∞ stands for what is left out
	bound  string // of a number
}

// accessSpec is an access that may depend on another argument.
type accessSpec struct {
	base, other Access
	when        string // other holds when this argument is true or given
	hook        bool   // Schema.Access decides
}

// need says whether an operand may be left out.
type need uint8

const (
	needAlways need = iota
	needNever       // it may be nil
	needWhen        // it is given exactly when another argument is true or given
)

var (
	argName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)
	numbers = regexp.MustCompile(`^(finite|>=?-?[0-9.e-]+|\[-?[0-9.]+,-?[0-9.]+[)\]])$`)
)

// parseTag reads the tag of a field: its index, its name and what is said of it.
func parseTag(tag string) (spec, error) {
	words, err := splitTag(tag)
	if err != nil {
		return spec{}, err
	}
	if len(words) == 0 {
		return spec{}, fmt.Errorf("tag op:%q is empty, want an index and a name", tag)
	}
	s := spec{index: -1}
	if words[0] != "-" {
		if s.index, err = strconv.Atoi(words[0]); err != nil || s.index < 0 {
			return s, fmt.Errorf("tag op:%q begins with %q, want an index or -", tag, words[0])
		}
	}
	if len(words) == 1 {
		return s, nil
	}
	s.name = words[1]
	if !argName.MatchString(s.name) {
		return s, fmt.Errorf("tag op:%q: given name %q, want letters, digits and _", tag, s.name)
	}
	return s, s.apply(words[2:])
}

// splitTag cuts a text at its spaces except those in brackets.
func splitTag(text string) ([]string, error) {
	var words []string
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimLeft(rest, " ") {
		end := strings.IndexByte(rest, ' ')
		word, _, _ := strings.Cut(rest, " ")
		if open := rest[0]; (open == '[' || open == '(') && !numbers.MatchString(word) {
			shut := ")"
			if open == '[' {
				shut = "]"
			}
			if end = strings.Index(rest, shut) + 1; end == 0 {
				return nil, fmt.Errorf("%q has a bracket that does not end", text)
			}
		}
		if end < 0 {
			end = len(rest)
		}
		words = append(words, rest[:end])
		rest = rest[end:]
	}
	return words, nil
}

// apply adds words to a spec. A word replaces an earlier one of its kind.
func (s *spec) apply(words []string) error {
	dtypes := DTypes(0)
	for _, w := range words {
		switch kind, _, _ := strings.Cut(w, ":"); {
		case w == "lead":
			s.lead = true
		case w == "contiguous":
			s.packed = true
		case w == "masked":
			s.masked = true
		case w == "?":
			s.needed = needNever
		case strings.HasPrefix(w, "?:"):
			s.needed, s.given = needWhen, w[2:]
		case strings.HasPrefix(w, "may="):
			s.may = strings.FieldsFunc(w[len("may="):], func(r rune) bool { return r == ',' })
		case strings.HasPrefix(w, "was="):
			s.was = strings.FieldsFunc(w[len("was="):], func(r rune) bool { return r == ',' })
		case strings.HasPrefix(w, "len="):
			s.length = w[len("len="):]
		case strings.HasPrefix(w, "="):
			s.like, s.dtypes = w[1:], 0
		case numbers.MatchString(w):
			s.bound = w
		case w[0] == '[' || w[0] == '(':
			s.shape = w
		case isAccess(kind):
			access, err := parseAccess(w)
			if err != nil {
				return err
			}
			s.access = access
		default:
			d, ok := dtypeClasses[w]
			if one, err := tensor.ParseDType(w); !ok && err == nil {
				d, ok = Only(one), true
			}
			if !ok {
				return fmt.Errorf("%s: unknown word %q", s.name, w)
			}
			dtypes |= d
		}
	}
	if dtypes != 0 {
		s.dtypes, s.like = dtypes, ""
	}
	return nil
}

var accesses = map[string]Access{"read": AccessRead, "write": AccessWrite, "update": AccessUpdate}

func isAccess(word string) bool {
	first, _, _ := strings.Cut(word, "|")
	return word == "depends" || accesses[first] != AccessUnspecified
}

func parseAccess(word string) (accessSpec, error) {
	if word == "depends" {
		return accessSpec{base: AccessUpdate, hook: true}, nil
	}
	kinds, when, conditional := strings.Cut(word, ":")
	base, other, two := strings.Cut(kinds, "|")
	a := accessSpec{base: accesses[base], other: accesses[other], when: when}
	if conditional != two || two && (a.other == AccessUnspecified || when == "") {
		return a, fmt.Errorf("given access %q, want one such as read or write|update:accumulate", word)
	}
	return a, nil
}

// String writes the access in the notation.
func (a accessSpec) String() string {
	switch {
	case a.hook:
		return "depends"
	case a.other != AccessUnspecified:
		return a.base.String() + "|" + a.other.String() + ":" + a.when
	}
	return a.base.String()
}

// DTypes is a set of dtypes, one bit per dtype. The zero DTypes holds none.
type DTypes uint32

// The sets that operands usually have.
const (
	Compute DTypes = 1<<tensor.F32 | 1<<tensor.BF16 | 1<<tensor.F16 | 1<<tensor.F64 // what arithmetic ops store
	Index   DTypes = 1<<tensor.I32 | 1<<tensor.I64
	FP8     DTypes = 1<<tensor.F8E4M3 | 1<<tensor.F8E5M2
	anyType DTypes = ^DTypes(0)
)

var dtypeClasses = map[string]DTypes{"compute": Compute, "index": Index, "fp8": FP8, "any": anyType}

// Only returns the set of these dtypes.
func Only(dtypes ...tensor.DType) DTypes {
	var set DTypes
	for _, d := range dtypes {
		set |= 1 << d
	}
	return set
}

// Has reports whether a dtype belongs to the set.
func (s DTypes) Has(d tensor.DType) bool { return s>>d&1 != 0 }

// String names the dtypes as errors do: "f32, bf16, f16 or f64".
func (s DTypes) String() string {
	if s == anyType {
		return "any"
	}
	var names []string
	usual := []tensor.DType{tensor.F32, tensor.BF16, tensor.F16, tensor.F64, tensor.I32}
	for i, d := range slices.Concat(usual, tensor.DTypes()) {
		if s.Has(d) && (i < len(usual) || !slices.Contains(usual, d)) {
			names = append(names, d.String())
		}
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}
