package reference_test

import (
	"flag"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

// The example of a formula is a line such as
//
//	input=[[3 4]] weight=[1 1] eps=1 → output=[[0.8165 1.089]] rsigma=[0.2722]
//
// It names arguments as errors do. A tensor is written in brackets, with its dtype before them
// unless that is f32; what follows the arrow is what the op leaves in operands.

var printExamples = flag.Bool("print-examples", false, "print the examples with the results that the reference has")

// goName matches what is written as exported names in Go are.
var goName = regexp.MustCompile(`\b[A-Z][a-z]+[A-Z][a-z]\w*\b`)

// Every op has a formula, and its example is right.
func TestFormulas(t *testing.T) {
	t.Parallel()
	impls := map[string]opregistry.Impl{}
	for _, i := range reference.Source().Impls {
		impls[i.Op.Name()] = i
	}
	for _, op := range ops.All() {
		t.Run(op.Name(), func(t *testing.T) {
			t.Parallel()
			formula := op.Formula()
			require.NotEmpty(t, formula, "Schema.Formula says what the op computes")
			for _, word := range goName.FindAllString(formula, -1) {
				assert.Contains(t, []string{"TransformerEngine", "NaNs"}, word, "a formula has the names of arguments and ops")
			}
			_, example, found := strings.Cut(formula, "\nExample:\n\n")
			require.True(t, found, "a formula ends with Example: and calls with small numbers")
			for _, call := range calls(example) {
				got, err := evaluate(op, impls[op.Name()], call)
				require.NoError(t, err, call)
				if *printExamples {
					fmt.Println(op.Name(), call[:strings.Index(call, "→")]+"→ "+got.text())
				}
				for _, want := range got {
					assert.NoError(t, want.differs(), "%s: the reference has %s", call, got.text())
				}
			}
		})
	}
}

// calls returns the lines of an example, each with those that continue it.
func calls(example string) []string {
	var all []string
	for line := range strings.SplitSeq(strings.TrimRight(example, "\n"), "\n") {
		if strings.HasPrefix(line, "   ") && len(all) > 0 {
			all[len(all)-1] += " " + strings.TrimSpace(line)
		} else {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return all
}

// result is what a call left in an operand, and what the example has.
type result struct {
	name string
	got  *tensor.Tensor
	want []float64
}

type results []result

func (all results) text() string {
	var words []string
	for _, r := range all {
		words = append(words, r.name+"="+literal(r.got))
	}
	return strings.Join(words, " ")
}

// differs returns an error unless the operand has the values of the example, to its digits.
func (r *result) differs() error {
	got := r.got.Float64s()
	if len(got) != len(r.want) {
		return fmt.Errorf("%s has %d elements, want %d", r.name, len(got), len(r.want))
	}
	for i, w := range r.want {
		same := got[i] == w || math.IsNaN(got[i]) && math.IsNaN(w) || math.Abs(got[i]-w) <= 1e-3*math.Abs(w)+1e-6
		if !same {
			return fmt.Errorf("element %d of %s is %v, want %v", i, r.name, got[i], w)
		}
	}
	return nil
}

// literal writes a tensor as examples do.
func literal(t *tensor.Tensor) string {
	values, at := t.Float64s(), 0
	var write func(shape []int) string
	write = func(shape []int) string {
		if len(shape) == 0 {
			at++
			if !t.DType().IsFloat() {
				return strconv.FormatFloat(values[at-1], 'f', 0, 64)
			}
			return strconv.FormatFloat(values[at-1], 'g', 4, 64)
		}
		var parts []string
		for range shape[0] {
			parts = append(parts, write(shape[1:]))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	text := write(t.Shape())
	if d := t.DType(); d != tensor.F32 {
		return d.String() + text
	}
	return text
}

// parseTensor reads what literal writes. A star stands for each element of an output.
func parseTensor(text string) (*tensor.Tensor, []float64, error) {
	d := tensor.F32
	if i := strings.IndexByte(text, '['); i > 0 {
		var err error
		if d, err = tensor.ParseDType(text[:i]); err != nil {
			return nil, nil, err
		}
		text = text[i:]
	}
	var values []float64
	var shape []int
	var read func(depth int) error
	read = func(depth int) error {
		if text == "" || text[0] != '[' {
			return fmt.Errorf("got %q, want a tensor in brackets", text)
		}
		if depth == len(shape) {
			shape = append(shape, -1)
		}
		n := 0
		for text = text[1:]; ; {
			text = strings.TrimLeft(text, " ")
			if text == "" {
				return fmt.Errorf("a bracket does not end")
			}
			switch text[0] {
			case ']':
				text = text[1:]
				if shape[depth] >= 0 && shape[depth] != n {
					return fmt.Errorf("lists of %d and %d elements", shape[depth], n)
				}
				shape[depth] = n
				return nil
			case '[':
				if err := read(depth + 1); err != nil {
					return err
				}
			default:
				end := strings.IndexAny(text, " ]")
				if end < 0 {
					return fmt.Errorf("a bracket does not end")
				}
				v, err := strconv.ParseFloat(text[:end], 64)
				if err != nil {
					return err
				}
				values, text = append(values, v), text[end:]
			}
			n++
		}
	}
	if err := read(0); err != nil {
		return nil, nil, err
	}
	t, err := tensor.FromBytes(make([]byte, tensor.Shape(shape).NumElements()*d.Size()), d, shape...)
	if err != nil {
		return nil, nil, err
	}
	return t, values, t.SetFloat64s(values)
}

// words splits a call at the spaces outside of brackets.
func words(text string) []string {
	var all []string
	depth, start := 0, 0
	for i, r := range text + " " {
		switch {
		case r == '[' || r == '(':
			depth++
		case r == ']' || r == ')':
			depth--
		case r == ' ' && depth == 0:
			if i > start {
				all = append(all, text[start:i])
			}
			start = i + 1
		}
	}
	return all
}

// evaluate runs the call of an example and returns what it left in its operands.
func evaluate(op opregistry.Handle, impl opregistry.Impl, call string) (results, error) {
	give, want, found := strings.Cut(call, "→")
	if !found {
		return nil, fmt.Errorf("got %q, want arguments, an arrow and results", call)
	}
	args := reflect.New(op.Args()).Elem()
	for _, side := range []string{want, give} { // what is updated has the values before the arrow
		for _, w := range words(side) {
			name, value, ok := strings.Cut(w, "=")
			if !ok {
				return nil, fmt.Errorf("got %q, want name=value", w)
			}
			field, err := find(args, name)
			if err != nil {
				return nil, err
			}
			if err := set(field, value, side == want); err != nil {
				return nil, fmt.Errorf("%s: %w", w, err)
			}
		}
	}
	for i := range args.NumField() {
		if args.Field(i).Type() == reflect.TypeFor[*opregistry.Saved]() {
			args.Field(i).Set(reflect.ValueOf(new(opregistry.Saved)))
		}
	}
	c := opregistry.CallOf(op, args.Interface())
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := c.Run(impl.Run, opregistry.NewExec(nil, device.DefaultStream)); err != nil {
		return nil, err
	}
	var all results
	for _, w := range words(want) {
		name, value, _ := strings.Cut(w, "=")
		field, err := find(args, name)
		if err != nil {
			return nil, err
		}
		_, values, err := parseTensor(value)
		if err != nil {
			return nil, err
		}
		all = append(all, result{name, field.Interface().(*tensor.Tensor), values})
	}
	for _, o := range c.Operands() {
		if o.Access != opregistry.AccessRead && !strings.Contains(" "+want, " "+o.Name+"=") {
			return nil, fmt.Errorf("the example does not say what %s is afterwards", o.Name)
		}
	}
	return all, nil
}

// find returns the argument with a name such as input, quantizer.scaling or tensor_lists[1][0].
func find(v reflect.Value, name string) (reflect.Value, error) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		tag := strings.Fields(f.Tag.Get("op"))
		if f.Anonymous && len(tag) < 2 {
			if found, err := find(v.Field(i), name); err == nil {
				return found, nil
			}
			continue
		}
		if len(tag) < 2 {
			continue
		}
		rest, ok := strings.CutPrefix(name, tag[1])
		if !ok || rest != "" && rest[0] != '.' && rest[0] != '[' {
			continue
		}
		field := v.Field(i)
		for strings.HasPrefix(rest, "[") {
			index, after, _ := strings.Cut(rest[1:], "]")
			n, err := strconv.Atoi(index)
			if err != nil || field.Kind() != reflect.Slice {
				return v, fmt.Errorf("got %q, want an index of a list", name)
			}
			for field.Len() <= n {
				field.Set(reflect.Append(field, reflect.Zero(field.Type().Elem())))
			}
			field, rest = field.Index(n), after
		}
		if rest == "" {
			return field, nil
		}
		return find(field, rest[1:])
	}
	return v, fmt.Errorf("no argument has the name %q", name)
}

// set gives an argument the value that an example has.
func set(v reflect.Value, text string, output bool) error {
	switch v.Interface().(type) {
	case *tensor.Tensor:
		t, values, err := parseTensor(text)
		if err != nil {
			return err
		}
		if output { // not what the call is expected to write
			for i := range values {
				values[i] = 0
			}
			if err := t.SetFloat64s(values); err != nil {
				return err
			}
		}
		v.Set(reflect.ValueOf(t))
		return nil
	case []int, attention.WindowSize:
		var list []int
		for _, w := range strings.Fields(strings.Trim(text, "()")) {
			n, err := strconv.Atoi(w)
			if err != nil {
				return err
			}
			list = append(list, n)
		}
		if v.Kind() == reflect.Slice {
			v.Set(reflect.ValueOf(list))
		} else {
			v.Set(reflect.ValueOf(attention.Window(list[0], list[1])))
		}
		return nil
	case opregistry.OptionalFloat, opregistry.OptionalBool:
		n, err := strconv.ParseFloat(text, 32)
		if v.Type() == reflect.TypeFor[opregistry.OptionalBool]() {
			v.Set(reflect.ValueOf(opregistry.Bool(n != 0)))
		} else {
			v.Set(reflect.ValueOf(opregistry.Float(float32(n))))
		}
		return err
	}
	if named, err := enumerated(v, text); named {
		return err
	}
	switch {
	case v.Kind() == reflect.Bool:
		v.SetBool(text == "1")
	case v.CanInt():
		n, err := strconv.ParseInt(text, 10, 64)
		v.SetInt(n)
		return err
	case v.CanUint():
		n, err := strconv.ParseUint(text, 10, 64)
		v.SetUint(n)
		return err
	default:
		n, err := strconv.ParseFloat(text, 64)
		v.SetFloat(n)
		return err
	}
	return nil
}

// enumerated sets an enumeration by the name of its value.
func enumerated(v reflect.Value, text string) (named bool, err error) {
	if !v.Type().Implements(reflect.TypeFor[fmt.Stringer]()) {
		return false, nil
	}
	for i := range 32 {
		if n := reflect.ValueOf(i).Convert(v.Type()); n.Interface().(fmt.Stringer).String() == text {
			v.Set(n)
			return true, nil
		}
	}
	return true, fmt.Errorf("got %q, want the name of a value of %v", text, v.Type())
}
