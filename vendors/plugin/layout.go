package plugin

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/abi"
)

// Field is an argument of an op as plugins see it.
type Field struct {
	Name string // in lower_snake
	Sort uint32 // of package abi; what may be left out may come as ArgAbsent, too
	at   []int  // indexes in the struct, of embedded ones first
}

var (
	tensorType  = reflect.TypeFor[*tensor.Tensor]()
	tensorsType = reflect.TypeFor[[]*tensor.Tensor]()
	listsType   = reflect.TypeFor[[][]*tensor.Tensor]()
	intsType    = reflect.TypeFor[[]int]()
	savedType   = reflect.TypeFor[*opregistry.Saved]()
	optionType  = reflect.TypeFor[ops.OptionalFloat]()
	switchType  = reflect.TypeFor[ops.OptionalBool]()
	windowType  = reflect.TypeFor[ops.WindowSize]()
)

// Layout returns the arguments of an op in the order of its argument struct, with
// those of embedded structs in their place. The record of a family's saved state is
// the host's business and left out. An op with an argument that has no form in C is
// an error.
func Layout(op opregistry.Handle) ([]Field, error) { return layout(op, op.Args(), nil) }

func layout(op opregistry.Handle, t reflect.Type, above []int) ([]Field, error) {
	var fields []Field
	for i := range t.NumField() {
		f, at := t.Field(i), append(slices.Clone(above), i)
		if f.Type == savedType {
			continue
		}
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			embedded, err := layout(op, f.Type, at)
			if err != nil {
				return nil, err
			}
			fields = append(fields, embedded...)
			continue
		}
		sort, ok := sortOf(f.Type)
		if !ok || !f.IsExported() {
			return nil, fmt.Errorf("plugin: op %q: argument %s of type %v has no form in C", op.Name(), f.Name, f.Type)
		}
		fields = append(fields, Field{Name: snake(f.Name), Sort: sort, at: at})
	}
	return fields, nil
}

func sortOf(t reflect.Type) (uint32, bool) {
	switch t {
	case tensorType:
		return abi.ArgTensor, true
	case tensorsType:
		return abi.ArgTensors, true
	case listsType:
		return abi.ArgLists, true
	case intsType, windowType:
		return abi.ArgInts, true
	case optionType:
		return abi.ArgFloat, true
	case switchType:
		return abi.ArgInt, true
	}
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return abi.ArgInt, true
	case reflect.Float32, reflect.Float64:
		return abi.ArgFloat, true
	}
	return 0, false
}

// snake spells the name of a field in C: QKVFormat is qkv_format, RSigma is rsigma.
func snake(name string) string {
	runes := []rune(name)
	var words []string
	start := 0
	for i := 1; i < len(runes); i++ {
		begins := unicode.IsUpper(runes[i]) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if begins {
			words = append(words, string(runes[start:i]))
			start = i
		}
	}
	words = append(words, string(runes[start:]))
	if len(words) > 1 && len(words[0]) == 1 {
		words = append([]string{words[0] + words[1]}, words[2:]...)
	}
	return strings.ToLower(strings.Join(words, "_"))
}
