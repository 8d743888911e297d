package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/projection"
	"github.com/primus-fl/primus/internal/stats"
	"github.com/primus-fl/primus/internal/sysmem"
)

// sizes are the messages, with the number of calls in a batch.
func sizes() [][2]int {
	return [][2]int{{4, 2000}, {4 << 10, 1000}, {64 << 10, 300}, {1 << 20, 60}, {4 << 20, 20}, {16 << 20, 5}, {64 << 20, 2}}
}

// measured is the network of this machine.
type measured struct{ projection.Network }

// allReduce compares the times of all_reduce between two ranks.
func allReduce(ctx context.Context, o scaleOptions) (plaintext.Section, *measured, error) {
	program := filepath.Join(o.work, "all_reduce")
	compiler := exec.CommandContext(ctx, "mpicc."+o.library, "-O2", "-o", program, filepath.Join(o.dir, "all_reduce.c"))
	if text, err := compiler.CombinedOutput(); err != nil {
		return plaintext.Section{}, nil, fmt.Errorf("%s: %w: %s", strings.Join(compiler.Args, " "), err, text)
	}
	own, err := os.Executable()
	if err != nil {
		return plaintext.Section{}, nil, err
	}
	python, err := pythonOf(ctx, o.python)
	if err != nil {
		return plaintext.Section{}, nil, err
	}
	contenders := []struct {
		name string
		line func() ([]string, []string)
	}{
		{"primus", func() ([]string, []string) { return o.mpirun(2, own, rankMode), nil }},
		{"C", func() ([]string, []string) { return o.mpirun(2, program), nil }},
		{"gloo", func() ([]string, []string) {
			return torchrun(python, filepath.Join(o.dir, "all_reduce.py")), pytorchSettings(1)
		}},
	}
	var args []string
	for _, s := range sizes() {
		args = append(args, strconv.Itoa(s[0]), strconv.Itoa(s[1]))
	}
	times := map[string]map[int][]float64{}
	for round := range o.rounds {
		for _, c := range contenders {
			o.say("all_reduce: round %d of %d: %s", round+1, o.rounds, c.name)
			line, env := c.line()
			cmd := exec.CommandContext(ctx, line[0], append(line[1:], args...)...)
			cmd.Env = append(without(os.Environ(), "OMP_", "LD_PRELOAD="), env...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			text, err := cmd.Output()
			if err != nil {
				return plaintext.Section{}, nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.String())
			}
			if times[c.name] == nil {
				times[c.name] = map[int][]float64{}
			}
			for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
				var t timing
				if err := json.Unmarshal(lines.Bytes(), &t); err != nil {
					return plaintext.Section{}, nil, fmt.Errorf("%s wrote %q: %w", c.name, lines.Text(), err)
				}
				times[c.name][t.Bytes] = append(times[c.name][t.Bytes], t.Seconds)
			}
		}
	}
	var rows []table.Row
	for _, s := range sizes() {
		row := table.Row{sysmem.Text(float64(s[0]))}
		for _, c := range contenders {
			row = append(row, fmt.Sprintf("%.1f", 1e6*stats.Median(times[c.name][s[0]])))
		}
		ratio := func(name string) string {
			var all []float64
			for i, t := range times["primus"][s[0]] {
				all = append(all, times[name][s[0]][i]/t)
			}
			return fmt.Sprintf("%.2f", stats.Median(all))
		}
		rows = append(rows, append(row, fmt.Sprintf("%.2f", float64(s[0])/stats.Median(times["primus"][s[0]])/1e9), ratio("C"), ratio("gloo")))
	}
	last := sizes()[len(sizes())-1][0]
	network := &measured{projection.MeasuredNetwork("this machine", stats.Median(times["primus"][4]), float64(last), stats.Median(times["primus"][last]))}
	title := fmt.Sprintf("all_reduce of f32 between two ranks, %s, µs per call", o.library)
	return sectionOf(title, table.Row{"size", "primus", "C, same library", "PyTorch gloo", "primus GB/s", "of C's rate", "of gloo's rate"}, rows, 2, 3, 4, 5, 6, 7), network, nil
}

// mpirun returns the command that starts some ranks of a program with the library.
func (o scaleOptions) mpirun(ranks int, program ...string) []string {
	line := []string{"mpiexec.hydra"}
	if o.library == "openmpi" {
		line = []string{"mpirun.openmpi", "--oversubscribe", "--bind-to", "none"}
		if os.Geteuid() == 0 {
			line = append(line, "--allow-run-as-root")
		}
	}
	return append(append(line, "-np", strconv.Itoa(ranks)), program...)
}

// torchrun returns the command that starts two ranks of a Python program.
func torchrun(python, program string) []string {
	port, err := launch.FreePort()
	if err != nil {
		port = 29511 // as good as any
	}
	return []string{
		python, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--redirects", "2:0", "--tee", "2:0",
		"--master_port", strconv.Itoa(port), program,
	}
}
