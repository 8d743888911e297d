package preflight_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { commandtest.Main(m, nil) }

// shownCheck is a check as JSON shows it.
type shownCheck struct{ Group, Name, Status, Value, Advice string }

// report is what -o json prints.
type report struct {
	Status string
	Ranks  []struct {
		Rank   int
		Host   string
		Checks []shownCheck
		Rates  map[string]float64
	}
	Cluster []shownCheck
}

func parse(t *testing.T, text string) report {
	t.Helper()
	var r report
	require.NoError(t, json.Unmarshal([]byte(text), &r), text)
	return r
}

func find(checks []shownCheck, name string) shownCheck {
	for _, c := range checks {
		if c.Name == name {
			return c
		}
	}
	return shownCheck{}
}

// tool writes a nvidia-smi that shows a number of devices, and returns its directory.
func tool(t *testing.T, devices int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("#!/bin/sh\ncase \"$1\" in --query-gpu*)\n")
	for i := range devices {
		b.WriteString("echo '" + strconv.Itoa(i) + ", NVIDIA H200, GPU-" + strconv.Itoa(i) + ", 570.86.15, 143771, 0, 0, 31, 0'\n")
	}
	b.WriteString(";; esac\n")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte(b.String()), 0o755))
	return dir
}

// masterPort returns a port below a free one, where rank 0 collects.
func masterPort(t *testing.T) string { return strconv.Itoa(primustest.FreePort(t) - 1) }

// Flags of Primus that have no meaning here are refused with the reason.
func TestFlagsOfPrimus(t *testing.T) {
	for give, want := range map[string]string{
		"--tests=gemm":    "--tests: collectives and accelerators are not measured: want --perf-test",
		"--plot":          "--plot: collectives and accelerators are not measured: want --perf-test",
		"--disable-pdf":   "--disable-pdf: reports are Markdown and never PDF: leave it out",
		"--expected-gpu=": "unknown flag --expected-gpu; did you mean --expected-gpus?",
	} {
		got := commandtest.Run(t, "preflight", give)
		assert.Equal(t, 2, got.Code, give)
		assert.Contains(t, commandtest.OnlyError(t, got), want)
	}
}

func TestOneNode(t *testing.T) {
	got := commandtest.Run(t, "preflight", "--host", "--perf-test", "-o", "json")
	r := parse(t, got.Out)
	require.Len(t, r.Ranks, 1)
	assert.Empty(t, r.Cluster)
	assert.Positive(t, r.Ranks[0].Rates["matrix product"])
	assert.NotEmpty(t, find(r.Ranks[0].Checks, "CPU").Value)
	assert.Empty(t, find(r.Ranks[0].Checks, "devices").Name, "--gpu was not given")
	wantCode := 0
	if r.Status == "fail" {
		wantCode = 1
	}
	assert.Equal(t, wantCode, got.Code)

	table := commandtest.Run(t, "preflight", "--check-network")
	assert.Contains(t, table.Out, "about    check")
	assert.Contains(t, table.Out, "own name")
	markdown := commandtest.Run(t, "preflight", "--gpu", "-o", "md")
	assert.Contains(t, markdown.Out, "| about | check | status | value | what to do |")
	dir := t.TempDir()
	saved := commandtest.Run(t, "preflight", "--gpu", "--dump-path", dir, "--report-file-name", "today")
	assert.Contains(t, saved.Stderr, "report in "+filepath.Join(dir, "today.md"))
	file, err := os.ReadFile(filepath.Join(dir, "today.md"))
	require.NoError(t, err)
	assert.Contains(t, string(file), "| about | check | status | value | what to do |")
	commandtest.Run(t, "preflight", "--gpu", "--dump-path", dir)
	files, err := filepath.Glob(filepath.Join(dir, "preflight-1N-*.md"))
	require.NoError(t, err)
	assert.Len(t, files, 1)
}

// TestTwoRanks starts two processes as a launcher would, one of which lacks a device.
func TestTwoRanks(t *testing.T) {
	t.Parallel()
	port := masterPort(t)
	outcomes := make([]commandtest.Outcome, 2)
	var wait sync.WaitGroup
	for rank, devices := range []int{8, 7} {
		dir := tool(t, devices)
		wait.Go(func() {
			outcomes[rank] = commandtest.RunChild(t, []string{
				"RANK=" + strconv.Itoa(rank), "WORLD_SIZE=2", "LOCAL_RANK=" + strconv.Itoa(rank), "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port,
				"PATH=" + dir + ":" + os.Getenv("PATH"),
			}, "preflight", "--gpu", "--network", "-o", "json", "--dist-timeout-sec", "60")
		})
	}
	wait.Wait()
	r := parse(t, outcomes[0].Out)
	require.Len(t, r.Ranks, 2)
	assert.Equal(t, "all 2 reported", find(r.Cluster, "ranks").Value)
	odd := find(r.Cluster, "devices")
	assert.Equal(t, "warn", odd.Status)
	assert.Equal(t, "rank 1 ("+r.Ranks[1].Host+"): 7 × NVIDIA H200, 140 GiB; the other rank: 8 × NVIDIA H200, 140 GiB", odd.Value)
	assert.Zero(t, outcomes[0].Code, outcomes[0].Stderr)
	assert.Zero(t, outcomes[1].Code, outcomes[1].Stderr)
	assert.Empty(t, outcomes[1].Out)
	assert.Contains(t, outcomes[1].Stderr, "rank 1 ("+r.Ranks[1].Host+"): ")
}

// TestExpectedDevices checks that both ranks fail when one of them does.
func TestExpectedDevices(t *testing.T) {
	t.Parallel()
	port := masterPort(t)
	outcomes := make([]commandtest.Outcome, 2)
	var wait sync.WaitGroup
	for rank, devices := range []int{8, 7} {
		dir := tool(t, devices)
		wait.Go(func() {
			outcomes[rank] = commandtest.RunChild(t, []string{
				"NODE_RANK=" + strconv.Itoa(rank), "NNODES=2", "GPUS_PER_NODE=8", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port, "PATH=" + dir + ":" + os.Getenv("PATH"),
			}, "preflight", "--gpu")
		})
	}
	wait.Wait()
	assert.Equal(t, 1, outcomes[0].Code)
	assert.Equal(t, 1, outcomes[1].Code)
	assert.Contains(t, commandtest.OneSpace(outcomes[0].Out), "gpu devices fail 7 × NVIDIA H200, 140 GiB 8 devices are expected")
}

func TestMissingRank(t *testing.T) {
	t.Parallel()
	got := commandtest.RunChild(t, []string{"RANK=0", "WORLD_SIZE=3", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + masterPort(t)}, "preflight", "--gpu", "--dist-timeout-sec", "1")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Out, "1 of 3 reported; missing: 1-2")
	alone := commandtest.RunChild(t, []string{"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + masterPort(t)}, "preflight", "--gpu", "--dist-timeout-sec", "1")
	assert.Equal(t, 1, alone.Code)
	assert.Contains(t, alone.Stderr, "rank 1 cannot reach rank 0")
}

func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"preflight x":                      `unexpected argument "x"`,
		"preflight --dist-timeout-sec 0":   "--dist-timeout-sec: given 0",
		"preflight --prt 1":                "unknown flag --prt; did you mean --port?",
		"node-smoke --wait-timeout-sec=-1": "--wait-timeout-sec: given -1",
		"node-smoke --expected-nodelist-file /nonexistent/f --skip-dmesg --dump-path DIR": "--expected-nodelist-file: ",
	} {
		got := commandtest.Run(t, strings.Fields(strings.ReplaceAll(args, "DIR", t.TempDir()))...)
		assert.Equal(t, 2, got.Code, args)
		assert.Contains(t, got.Stderr, want)
	}
	t.Setenv("RANK", "0")
	t.Setenv("WORLD_SIZE", "two")
	got := commandtest.Run(t, "preflight")
	assert.Equal(t, 2, got.Code)
	assert.Contains(t, got.Stderr, `variable WORLD_SIZE: given "two"`)
}

// smoke runs a node of a job whose limits are those of any machine.
func smoke(t *testing.T, dump string, rank, devices int, more ...string) commandtest.Outcome {
	t.Helper()
	args := []string{"node_smoke", "--dump_path", dump, "--skip-dmesg", "--ulimit-l-min-gb", "0", "--shm-min-gb", "0", "--expected-gpus", "8", "--rocm-smi-warn-sec", "60"}
	return commandtest.RunChild(t, []string{"NODE_RANK=" + strconv.Itoa(rank), "PATH=" + tool(t, devices) + ":" + os.Getenv("PATH")}, append(args, more...)...)
}

func TestNodeSmoke(t *testing.T) {
	t.Parallel()
	dump := filepath.Join(t.TempDir(), "dump")
	passed := smoke(t, dump, 0, 8)
	assert.Zero(t, passed.Code, passed.Out+passed.Stderr)
	assert.Contains(t, passed.Out, "1 of 1 passed")
	assert.Contains(t, passed.Out, "report in "+filepath.Join(dump, "smoke_report.md"))
	host, err := os.Hostname()
	require.NoError(t, err)
	host, _, _ = strings.Cut(host, ".")
	for name, want := range map[string]string{"passing_nodes.txt": host + "\n", "failing_nodes.txt": ""} {
		got, err := os.ReadFile(filepath.Join(dump, name))
		require.NoError(t, err)
		assert.Equal(t, want, string(got))
	}

	other := smoke(t, dump, 1, 7)
	assert.Equal(t, 1, other.Code)
	assert.Contains(t, other.Out, host+": FAIL\n  devices: 7 × NVIDIA H200, 140 GiB: 8 devices are expected")

	list := filepath.Join(t.TempDir(), "nodes")
	require.NoError(t, os.WriteFile(list, []byte(host+"\nabsent\n"), 0o644))
	missing := smoke(t, dump, 0, 8, "--expected-nodelist-file", list, "--wait-timeout-sec", "0")
	assert.Equal(t, 1, missing.Code)
	failing, err := os.ReadFile(filepath.Join(dump, "failing_nodes.txt"))
	require.NoError(t, err)
	assert.Equal(t, "absent\n", string(failing))
}
