package plugins_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/loadertest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// acmeOpenCL compiles the example for OpenCL, with texts of its source replaced: pairs of an old
// and a new one. The test is skipped on a machine without a device or without the headers.
func acmeOpenCL(t *testing.T, replace ...string) string {
	t.Helper()
	if listed := commandtest.RunChild(t, withOpenCL(), "devices", "list"); !strings.Contains(listed.Out, "opencl:0") {
		t.Skip("there is no OpenCL device: ", listed.Out)
	}
	if _, err := os.Stat("/usr/include/CL/cl.h"); err != nil {
		t.Skip("there are no headers of OpenCL: ", err)
	}
	text, err := os.ReadFile("../../../../../examples/outtree_opencl/acme.c")
	require.NoError(t, err)
	for i := 0; i < len(replace); i += 2 {
		require.Contains(t, string(text), replace[i])
	}
	file := filepath.Join(t.TempDir(), "acme.c")
	require.NoError(t, os.WriteFile(file, []byte(strings.NewReplacer(replace...).Replace(string(text))), 0o600))
	return loadertest.Library(t, "libacme_opencl.so", file, "-O2", "-I../../../../../vendors/abi", "-l:libOpenCL.so.1")
}

// strayKernel is what acmeOpenCL replaces so that residual_add writes after the end of its result.
func strayKernel() []string {
	return []string{"get(b, b0 + i));", "get(b, b0 + i)); if (i + 1 == get_global_size(0)) put(output, output0 + i + 1, 1);"}
}

// withOpenCL is the environment of a child that may use the OpenCL library of the system.
func withOpenCL() []string { return []string{"PRIMUS_OPENCL="} }

func TestPluginsCheckOnOpenCL(t *testing.T) {
	t.Setenv("PRIMUS_OPENCL", "")
	report, got := check(t, acmeOpenCL(t), "--op", "rmsnorm_*")
	assert.Zero(t, got.Code, got.Out)
	assert.True(t, report.Passed)
	assert.Equal(t, "acme_opencl 1.0.0 1.2", report.Name+" "+report.Version+" "+report.ABI)
	require.Len(t, report.Ops, 2)
	for i, op := range []string{"rmsnorm_fwd", "rmsnorm_bwd"} {
		c := report.Ops[i]
		assert.Equal(t, op, c.Op)
		assert.Equal(t, "opencl:0", c.Device)
		require.Len(t, c.Conformance, 4)
		for k, served := range []bool{true, true, false, false} {
			assert.Equal(t, served, c.Conformance[k].Served > 0, c.Conformance[k].DType)
		}
		assert.Positive(t, c.Together.Calls)
		require.Len(t, c.Speed, 2, "f32 and bf16")
		assert.Positive(t, c.Speed[0].Impl)
		assert.Equal(t, "vendor.opencl", c.Speed[0].Baseline)
		assert.Positive(t, c.Speed[0].BaselineTime)
	}
}

// A new project passes the check as it is.
func TestPluginsNewOnOpenCL(t *testing.T) {
	acmeOpenCL(t) // or skip
	commandtest.Tools(t, "make")
	t.Setenv("PRIMUS_OPENCL", "")
	dir := filepath.Join(t.TempDir(), "new")
	got := commandtest.Run(t, "plugins", "new", "--lang", "opencl", "acme", "--dir", dir)
	require.Zero(t, got.Code, got.Stderr)
	cmd := exec.Command("make", "CFLAGS=-O1 -Wall -Wextra -Wpedantic -Werror -Wl,-z,defs")
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	t.Setenv("POCL_DEVICES", "pthread pthread")
	report, got := check(t, filepath.Join(dir, "libacme.so"), "--device", "opencl:1")
	assert.Zero(t, got.Code, got.Out)
	assert.True(t, report.Passed)
	assert.Equal(t, "opencl:1", report.Ops[0].Device)
	for name, want := range map[string]string{"opencl:7": "there is no device 7", "tpu": `--device="tpu"`} {
		got := commandtest.Run(t, "plugins", "check", "libacme.so", "--device", name)
		assert.Equal(t, 2, got.Code)
		assert.Contains(t, commandtest.OnlyError(t, got), want)
	}
}

// Training on a device calls the ops of a plugin.
func TestTrainWithPluginOnOpenCL(t *testing.T) {
	t.Parallel()
	lib := acmeOpenCL(t)
	root, err := filepath.Abs("../../../../..")
	require.NoError(t, err)
	env := append(withOpenCL(), "TE_FL_PLUGIN_MODULES="+lib, "PRIMUS_WORKSPACE="+t.TempDir(),
		"TE_FL_CROSS_DEVICE=error", "TE_FL_PER_OP=residual_add=vendor:acme|flagos|vendor;rmsnorm_fwd=vendor:acme|flagos|vendor;rmsnorm_bwd=vendor:acme|flagos|vendor")
	explained := commandtest.RunChild(t, env, "ops", "explain", "rmsnorm_fwd")
	assert.Regexp(t, `(?m)^on opencl: .*vendor\.acme`, explained.Out, explained.Stderr)
	trained := commandtest.RunChild(t, env, "train", "pretrain", "--config", filepath.Join(root, "examples/native/configs/llama_2M-pretrain.yaml"),
		"device=opencl:0", "train_iters=2", "num_layers=1", "hidden_size=32", "ffn_hidden_size=64", "num_attention_heads=4", "num_query_groups=2",
		"seq_length=32", "eval_interval=0", "load=none")
	require.Zero(t, trained.Code, trained.Out+trained.Stderr)
	for _, op := range []string{"residual_add", "rmsnorm_fwd", "rmsnorm_bwd"} {
		assert.Regexp(t, `(?m)^ *`+op+` +vendor\.acme`, trained.Out)
	}
}

// A device that an op of a plugin finds lost ends the run, as it does elsewhere.
func TestPluginLosesTheDevice(t *testing.T) {
	t.Parallel()
	lib := acmeOpenCL(t, "static int32_t backward_run(const primus_call *call) { return", `static int32_t backward_run(const primus_call *call) {
    static int calls;
    if (calls++ >= 12) return failed(call, "clEnqueueNDRangeKernel", CL_DEVICE_NOT_AVAILABLE);
    return`)
	l := commandtest.NewLab(t)
	env := append(withOpenCL(), "TE_FL_PLUGIN_MODULES="+lib, "TE_FL_PER_OP=rmsnorm_fwd=vendor:acme|flagos|vendor;rmsnorm_bwd=vendor:acme|flagos|vendor")
	got := commandtest.RunChild(t, env, l.Args("device=opencl:0", "train_iters=40")...)
	assert.Equal(t, 1, got.Code, got.Out)
	assert.Contains(t, commandtest.OnlyError(t, got), "device: the device is lost: clEnqueueNDRangeKernel returned -2")
}

// What is wrong with an op for a device is found as it is on the CPU.
func TestPluginsCheckFindsFaultsOnOpenCL(t *testing.T) {
	t.Setenv("PRIMUS_OPENCL", "")
	for _, tt := range []struct {
		name    string
		replace []string
		op      string
		want    string // in a case or a fault
	}{
		{"wrong", []string{"get(a, a0 + i) + get(b, b0 + i)", "get(a, a0 + i) - get(b, b0 + i)"}, "residual_add", "not within"},
		{"guard", strayKernel(), "residual_add", "it wrote to memory of the device next to operands of f32"},
		{"fails", []string{"l->kernel, 1, NULL,", "l->kernel, 4, NULL,"}, "residual_add", "clEnqueueNDRangeKernel returned -53"},
		{"unknown device", []string{"devices[] = {PRIMUS_DEVICE_OPENCL}", "devices[] = {99}"}, "residual_add", "none has devices of the type device_type(99); registered: CPU, OPENCL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			report, got := check(t, acmeOpenCL(t, tt.replace...), "--op", tt.op)
			assert.Equal(t, 1, got.Code)
			assert.False(t, report.Passed)
			assert.Contains(t, got.Out, tt.want)
		})
	}
}

// Without a driver nothing passes silently.
func TestPluginsOnOpenCLWithoutDriver(t *testing.T) {
	lib := acmeOpenCL(t)
	t.Setenv("PRIMUS_OPENCL", commandtest.Absent)
	report, got := check(t, lib)
	assert.Equal(t, 1, got.Code)
	assert.Equal(t, []string{"no case of any op was served, so nothing was checked"}, report.Faults)
	require.Len(t, report.Notes, 3)
	assert.Contains(t, report.Notes[0], "residual_add, vendor.acme on opencl was not checked, it is not available on this machine: it serves operands on opencl: opencl: ")
	assert.Contains(t, report.Notes[0], commandtest.Absent)

	rows := listPlugins(t, []string{"TE_FL_PLUGIN_MODULES=" + lib, "PRIMUS_OPENCL=" + commandtest.Absent})
	require.Len(t, rows["acme_opencl"].Ops, 3)
	assert.Equal(t, "loaded", rows["acme_opencl"].State)
	assert.False(t, rows["acme_opencl"].Ops[0].Available)
	assert.Contains(t, rows["acme_opencl"].Ops[0].Reason, commandtest.Absent)
}

func TestPluginsListOnOpenCL(t *testing.T) {
	t.Parallel()
	lib := acmeOpenCL(t)
	env := append(withOpenCL(), "TE_FL_PLUGIN_MODULES="+lib)
	rows := listPlugins(t, env)
	require.Len(t, rows["acme_opencl"].Ops, 3)
	for _, op := range rows["acme_opencl"].Ops {
		assert.True(t, op.Available, op.Reason)
		assert.Positive(t, op.Trial.Served, "%+v", op)
		assert.Empty(t, op.Trial.Failure)
	}
	rows = listPlugins(t, env, "--isolate-plugins")
	assert.Equal(t, "rejected", rows["acme_opencl"].State)
	assert.Contains(t, rows["acme_opencl"].Reason, `impl "vendor.acme" of op "residual_add" serves operands on opencl, whose memory only this process sees`)

	stray := acmeOpenCL(t, strayKernel()...)
	rows = listPlugins(t, append(withOpenCL(), "TE_FL_PLUGIN_MODULES="+stray))
	assert.Equal(t, "rejected", rows["acme_opencl"].State)
	assert.Contains(t, rows["acme_opencl"].Reason, "on opencl: it wrote to memory of the device next to operands of f32")

	crash := acmeOpenCL(t, "static int32_t add_run(const primus_call *call) { ", "static int32_t add_run(const primus_call *call) { *(volatile int *)NULL = 1; ")
	rows = listPlugins(t, append(withOpenCL(), "TE_FL_PLUGIN_MODULES="+crash))
	assert.Contains(t, rows["acme_opencl"].Reason, `it crashed with SIGSEGV (segmentation violation) in run of impl "vendor.acme" of op "residual_add", case f32/`)
	assert.Contains(t, rows["acme_opencl"].Reason, "on opencl")
}
