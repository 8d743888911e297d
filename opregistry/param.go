package opregistry

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/primus-fl/primus/tensor"
)

// Sort is the form that an argument has in C, with the numbers of PRIMUS_ARG_*.
type Sort uint8

// The sorts. An argument without a form in C has SortNone.
const (
	SortNone    Sort = iota
	SortTensor       // *tensor.Tensor
	SortTensors      // []*tensor.Tensor
	SortLists        // [][]*tensor.Tensor
	SortInt          // an integer, a bool, or a value with a method Get() (bool, bool)
	SortFloat        // a float, or a value with a method Get() (float32, bool)
	SortInts         // []int, or a value with a method Bounds() (int, int)
)

var sortNames = [...]string{"", "tensor", "list of tensors", "list of lists of tensors", "int", "float", "list of ints"}

// String describes the sort as the C header does.
func (s Sort) String() string { return sortNames[s] }

// Param describes an argument of an op. The texts are in the notation of the package documentation
// and are empty where nothing is said.
type Param struct {
	Index  int    // in primus_call.args; −1 without a form in C
	Name   string // in errors, in the C header and in the documentation
	Sort   Sort
	Access string // of a tensor
	DTypes string
	Shape  string
	Given  string // "?" or "?:other" when the argument may be left out
	MayBe  []string
	// Contiguous says that the elements are in row-major order without gaps.
	Contiguous bool
	Bound      string // of a number
	Lists      []ListParam
	// Optional says that a call may leave the argument out: a tensor may be nil, a number 0.
	Optional bool
	// Was are names that the argument had before.
	Was []string

	// Type is the type of the field, and Path leads to it from the argument struct, as for
	// reflect.Value.FieldByIndex.
	Type reflect.Type
	Path []int
}

// ListParam describes one list of an argument of SortLists.
type ListParam struct {
	Name, Access, DTypes, Shape string
	Optional                    bool
	MayBe                       []string
}

// Macro returns the end of the name that the C header has for the argument.
func (p *Param) Macro() string { return Macro(p.Name) }

// Macro returns the end of the name that the C header has for an argument with this name.
func Macro(name string) string { return strings.ToUpper(strings.ReplaceAll(name, ".", "_")) }

// Values returns the names of the values of an enumeration by their numbers, nil for any other
// argument.
func (p *Param) Values() map[int]string {
	if p.Sort != SortInt || p.Type.PkgPath() == "" || !p.Type.Implements(reflect.TypeFor[fmt.Stringer]()) {
		return nil
	}
	values := map[int]string{}
	for i := range 64 {
		name := reflect.ValueOf(i).Convert(p.Type).Interface().(fmt.Stringer).String()
		if !strings.Contains(name, "(") { // as for a number that is not a value
			values[i] = name
		}
	}
	return values
}

var (
	tensorType  = reflect.TypeFor[*tensor.Tensor]()
	tensorsType = reflect.TypeFor[[]*tensor.Tensor]()
	listsType   = reflect.TypeFor[[][]*tensor.Tensor]()
	savedType   = reflect.TypeFor[*Saved]()
)

func sortOf(t reflect.Type) Sort {
	switch t {
	case tensorType:
		return SortTensor
	case tensorsType:
		return SortTensors
	case listsType:
		return SortLists
	case reflect.TypeFor[[]int]():
		return SortInts
	}
	switch {
	case t.Implements(reflect.TypeFor[interface{ Get() (float32, bool) }]()):
		return SortFloat
	case t.Implements(reflect.TypeFor[interface{ Get() (bool, bool) }]()):
		return SortInt
	case t.Implements(reflect.TypeFor[interface{ Bounds() (int, int) }]()):
		return SortInts
	}
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return SortInt
	case reflect.Float32, reflect.Float64:
		return SortFloat
	}
	return SortNone
}
