package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/internal/cpufeat"
)

// errAbsent says that a peer cannot run on this machine.
var errAbsent = errors.New("not available")

// shapeFlags returns the flags with which pytorch_lm.py trains a model of a shape, which
// `primus benchmark train -o json` prints.
func shapeFlags(shape map[string]any) []string {
	var args []string
	for _, name := range slices.Sorted(maps.Keys(shape)) {
		flag := "--" + strings.ReplaceAll(name, "_", "-")
		switch v := shape[name].(type) {
		case bool:
			if v {
				args = append(args, flag)
			}
		default:
			args = append(args, flag, fmt.Sprint(v))
		}
	}
	return args
}

// pytorchSettings returns the environment variables that make Debian's PyTorch fast on this CPU.
func pytorchSettings(threads int) []string {
	set := []string{"OMP_NUM_THREADS=" + strconv.Itoa(threads)}
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		set = append(set, "OPENBLAS_CORETYPE=SKYLAKEX", "ATEN_CPU_CAPABILITY=avx512")
	case cpufeat.Has(cpufeat.AVX2):
		set = append(set, "OPENBLAS_CORETYPE=HASWELL", "ATEN_CPU_CAPABILITY=avx2")
	}
	if found, _ := filepath.Glob("/usr/lib/*/openblas-openmp"); len(found) > 0 {
		set = append(set, "LD_LIBRARY_PATH="+found[0])
	}
	if found, _ := filepath.Glob("/usr/lib/*/libtcmalloc_minimal.so.4"); len(found) > 0 {
		set = append(set, "LD_PRELOAD="+found[0])
	}
	return set
}

// pythonOf returns a Python with PyTorch: the given one, or the first that has it.
func pythonOf(ctx context.Context, given string) (string, error) {
	try := []string{"/usr/bin/python3", "python3"}
	if given != "" {
		try = []string{given}
	}
	for _, python := range try {
		if exec.CommandContext(ctx, python, "-c", "import torch").Run() == nil {
			return python, nil
		}
	}
	return "", fmt.Errorf("PyTorch: %w: %s cannot import torch; install python3-torch or give -python", errAbsent, strings.Join(try, " and "))
}

// answer runs a command and reads the JSON that it prints.
func answer(cmd *exec.Cmd, into any) error {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return nil
}

// without returns the variables that begin with none of the prefixes.
func without(env []string, prefixes ...string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(v, p) })
	})
}

// machine returns the name and the number of the CPUs.
func machine() string {
	name := runtime.GOARCH
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			name = strings.TrimSpace(value)
			break
		}
	}
	return fmt.Sprintf("%d × %s", runtime.NumCPU(), name)
}
