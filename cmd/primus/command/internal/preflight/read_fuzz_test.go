package preflight

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/require"
)

// FuzzTools reads what the tools of vendors print: the devices can be checked and published, which
// costs in proportion to what was printed.
func FuzzTools(f *testing.F) {
	for _, text := range []string{
		"0, NVIDIA H100, GPU-1, 550.1, 81559, 12, 3, 40, 0\n", "GPU-1, 7, /usr/bin/python3\n", "nan, a, b, c, inf, -inf, 1e400, [N/A], \"\n",
		`[{"gpu": 0, "asic": {"market_name": "MI300X"}, "vram": {"size": {"value": 196592, "unit": "MB"}}, "process_list": [{"process_info": {"pid": 1, "name": "a"}}]}]`,
		`{"card0": {"Card Series": "MI300X", "VRAM Total Memory (B)": "NaN", "GPU use (%)": "1"}, "system": {"Driver version": "6"}}`, "warning\n[[[", `{"gpu_data": [null, {"gpu": "inf", "vram": {"size": {"value": {"value": 1}}}}]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, tool := range gpuTools {
			r := &Report{Facts: map[string]string{}}
			primustest.Cost(t, len(text), 5000, func() {
				devices, _, err := tool.ask(func(...string) ([]byte, time.Duration, error) { return text, 0, nil })
				if r.Devices = devices; err == nil {
					r.devices(DefaultLimits())
				}
			})
			published, err := json.Marshal(r)
			require.NoError(t, err, tool.name)
			var again Report
			require.NoError(t, json.Unmarshal(published, &again))
			require.Len(t, again.Devices, len(r.Devices))
		}
	})
}

// FuzzMessage compares what two ranks send: their reports can be compared and shown, which costs in
// proportion to their length.
func FuzzMessage(f *testing.F) {
	f.Add([]byte(`{"protocol": "primus preflight 1", "world_size": 2, "report": {"rank": 1, "facts": {"kernel": "6"}, "rates": {"a": 1}, "checks": [{"status": "fail"}]}, "reached": [{"from": 1}]}`))
	f.Add([]byte(`{"protocol": "primus preflight 1", "report": {"rank": -5, "time": "2020-01-01T00:00:00Z", "devices": [{}], "facts": null}}`))
	f.Add([]byte(`{"protocol": "primus preflight 0"}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, line []byte) {
		primustest.Cost(t, len(line), 20_000, func() {
			k := &link{in: bufio.NewReader(bytes.NewReader(append(line, '\n')))}
			m, err := k.receive()
			if err != nil || m.Report == nil {
				return
			}
			own := &Report{Host: "a", Facts: map[string]string{"kernel": "5"}, Rates: map[string]float64{"a": 2}}
			all := &Gathered{Reports: []*Report{own, m.Report}}
			l := DefaultLimits()
			all.Checks = append(append(missing(all.Reports, 2), Compare(all.Reports, l)...), reachChecks(m.Reached, 2)...)
			all.Checks = append(all.Checks, skewChecks([]joined{{report: own}, {report: m.Report, skew: time.Since(m.Report.Time)}}, l)...)
			_, err = json.Marshal(all)
			require.NoError(t, err)
		})
	})
}

// FuzzPlace reads the variables of a job: the place is one of the job, or there is an error.
func FuzzPlace(f *testing.F) {
	f.Add("RANK=1\nWORLD_SIZE=2\nMASTER_ADDR=a\nMASTER_PORT=29500")
	f.Add("SLURM_PROCID=1\nSLURM_NTASKS=4\nSLURM_JOB_NODELIST=node[01-04,07],login1\nSLURM_LOCALID=5")
	f.Add("WORLD_SIZE=99999999999999999999")
	f.Add("NODE_RANK=0\nNNODES=2\nSLURM_STEP_NODELIST=[")
	f.Fuzz(func(t *testing.T, text string) {
		env := map[string]string{}
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimRight(line, "\n"), "=")
			env[name] = value
		}
		var at Place
		var err error
		primustest.Cost(t, len(text), 100, func() { at, err = FindPlace(func(name string) string { return env[name] }) })
		if err != nil {
			return
		}
		require.True(t, at.World >= 1 && at.Rank >= 0 && at.Rank < at.World && at.Local >= 0 && at.Local < at.World, "%+v", at)
		if at.World > 1 {
			require.NotEmpty(t, at.Address)
			require.True(t, at.Port > 0 && at.Port < 1<<16)
		}
	})
}

// FuzzNodes reads the verdict that a node has left: one that cannot be read has failed, and all can
// be listed.
func FuzzNodes(f *testing.F) {
	for _, text := range []string{`{"host": "a", "node_rank": 1, "status": "PASS", "preflight": {"facts": {"a": "b"}}}`, `{"host": "../../x\n"}`, "null", "{"} {
		f.Add([]byte(text))
	}
	dir := f.TempDir()
	require.NoError(f, os.Mkdir(filepath.Join(dir, nodeDir), 0o755))
	f.Fuzz(func(t *testing.T, text []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, nodeDir, "a.json"), text, 0o600))
		primustest.Cost(t, len(text), 10_000, func() {
			nodes, err := readNodes(dir)
			require.NoError(t, err)
			require.Len(t, nodes, 1)
			if !nodes[0].Passed() && !json.Valid(text) {
				require.NotEmpty(t, nodes[0].FailReasons)
			}
			require.NotEmpty(t, smokeSections(nodes, Drift(nodes, DefaultLimits())))
		})
	})
}
