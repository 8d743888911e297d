package projection_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pipelineRow has the fields of a row that other programs rely on.
type pipelineRow struct {
	Schedule     string
	Stages       int
	MicroBatches int `json:"micro_batches"`
	Chunks       int
	StepTime     float64 `json:"step_time"`
	Bubble       float64
	Peak         float64 `json:"peak_activations"`
	Fits         bool
}

func pipelineRows(t *testing.T, args ...string) []pipelineRow {
	t.Helper()
	got := commandtest.Run(t, append([]string{"projection", "pipeline", "-o", "json"}, args...)...)
	require.Zero(t, got.Code, got.Stderr)
	var rows []pipelineRow
	require.NoError(t, json.Unmarshal([]byte(got.Out), &rows))
	return rows
}

func TestPipelineRows(t *testing.T) {
	rows := pipelineRows(t, "--stages", "4", "--micro-batches", "8", "--schedules", "1f1b,interleaved,zbv,auto", "--forward", "2", "--backward", "2", "--wgrad", "2", "--max-activations", "4")
	require.Len(t, rows, 4)
	for i := range rows {
		rows[i].Bubble = math.Round(rows[i].Bubble*1e12) / 1e12
	}
	assert.Equal(t, pipelineRow{"1f1b", 4, 8, 1, 48 + 18, 0.272727272727, 4, true}, rows[0])
	assert.Equal(t, pipelineRow{"interleaved", 4, 8, 2, 48 + 9, 0.157894736842, 5.5, false}, rows[1])
	assert.Equal(t, pipelineRow{"zbv", 4, 8, 2, 48 + 3, 0.058823529412, 4, true}, rows[2])
	assert.LessOrEqual(t, rows[3].StepTime, rows[2].StepTime)
	assert.True(t, rows[3].Fits)
}

// TestPipelineLeavesOut checks that schedules that need more micro batches are named.
func TestPipelineLeavesOut(t *testing.T) {
	got := commandtest.Run(t, "projection", "pipeline", "--stages", "4", "--micro-batches", "4")
	require.Zero(t, got.Code, got.Stderr)
	assert.Equal(t, 8, strings.Count(got.Out, " %  "))
	assert.Contains(t, got.Stderr, "primus: left out: given 4 micro batches for dualpipe-v on 4 stages, want at least 8\n")
}

func TestPipelineFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	mine := write("mine.yaml", "name: mine\nmicro_batches: 2\nchunks: 2\nplacement: v\nstages:\n  - F0 F0.1 B0.1 W0.1 BW0 F1 F1.1 BW1.1 BW1\n  - [F0, F0.1, BW0.1, BW0, F1, F1.1, BW1.1, BW1]\n")
	rows := pipelineRows(t, "--schedules", mine)
	require.Len(t, rows, 1)
	assert.Equal(t, "mine", rows[0].Schedule)
	assert.Equal(t, 2, rows[0].Chunks)
	assert.InDelta(t, 1, rows[0].Peak, 0)
	for text, want := range map[string]string{
		"micro_batches: 1\nstages: [F0 BW0 BW0]":      "bad.yaml is not a schedule: pipeline: stage 0, position 2: given BW of micro batch 0, chunk 0, which position 1 has computed: want every pass once",
		"micro_batches: 1\nstages: [F0 B0]":           "stage 0, position 2: the passes end here, want W of micro batch 0, chunk 0 as well",
		"micro_batches: 1\nstages: [F0 X0]":           `:2:10: stage 0, position 1: given "X0", want a pass such as F0 or BW3.1`,
		"micro_batches: x\nstages: [F0 BW0]\nrank: 1": "rank is not a key of a schedule: want name, placement, micro_batches, chunks and stages",
		"stages: 3": "the key micro_batches is missing",
		"[]":        "want a mapping",
	} {
		got := commandtest.Run(t, "projection", "pipeline", "--schedules", write("bad.yaml", text))
		assert.Equal(t, 1, got.Code)
		assert.Empty(t, got.Out)
		assert.Contains(t, got.Stderr, want)
	}
}

func TestPipelineUsage(t *testing.T) {
	for args, want := range map[string]string{
		"":           "--stages: given 0, want a number from 1 to 1024; see primus projection pipeline --help",
		"--stages 4": "--micro-batches: given 0, want a number from 1 to",
		"--stages 4 --micro-batches 4 --chunks 0":                                                "--chunks: given 0, want a number from 1 to 64",
		"--stages 4 --micro-batches 4 --chunks 3 --schedules zbv,1f1b":                           "--chunks: given 3, want the number that one of the schedules zbv, 1f1b has",
		"--stages 4 --micro-batches 4 --schedules dualpipe-v":                                    "given 4 micro batches for dualpipe-v on 4 stages, want at least 8",
		"--stages 4 --micro-batches 4 --schedules zbw":                                           `did you mean "zbv"?`,
		"--stages 4 --micro-batches 4 --forward nan":                                             `--forward: given "nan", want a time from 0 to 1e30`,
		"--stages 4 --micro-batches 4 --backward=-1":                                             `--backward: given "-1", want a time`,
		"--stages 4 --micro-batches 4 --wgrad 1,2":                                               "--wgrad: given 2 times, want one, or one for each of 4 stages",
		"--stages 4 --micro-batches 4 --send inf":                                                "--send: given +Inf, want a time from 0 to 1e30",
		"--stages 4 --micro-batches 4 --max-activations 0.5":                                     "--max-activations: given 0.5, want a number >= 1, or 0 for no limit",
		"--stages 4 --micro-batches 4 --forward 0 --backward 0 --wgrad 0":                        "the passes take 0 in all, want a number above 0",
		"--stages 1024 --micro-batches 400000":                                                   "want a product of at most 4194304",
		"--stages 4 --micro-batches x":                                                           `--micro-batches: given "x", want a whole number`,
		"--stages 4 --micro-batches 4 --forward 1e-320 --backward 0 --wgrad 0 --schedules x.yml": "x.yml",
	} {
		t.Run(args, func(t *testing.T) {
			got := commandtest.Run(t, append([]string{"projection", "pipeline"}, strings.Fields(args)...)...)
			assert.NotZero(t, got.Code)
			assert.Empty(t, got.Out)
			assert.Contains(t, got.Stderr, want)
		})
	}
}

// TestPipelinePictures checks that the files are pictures with all passes.
func TestPipelinePictures(t *testing.T) {
	dir := t.TempDir()
	args := []string{"projection", "pipeline", "--stages", "3", "--micro-batches", "4", "--schedules", "1f1b,zbv", "--picture"}
	for _, name := range []string{"a.svg", "a.html", "a.png"} {
		got := commandtest.Run(t, append(args, filepath.Join(dir, name))...)
		require.Zero(t, got.Code, got.Stderr)
	}
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		return data
	}
	var svg struct {
		Passes []struct {
			Title string `xml:"title"`
		} `xml:"g"`
	}
	require.NoError(t, xml.Unmarshal(read("a.svg"), &svg))
	assert.Len(t, svg.Passes, 3*4*2+3*4*2*3)
	assert.Equal(t, "F of micro batch 0, chunk 0: stage 0, position 0, from 0 to 1", svg.Passes[0].Title)
	assert.Contains(t, string(read("a.html")), string(read("a.svg")))
	img, err := png.Decode(bytes.NewReader(read("a.png")))
	require.NoError(t, err)
	assert.Greater(t, img.Bounds().Dx(), 1000)

	got := commandtest.Run(t, append(args, filepath.Join(dir, "a.gif"))...)
	assert.Equal(t, 2, got.Code)
	assert.Contains(t, got.Stderr, `a.gif", want a name that ends with .svg, .png or .html`)
	got = commandtest.Run(t, "projection", "pipeline", "--stages", "64", "--micro-batches", "512", "--schedules", "1f1b", "--picture", filepath.Join(dir, "b.svg"))
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Stderr, "given 65536 passes to draw, want at most 60000")
	assert.NoFileExists(t, filepath.Join(dir, "b.svg"))
}

// TestPipelineConfig reads a file of Primus' form.
func TestPipelineConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pp_simulation.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write(`
fwd_time: 1000
bwd_time: 1000.0
wgrad_time: 1000
print_simulation_result: true
output_dir: ./result
schedulers:
  - {name: one, class: primus.core.Schedule1F1B, pp_size: 8, vpp_size: 1, micro_batches: 32}
  - {name: half, class: ScheduleZBVGreedy, pp_size: 8, vpp_size: 2, micro_batches: 32, memory_config: half}
  - {name: min, class: ScheduleZBVGreedy, pp_size: 8, vpp_size: 2, micro_batches: 32, memory_config: min}
  - {name: heuristic, class: ScheduleZeroBubbleHeuristic, pp_size: 8, vpp_size: 1, micro_batches: 32, max_mem: 8, cost_comm: 10}
`)
	rows := pipelineRows(t, "--config", file)
	for i := range rows {
		rows[i].Bubble = 0
	}
	assert.Equal(t, []pipelineRow{
		{"one", 8, 32, 1, 117000, 0, 8, true}, {"half", 8, 32, 2, 104500, 0, 5, true}, {"min", 8, 32, 2, 107500, 0, 4, true}, {"heuristic", 8, 32, 1, 103000, 0, 8, true},
	}, rows)
	got := commandtest.Run(t, "projection", "pipeline", "--config", file, "--stages", "4")
	assert.Equal(t, 2, got.Code)
	assert.Contains(t, got.Stderr, "--stages: given beside --config")

	write("fwd_time: 1\nbwd_time: -1\nfoo: 3\nschedulers:\n  - name: x\n    class: a.b.C\n    pp_size: 0\n    micro_batches: 3\n  - 3\n")
	got = commandtest.Run(t, "projection", "pipeline", "--config", file)
	assert.Equal(t, 1, got.Code)
	for _, want := range []string{
		":3:6: foo is not a key of a pp_simulation.yaml: want some of fwd_time", ":2:11: bwd_time: given int -1, want a number", "the key wgrad_time is missing",
		":7:14: pp_size: given int 0, want a number from 1", `class: given string "a.b.C", want one of Primus' classes`, "schedulers: given int 3, want a mapping",
	} {
		assert.Contains(t, got.Stderr, want)
	}
}

// TestPipelineGuide types the commands of the guide and compares what they print.
func TestPipelineGuide(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(primustest.ModuleRoot(t), "docs", "howto", "before-a-run.md"))
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	typed := 0
	for _, b := range commandtest.Blocks(string(page)) {
		if b.Language == "yaml" && b.Lines[0] == "# mine.yaml" {
			require.NoError(t, os.WriteFile("mine.yaml", []byte(strings.Join(b.Lines, "\n")), 0o600))
		}
		words, isCommand := strings.CutPrefix(b.Lines[0], "$ primus projection pipeline ")
		if b.Language != "console" || !isCommand {
			continue
		}
		typed++
		got := commandtest.Run(t, append([]string{"projection", "pipeline"}, strings.Fields(words)...)...)
		require.Zero(t, got.Code, got.Stderr)
		assert.Equal(t, strings.Join(b.Lines[1:], "\n"), strings.TrimSuffix(got.Out, "\n"))
	}
	assert.Equal(t, 2, typed)
}
