package opencl

import (
	_ "embed"

	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/tensor"
)

//go:embed rows.cl
var head string

// partition is how kernels cut work.
type partition struct {
	Group int // work-items of a group, a power of two
	Width int // elements of a vector: 4, 8 or 16
}

// Limits of groups that share rows.
const (
	maxGroup = 256
	cpuWidth = 16
	gpuWidth = 4
)

// shapeFor returns how work is cut on a device.
func shapeFor(info opencl.Info) partition {
	if info.Kind == "cpu" {
		return partition{Group: 1, Width: cpuWidth}
	}
	group := maxGroup
	for group > max(info.MaxWorkGroup, 1) {
		group /= 2
	}
	return partition{Group: group, Width: gpuWidth}
}

// maxTypes is how many dtypes a program may depend on.
const maxTypes = 6

// typeList are the dtypes of a variant, by the names that newProgram was given; those left out are
// f32.
type typeList [maxTypes]tensor.DType

// macroFlags says which macros of a program are defined: bit i stands for the i-th.
type macroFlags uint32

// rowsProgram is the source of a family.
type rowsProgram struct {
	program *kernelProgram[rowsVariant]
	names   *names
}

// names are the macros of a program.
type names struct{ types, flags []string }

// rowsVariant is what is fixed when a program is built.
type rowsVariant struct {
	names *names
	shape partition
	types typeList
	flags macroFlags
	dense bool
}

// newProgram returns a program with a name for messages. The macros types name dtypes; flags are
// macros or definitions of macros, such as "ADD" or "F=gelu".
func newProgram(name, source string, types, flags []string) *rowsProgram {
	return &rowsProgram{program: newKernelProgram[rowsVariant](name, head+source), names: &names{types: types, flags: flags}}
}

// Options returns the options of the compiler.
func (v rowsVariant) Options() []string {
	options := []string{define("GROUP", v.shape.Group), define("W", v.shape.Width)}
	for i, name := range v.names.types {
		options = append(options, define(name, typeName(v.types[i])))
	}
	for i, name := range v.names.flags {
		if v.flags>>i&1 != 0 {
			options = append(options, "-D"+name)
		}
	}
	if v.dense {
		options = append(options, "-DDENSE")
	}
	return options
}
