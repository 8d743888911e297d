package main

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/device/opencl"
)

func TestOpenCLFlags(t *testing.T) {
	for want, args := range map[string][]string{
		"-only: ":                        {"-only", "("},
		`-o: given "yaml"`:               {"-o", "yaml"},
		"-rounds: given 0":               {"-rounds", "0"},
		`unexpected argument "llama_2M"`: {"llama_2M"},
	} {
		assert.ErrorContains(t, openCL(t.Context(), args, io.Discard, io.Discard), want)
	}
}

func TestOneProduct(t *testing.T) {
	b := opencl.New(opencl.Options{})
	if err := b.Usable(); err != nil {
		t.Skipf("there is no OpenCL device: %v", err)
	}
	assert.NoError(t, b.Close())
	var out strings.Builder
	assert.NoError(t, openCL(t.Context(), []string{"-rounds", "1", "-only", "^llama_2M/proj/forward$"}, &out, io.Discard))
	assert.Regexp(t, `llama_2M/proj/forward +[\d.]+ +(-|[\d.]+) +[\d.]+ +GFLOP/s`, out.String())
}
