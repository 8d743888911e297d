package projection

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/sysmem"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/config"
	"go.uber.org/fx"
)

// nativeMemory is the memory that a run in primus needs, as -o json prints it.
type nativeMemory struct {
	Model  string        `json:"model"`
	Parts  []memory.Part `json:"parts"`
	Total  float64       `json:"total"`
	Limit  float64       `json:"limit"`
	Source string        `json:"limit_from"`
	Fits   bool          `json:"fits"`
}

// projectNative prints the memory that a run in primus needs. Without a given size, that is
// compared with what the device has, or a process on this machine can have.
func projectNative(ctx context.Context, prog cli.Program, o *options, size sizes, m *config.Module) error {
	log := slog.New(prog.Lines(prog.Err, slog.LevelWarn))
	training := experiments.TrainingOptions{Options: o.Options}
	set := graph.Config{Log: log, Policy: training.PolicySources(m), Extras: prog.Extras}
	given := size.memory > 0
	if !given { // else the device may be elsewhere
		set.Module = m
	}
	result := nativeMemory{Model: m.Model, Limit: float64(size.memory), Source: "--memory or --gpu-arch"}
	var manager *opmanager.Manager
	var dev device.Backend
	err := graph.Run(ctx, func() error {
		if !given {
			limit, _, err := memory.Limit(dev)
			if err != nil {
				return fmt.Errorf("%w: give --memory", err)
			}
			result.Limit, result.Source = float64(limit.Bytes), limit.Source
		}
		parts, warnings, err := native.ProjectMemory(m, manager, dev, result.Limit)
		for _, w := range warnings {
			log.Warn(w.String())
		}
		result.Parts = parts
		return err
	}, graph.Core(set), fx.Populate(&manager, &dev))
	if err != nil {
		return err
	}
	for _, p := range result.Parts {
		result.Total += p.Bytes
	}
	result.Fits = result.Total <= result.Limit*(1-o.margin)
	if o.output.OutputFormat == cli.OutputJSON {
		return cli.WriteJSON(prog.Out, result)
	}
	return plaintext.WriteSections(prog.Out, o.output.OutputFormat == cli.OutputMarkdown, result.sections(o.margin))
}

func (n nativeMemory) sections(margin float64) []plaintext.Section {
	s := plaintext.Section{
		Title: "memory of " + plaintext.Dash(n.Model) + ", which trains in primus", Header: table.Row{"part", "bytes", "formula"}, Right: []int{2},
		Lines: []string{fmt.Sprintf("%s: it needs %s of %s (%s), of which %.3g %% stay free", verdict(n.Fits), sysmem.Text(n.Total), sysmem.Text(n.Limit), n.Source, 100*margin)},
	}
	for _, p := range n.Parts {
		s.Rows = append(s.Rows, table.Row{p.What, sysmem.Text(p.Bytes), p.Formula})
	}
	s.Rows = append(s.Rows, table.Row{"total", sysmem.Text(n.Total), "without the scratch memory of kernels"})
	return []plaintext.Section{s}
}
