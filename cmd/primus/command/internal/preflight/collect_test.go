package preflight_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/fstest"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/preflight"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tools writes shell scripts and returns how to find them.
func tools(t *testing.T, scripts map[string]string) func(string) (string, error) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the tools are shell scripts")
	}
	dir := t.TempDir()
	for name, body := range scripts {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body), 0o755))
	}
	return func(name string) (string, error) {
		if _, ok := scripts[name]; !ok {
			return "", fs.ErrNotExist
		}
		return filepath.Join(dir, name), nil
	}
}

func collect(t *testing.T, group preflight.Group, find func(string) (string, error), change func(l *preflight.Limits)) *preflight.Report {
	t.Helper()
	l := preflight.DefaultLimits()
	l.SlowTool = time.Minute
	if change != nil {
		change(&l)
	}
	m := preflight.This()
	m.Find = find
	return preflight.Collect(t.Context(), preflight.Settings{Groups: []preflight.Group{group}, Limits: l, Machine: m, Place: preflight.Place{World: 1}})
}

// check returns the check of a name.
func check(t *testing.T, r *preflight.Report, name string) preflight.Check {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %q in %v", name, r.Checks)
	return preflight.Check{}
}

const nvidia = `
case "$1" in
--query-gpu*) cat <<END
0, NVIDIA H200, GPU-a, 570.86.15, 143771, 0, 0, 31, 0
1, NVIDIA H200, GPU-b, 570.86.15, 143771, 71000, 97, 64, [N/A]
END
;;
--query-compute-apps*) echo "GPU-b, 4242, /usr/bin/python3" ;;
esac`

func TestNVIDIA(t *testing.T) {
	t.Parallel()
	r := collect(t, preflight.GPU, tools(t, map[string]string{"nvidia-smi": nvidia}), nil)
	require.Len(t, r.Devices, 2)
	assert.Equal(t, preflight.Device{Index: 0, Name: "NVIDIA H200", ID: "GPU-a", Driver: "570.86.15", Memory: 143771 << 20, Temperature: 31}, r.Devices[0])
	assert.InDelta(t, -1, r.Devices[1].Uncorrectable, 0)
	assert.Equal(t, "2 × NVIDIA H200, 140 GiB", r.Facts["devices"])
	assert.Equal(t, "570.86.15", r.Facts["driver"])
	assert.Equal(t, preflight.Check{Group: "gpu", Name: "device 0", Status: "ok", Value: "0 bytes of 140 GiB used, 0 % busy, 31 °C"}, check(t, r, "device 0"))
	busy := check(t, r, "device 1")
	assert.Equal(t, preflight.Fail, busy.Status)
	assert.Equal(t, "69.3 GiB of 140 GiB used, 97 % busy, 64 °C, processes: 4242 /usr/bin/python3", busy.Value)
	assert.Equal(t, "other processes hold the device: end them; busier than 20 % before the run", busy.Advice)

	allowed := collect(t, preflight.GPU, tools(t, map[string]string{"nvidia-smi": nvidia}), func(l *preflight.Limits) { l.AllowedNames = []string{"python3"} })
	assert.Equal(t, preflight.Warn, check(t, allowed, "device 1").Status)
	few := collect(t, preflight.GPU, tools(t, map[string]string{"nvidia-smi": nvidia}), func(l *preflight.Limits) { l.ExpectedGPUs = 8 })
	assert.Equal(t, preflight.Fail, check(t, few, "devices").Status)
	assert.Contains(t, check(t, few, "devices").Advice, "8 devices are expected")
}

func TestAMD(t *testing.T) {
	t.Parallel()
	const script = `
case "$1" in
static) echo 'WARNING: user is not in the render group'
echo '{"gpu_data": [{"gpu": 0, "asic": {"market_name": "AMD Instinct MI300X", "asic_serial": "0xA1"}, "driver": {"name": "amdgpu", "version": "6.12.12"}, "vram": {"size": {"value": 196592, "unit": "MB"}}},
{"gpu": 1, "asic": {"market_name": "AMD Instinct MI300X", "asic_serial": "0xA2"}, "driver": {"version": "6.12.12"}, "vram": {"size": {"value": 196592, "unit": "MB"}}}]}' ;;
metric) echo '[{"gpu": 0, "usage": {"gfx_activity": {"value": 3, "unit": "%"}}, "temperature": {"hotspot": {"value": 44, "unit": "C"}}, "mem_usage": {"used_vram": {"value": 283, "unit": "MB"}}, "ecc": {"total_uncorrectable_count": 0}},
{"gpu": 1, "usage": {"gfx_activity": "N/A"}, "temperature": {"hotspot": {"value": 95, "unit": "C"}}, "mem_usage": {"used_vram": {"value": 283, "unit": "MB"}}, "ecc": {"total_uncorrectable_count": 2}}]' ;;
process) echo '[{"gpu": 0, "process_list": [{"process_info": {"name": "gpuagent", "pid": 7}}]}, {"gpu": 1, "process_list": [{"process_info": "No running processes detected"}]}]' ;;
esac`
	r := collect(t, preflight.GPU, tools(t, map[string]string{"amd-smi": script, "rocm-smi": "exit 1"}), nil)
	require.Len(t, r.Devices, 2)
	assert.Equal(t, preflight.Device{Name: "AMD Instinct MI300X", ID: "0xA1", Driver: "6.12.12", Memory: 196592 << 20, Used: 283 << 20, Busy: 3, Temperature: 44, Processes: []string{"7 gpuagent"}}, r.Devices[0])
	assert.Equal(t, preflight.OK, check(t, r, "device 0").Status)
	bad := check(t, r, "device 1")
	assert.Equal(t, preflight.Fail, bad.Status)
	assert.Equal(t, "hotter than 90 °C before the run: check the cooling; memory errors that were not corrected: reset or replace the device", bad.Advice)
}

func TestROCm(t *testing.T) {
	t.Parallel()
	const script = `echo '{"card1": {"GPU use (%)": "0", "VRAM Total Memory (B)": "21458059264", "VRAM Total Used Memory (B)": "27856896", "Card Series": "Radeon RX 7900 XT", "Unique ID": "N/A", "Temperature (Sensor edge) (C)": "35.0"},
"card0": {"GPU use (%)": "1", "VRAM Total Memory (B)": "17163091968", "VRAM Total Used Memory (B)": "692142080", "Card Series": "Radeon RX 6800", "Unique ID": "0x92"}, "system": {"Driver version": "6.8.5"}}'`
	r := collect(t, preflight.GPU, tools(t, map[string]string{"rocm-smi": script}), nil)
	require.Len(t, r.Devices, 2)
	assert.Equal(t, preflight.Device{Index: 1, Name: "Radeon RX 7900 XT", Driver: "6.8.5", Memory: 21458059264, Used: 27856896, Temperature: 35, Uncorrectable: -1}, r.Devices[1])
	assert.Equal(t, preflight.Warn, check(t, r, "devices").Status, "the two differ")
}

// TestToolsThatFail checks what is said of a tool that hangs, fails or prints something else.
func TestToolsThatFail(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, want string }{
		"hangs":    {"exec sleep 60", "rocm-smi did not answer within 300ms"},
		"fails":    {"echo driver not loaded >&2; exit 3", "rocm-smi: exit status 3 driver not loaded"},
		"no JSON":  {"echo hello", "rocm-smi --json: unexpected output: no JSON"},
		"bad JSON": {"echo '{\"card0\"'", "rocm-smi --json: unexpected output: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := collect(t, preflight.GPU, tools(t, map[string]string{"rocm-smi": c.script}), func(l *preflight.Limits) {
				if name == "hangs" {
					l.ToolTimeout = 300 * time.Millisecond
				}
			})
			got := check(t, r, "rocm-smi")
			assert.Equal(t, preflight.Fail, got.Status)
			assert.Contains(t, got.Value, c.want)
		})
	}
}

func TestNoTool(t *testing.T) {
	t.Parallel()
	none := func(string) (string, error) { return "", fs.ErrNotExist }
	assert.Equal(t, preflight.OK, check(t, collect(t, preflight.GPU, none, nil), "devices").Status)
	expected := collect(t, preflight.GPU, none, func(l *preflight.Limits) { l.ExpectedGPUs = 1 })
	assert.Equal(t, preflight.Fail, check(t, expected, "devices").Status)
}

// TestPCIBus checks what is said of accelerators without the tool of their vendor.
func TestPCIBus(t *testing.T) {
	t.Parallel()
	root := fstest.MapFS{}
	for slot, ids := range map[string][2]string{"0000:18:00.0": {"0x030200", "0x10de"}, "0000:2a:00.0": {"0x030200", "0x10de"}, "0000:05:00.0": {"0x120000", "0x1002"}, "0000:00:02.0": {"0x030000", "0x1a03"}, "0000:00:1f.0": {"0x060100", "0x10de"}} {
		root["sys/bus/pci/devices/"+slot+"/class"] = &fstest.MapFile{Data: []byte(ids[0] + "\n")}
		root["sys/bus/pci/devices/"+slot+"/vendor"] = &fstest.MapFile{Data: []byte(ids[1] + "\n")}
	}
	m := preflight.Machine{Root: root, Getenv: os.Getenv, Find: func(string) (string, error) { return "", fs.ErrNotExist }}
	r := preflight.Collect(t.Context(), preflight.Settings{Groups: []preflight.Group{preflight.GPU}, Machine: m})
	got := check(t, r, "devices")
	assert.Equal(t, preflight.Warn, got.Status)
	assert.Equal(t, "none of nvidia-smi, amd-smi and rocm-smi is on PATH; the PCI bus has 1 accelerator of AMD; the PCI bus has 2 accelerators of NVIDIA", got.Value)
}

// TestRDMA checks ports of a tree as the kernel shows it.
func TestRDMA(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text + "\n")} }
	root := fstest.MapFS{}
	for device, states := range map[string][2]string{"mlx5_0": {"4: ACTIVE", "5: LinkUp"}, "mlx5_1": {"1: DOWN", "2: Polling"}, "mlx5_2": {"1: DOWN", "3: Disabled"}} {
		at := "sys/class/infiniband/" + device + "/ports/1/"
		root[at+"state"], root[at+"phys_state"], root[at+"rate"], root[at+"link_layer"] = file(states[0]), file(states[1]), file("400 Gb/sec (4X NDR)"), file("InfiniBand")
	}
	with := func(list string, expected int) *preflight.Report {
		l := preflight.DefaultLimits()
		l.ExpectedRDMA = expected
		m := preflight.Machine{Root: root, Find: preflight.This().Find, Getenv: func(name string) string { return map[string]string{"NCCL_IB_HCA": list}[name] }}
		return preflight.Collect(t.Context(), preflight.Settings{Groups: []preflight.Group{preflight.Network}, Limits: l, Machine: m, Place: preflight.Place{World: 1}})
	}
	r := with("", 2)
	assert.Equal(t, preflight.Check{Group: "network", Name: "RDMA mlx5_0:1", Status: "ok", Value: "ACTIVE, LinkUp, 400 Gb/sec (4X NDR), InfiniBand"}, check(t, r, "RDMA mlx5_0:1"))
	assert.Equal(t, preflight.Fail, check(t, r, "RDMA mlx5_1:1").Status)
	assert.Equal(t, preflight.OK, check(t, r, "RDMA mlx5_2:1").Status, "switched off by the administrator")
	assert.Equal(t, preflight.Check{Group: "network", Name: "RDMA ports", Status: "fail", Value: "1 active", Advice: "2 are expected"}, check(t, r, "RDMA ports"))
	for list, want := range map[string]preflight.Status{"mlx5_0": "ok", "^mlx5_1": "fail", "^mlx5_1,mlx5_2": "ok", "=mlx5_0:1,mlx5_2:2": "ok", "mlx5_": "fail", "=mlx5": "ok", "mlx5_1:2": "ok"} {
		assert.Equal(t, want, preflight.Worst(with(list, 0).Checks), list)
	}
}

func TestInterfaceVariables(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]preflight.Status{"lo": "ok", "=lo": "ok", "nosuch,lo": "ok", "nosuch": "fail", "=l": "fail", "^lo": "ok"} {
		m := preflight.This()
		m.Getenv = func(name string) string { return map[string]string{"NCCL_SOCKET_IFNAME": value}[name] }
		r := preflight.Collect(t.Context(), preflight.Settings{Groups: []preflight.Group{preflight.Network}, Machine: m, Place: preflight.Place{World: 1}})
		assert.Equal(t, want, preflight.Worst(r.Checks), value)
	}
}

func TestHost(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the files are those of Linux")
	}
	r := collect(t, preflight.Host, preflight.This().Find, func(l *preflight.Limits) {
		l.RequiredTools = []string{"sh", "no-such-tool"}
		l.LockedMemory, l.SharedMemory, l.Strict, l.FreeDisk = 1<<62, 1<<62, true, 1
	})
	assert.Equal(t, preflight.OK, check(t, r, "tool sh").Status)
	assert.Equal(t, preflight.Fail, check(t, r, "tool no-such-tool").Status)
	assert.Equal(t, preflight.Fail, check(t, r, "/dev/shm").Status)
	assert.NotEmpty(t, r.Facts["kernel"])
	assert.Contains(t, r.Facts["cpu"], "×")
	assert.Contains(t, check(t, r, "memory").Value, "available of")
	assert.Equal(t, preflight.OK, check(t, r, "disk of the working directory").Status)
}

// TestKernelLog reads what a script prints in place of dmesg.
func TestKernelLog(t *testing.T) {
	t.Parallel()
	now, old := time.Now().Format("2006-01-02T15:04:05,000000-07:00"), time.Now().Add(-time.Hour).Format("2006-01-02T15:04:05,000000-07:00")
	for script, want := range map[string]preflight.Status{
		"echo '" + now + " NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus.'": preflight.Warn,
		"echo '" + old + " NVRM: Xid (PCI:0000:18:00): 79'":                              preflight.OK,
		"echo '" + now + " usb 1-1: new device'":                                         preflight.OK,
		"exit 1":                                                                         preflight.OK,
	} {
		r := collect(t, preflight.Host, tools(t, map[string]string{"dmesg": script}), func(l *preflight.Limits) { l.KernelLog = 15 * time.Minute })
		assert.Equal(t, want, check(t, r, "kernel log").Status, script)
	}
}

func TestSpeed(t *testing.T) {
	t.Parallel()
	run := func(product func(context.Context, int) (time.Duration, error), local int) *preflight.Report {
		l := preflight.DefaultLimits()
		l.ProductTFLOPS = 1
		return preflight.Collect(t.Context(), preflight.Settings{Groups: []preflight.Group{preflight.Speed}, Limits: l, Machine: preflight.This(), Product: product, Place: preflight.Place{World: 2, Local: local}})
	}
	r := run(func(_ context.Context, size int) (time.Duration, error) { return time.Duration(size), nil }, 0)
	assert.InEpsilon(t, 2*1024*1024*1e9, r.Rates["matrix product"], 1e-9)
	assert.Equal(t, preflight.OK, check(t, r, "matrix product").Status)
	assert.Positive(t, r.Rates["copy of memory"])
	slow := run(func(context.Context, int) (time.Duration, error) { return time.Minute, nil }, 0)
	assert.Equal(t, preflight.Fail, check(t, slow, "matrix product").Status)
	broken := run(func(context.Context, int) (time.Duration, error) { return 0, errors.New("no impl") }, 0)
	assert.Equal(t, "no impl", check(t, broken, "matrix product").Value)
	assert.Empty(t, run(nil, 1).Checks, "the second rank of a host measures nothing")
}
