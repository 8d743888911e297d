package abi_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/vendors/abi"
)

// structs pairs the structs of both languages, field by field in order. A field of
// Go may be a part of one in C.
var structs = []struct {
	c      string
	fields []string
	golang reflect.Type
}{
	{"primus_tensor", []string{"data", "device.device_type", "device.device_id", "ndim", "dtype.code", "dtype.bits", "dtype.lanes", "shape", "strides", "byte_offset"}, reflect.TypeFor[abi.Tensor]()},
	{"primus_tensor_list", []string{"count", "items"}, reflect.TypeFor[abi.List]()},
	{"primus_tensor_lists", []string{"count", "items"}, reflect.TypeFor[abi.List]()},
	{"primus_ints", []string{"count", "items"}, reflect.TypeFor[abi.List]()},
	{"primus_arg", []string{"sort", "reserved", "value"}, reflect.TypeFor[abi.Arg]()},
	{"primus_host", []string{"struct_size", "reserved", "log", "alloc", "free"}, reflect.TypeFor[abi.Host]()},
	{"primus_call", []string{"struct_size", "n_args", "args", "stream", "workspace", "workspace_bytes", "host", "error", "error_bytes", "context", "device", "workspace_offset"}, reflect.TypeFor[abi.Call]()},
	{"primus_op", []string{"struct_size", "kind", "op", "impl_id", "vendor", "priority", "flags", "is_available", "supports", "workspace_size", "run", "layout", "device_types", "n_device_types", "reserved"}, reflect.TypeFor[abi.Op]()},
	{"primus_plugin", []string{"struct_size", "abi_major", "abi_minor", "n_ops", "name", "version", "ops"}, reflect.TypeFor[abi.Plugin]()},
}

var constants = map[string]uint64{
	"PRIMUS_ABI_MAJOR": abi.Major, "PRIMUS_ABI_MINOR": abi.Minor,
	"PRIMUS_OK": abi.OK, "PRIMUS_UNSUPPORTED": abi.Unsupported, "PRIMUS_FAILED": abi.Failed,
	"PRIMUS_OUT_OF_MEMORY": abi.OutOfMemory, "PRIMUS_DEVICE_LOST": abi.DeviceLost,
	"PRIMUS_KIND_FLAGOS": abi.KindFlagos, "PRIMUS_KIND_VENDOR": abi.KindVendor, "PRIMUS_KIND_REFERENCE": abi.KindReference,
	"PRIMUS_FLAG_THREAD_SAFE": abi.ThreadSafe, "PRIMUS_FLAG_DETERMINISTIC": abi.Deterministic,
	"PRIMUS_FLAG_SAME_THREAD": abi.SameThread, "PRIMUS_FLAG_ASYNC": abi.Async,
	"PRIMUS_FLAG_FLUSHES_SUBNORMALS": abi.FlushesSubnormals,
	"PRIMUS_DEVICE_CPU":              abi.DeviceCPU, "PRIMUS_DEVICE_CUDA": abi.DeviceCUDA, "PRIMUS_DEVICE_OPENCL": abi.DeviceOpenCL, "PRIMUS_DEVICE_ROCM": abi.DeviceROCM,
	"PRIMUS_ARG_ABSENT": abi.ArgAbsent, "PRIMUS_ARG_TENSOR": abi.ArgTensor, "PRIMUS_ARG_TENSORS": abi.ArgTensors,
	"PRIMUS_ARG_LISTS": abi.ArgLists, "PRIMUS_ARG_INT": abi.ArgInt, "PRIMUS_ARG_FLOAT": abi.ArgFloat, "PRIMUS_ARG_INTS": abi.ArgInts,
	"PRIMUS_LOG_DEBUG": abi.LogDebug, "PRIMUS_LOG_INFO": abi.LogInfo, "PRIMUS_LOG_WARN": abi.LogWarn, "PRIMUS_LOG_ERROR": abi.LogError,
}

// TestLayout compiles the header as C and C++ and compares every size, offset and constant.
func TestLayout(t *testing.T) {
	t.Parallel()
	var want, program strings.Builder
	program.WriteString("#include \"primus_op_plugin.h\"\n#include \"primus_op_args.h\"\n#include <stdio.h>\nint main(void) {\n")
	for _, s := range structs {
		fmt.Fprintf(&want, "%s %d\n", s.c, s.golang.Size())
		fmt.Fprintf(&program, "printf(\"%s %%zu\\n\", sizeof(%s));\n", s.c, s.c)
		require.Len(t, s.fields, s.golang.NumField(), s.c)
		for i, field := range s.fields {
			f := s.golang.Field(i)
			fmt.Fprintf(&want, "%s.%s %d %d\n", s.c, field, f.Offset, f.Type.Size())
			fmt.Fprintf(&program, "printf(\"%s.%s %%zu %%zu\\n\", offsetof(%s, %s), sizeof(((%s *)0)->%s));\n", s.c, field, s.c, field, s.c, field)
		}
	}
	for name, value := range constants {
		fmt.Fprintf(&want, "%s %d\n", name, value)
		fmt.Fprintf(&program, "printf(\"%s %%llu\\n\", (unsigned long long)%s);\n", name, name)
	}
	program.WriteString("return 0;\n}\n")
	for compiler, source := range map[string]string{"cc": "layout.c", "c++": "layout.cc"} {
		t.Run(compiler, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(compiler); err != nil {
				t.Skip("no compiler: ", err)
			}
			dir := t.TempDir()
			file, binary := filepath.Join(dir, source), filepath.Join(dir, "layout")
			require.NoError(t, os.WriteFile(file, []byte(program.String()), 0o600))
			flags := []string{"-Wall", "-Wextra", "-Werror", "-I", ".", "-o", binary, file}
			if compiler == "cc" {
				flags = append([]string{"-std=c99", "-pedantic"}, flags...)
			}
			text, err := exec.CommandContext(t.Context(), compiler, flags...).CombinedOutput()
			require.NoError(t, err, "%s", text)
			got, err := exec.CommandContext(t.Context(), binary).Output()
			require.NoError(t, err)
			assert.Equal(t, want.String(), string(got))
		})
	}
}
