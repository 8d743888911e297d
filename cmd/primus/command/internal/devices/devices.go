// Package devices is the command that lists the devices of a machine.
package devices

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/sysmem"
	"github.com/primus-fl/primus/internal/tuning"
	"github.com/spf13/cobra"
)

// New returns the command `primus devices`.
func New(prog cli.Program) *cobra.Command {
	return cli.Group("devices", "Look at the devices of this machine",
		newListCommand(prog),
	)
}

// Row is one device of `primus devices list`, or a backend without any. Memory is in bytes.
type Row struct {
	Backend string       `json:"backend"`          // as in STEPMESH_BACKEND
	Device  string       `json:"device,omitempty"` // such as "opencl:0"
	Name    string       `json:"name,omitempty"`
	Kind    string       `json:"kind,omitempty"`
	Vendor  string       `json:"vendor,omitempty"`
	Driver  string       `json:"driver,omitempty"`
	Version string       `json:"version,omitempty"`
	Library string       `json:"library,omitempty"`
	Memory  uint64       `json:"memory,omitempty"`
	Units   int          `json:"compute_units,omitempty"`
	FP64    bool         `json:"fp64"`
	FP16    bool         `json:"fp16"`
	OpenCL  *opencl.Info `json:"opencl,omitempty"`
	Problem string       `json:"problem,omitempty"` // why it cannot be used

	// Choices are what was measured on the device in earlier runs, such as the tiles of products.
	Choices map[string]string `json:"choices,omitempty"`
}

func newListCommand(prog cli.Program) *cobra.Command {
	var output cli.OutputFormat
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the devices that a run can use",
		Long: `List the processor and the devices that have an OpenCL driver, each with its memory,
compute units and number formats, and what was measured on them in earlier runs, such
as the tiles of products. For a backend that cannot be used the list says what was
looked for. The variable STEPMESH_BACKEND chooses a backend or a device:
STEPMESH_BACKEND=OPENCL:1. PRIMUS_OPENCL names the library to open.`,
		Example: `  primus devices list
  primus devices list -o json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return graph.WithDevices(cmd.Context(), prog, slog.New(slog.DiscardHandler), func(reg *device.Registry) error {
				rows := listAll(reg)
				return output.Print(prog.Out, rows, func() error { return write(prog, rows) })
			})
		},
	}
	output.AddFlag(cmd)
	return cmd
}

func listAll(reg *device.Registry) []Row {
	var rows []Row
	for _, b := range reg.Backends() {
		if err := b.Usable(); err != nil {
			rows = append(rows, Row{Backend: b.Name(), Problem: err.Error()})
			continue
		}
		if cl, ok := device.As[*opencl.Backend](b); ok {
			rows = append(rows, openCL(cl)...)
			continue
		}
		rows = append(rows, plain(b))
	}
	return rows
}

// plain describes the current device of a backend that says no more than the contract asks for.
func plain(b device.Backend) Row {
	row := Row{Backend: b.Name()}
	d, err := b.Device()
	if err != nil {
		row.Problem = err.Error()
		return row
	}
	row.Device = d.String()
	if d.Type == device.TypeCPU {
		row.Kind, row.Name, row.Units, row.FP64 = "cpu", tuning.CPU(), goruntime.NumCPU(), true
		if limit, err := sysmem.Read(); err == nil {
			row.Memory = limit.Bytes
		}
	}
	return row
}

func openCL(b *opencl.Backend) []Row {
	infos, err := b.Devices()
	if err != nil {
		return []Row{{Backend: b.Name(), Problem: err.Error()}}
	}
	rows := make([]Row, len(infos))
	for i, info := range infos {
		d := device.Device{Type: device.TypeOpenCL, Index: info.Index}
		rows[i] = Row{
			Backend: b.Name(), Device: d.String(), Name: info.Name, Kind: info.Kind, Vendor: info.Vendor, Driver: info.Driver, Version: info.Version,
			Library: b.Library(), Memory: info.Memory, Units: info.ComputeUnits, FP64: info.FP64, FP16: info.FP16, OpenCL: &info, Problem: info.Unusable,
		}
		if one, err := b.Of(info.Index); err == nil {
			rows[i].Choices = one.Choices()
		}
	}
	return rows
}

func write(prog cli.Program, rows []Row) error {
	t := plaintext.NewTable(table.Row{"device", "kind", "name", "vendor", "driver", "version", "memory", "units", "formats", "largest block", "work-group"}, 7, 8, 10, 11).
		Optional("work-group", "largest block", "driver", "formats", "version", "vendor")
	var problems, choices strings.Builder
	for _, r := range rows {
		if r.Problem != "" {
			fmt.Fprintf(&problems, "%s: %s\n", cmp.Or(r.Device, r.Backend), r.Problem)
		}
		for _, name := range slices.Sorted(maps.Keys(r.Choices)) {
			fmt.Fprintf(&choices, "%s: %s: %s\n", r.Device, name, r.Choices[name])
		}
		if r.Device == "" {
			continue
		}
		block, group := "", ""
		if r.OpenCL != nil {
			block, group = size(r.OpenCL.MaxBlock), fmt.Sprint(r.OpenCL.MaxWorkGroup)
		}
		t.AppendRow(table.Row{r.Device, r.Kind, r.Name, plaintext.Dash(r.Vendor), plaintext.Dash(r.Driver), plaintext.Dash(r.Version),
			size(r.Memory), r.Units, formats(r), plaintext.Dash(block), plaintext.Dash(group)})
	}
	text := plaintext.Render(prog.Out, t) + "\n"
	for _, lines := range []string{choices.String(), problems.String()} {
		if lines != "" {
			text += "\n" + lines
		}
	}
	_, err := fmt.Fprint(prog.Out, text)
	return err
}

func size(bytes uint64) string {
	if bytes == 0 {
		return plaintext.Dash("")
	}
	return sysmem.Text(float64(bytes))
}

func formats(r Row) string {
	names := []string{"f32"}
	if r.FP16 {
		names = append(names, "f16")
	}
	if r.FP64 {
		names = append(names, "f64")
	}
	return strings.Join(names, " ")
}
