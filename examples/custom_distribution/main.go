// Command custom_distribution is primus with parts of its own, each in the group that the parts of primus are in: an
// implementation of an op, a device, a training framework, a patch and a listener.
package main

import (
	"fmt"
	"os"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/patch"
	"go.uber.org/fx"
)

func source() opregistry.Source {
	return opregistry.Source{Name: "acme", Version: "0.1.0", Impls: []opregistry.Impl{{
		Op: ops.ResidualAdd, ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme", Priority: 200,
		Run: func(_ *opregistry.Exec, a ops.ResidualAddArgs) error {
			if len(a.Output.Shape()) != 2 {
				return fmt.Errorf("%w: got shape %v, want rows and columns", opregistry.ErrUnsupported, a.Output.Shape())
			}
			for r, cols := 0, a.Output.Shape()[1]; r < a.Output.Shape()[0]; r++ {
				for i := range cols {
					a.Output.Set(a.A.At(r, i)+a.B.At(r, i), r, i)
				}
			}
			return nil
		},
	}}}
}

// chip is a device of its own kind; this one keeps its memory where the CPU does.
type chip struct{ *cpu.Backend }

func (chip) Name() string { return "ACME" }

// adapter is the trainer of primus under another name and version, which is all that a framework must have of its own.
type adapter struct{ backend.Adapter }

func (adapter) DetectVersion(*backend.TrainContext) (string, error) { return "acme-1.0", nil }

func factory() backend.Factory {
	return backend.Factory{Framework: "acme", Description: "trains as native does", New: func() backend.Adapter {
		return adapter{native.Factory().New()}
	}}
}

func greeting() patch.Patch {
	return patch.Patch{
		ID: "acme.greeting", Description: "Greet the user", Backend: "acme", Phase: patch.Setup, Style: patch.Environment,
		Symbols: []string{"env:ACME_GREETING"}, Apply: func(c *patch.Context) error { return c.Setenv("ACME_GREETING", "hello:") },
	}
}

// listener says which impl an op gets.
type listener struct{}

func (listener) OnEvent(e opmanager.Event) {
	if selected, ok := e.(opmanager.Selected); ok && selected.Impl.Vendor == "acme" {
		fmt.Fprintln(os.Stderr, "acme serves", selected.Op)
	}
}

func main() {
	os.Exit(command.Main(os.Args[1:], command.StandardStreams(), fx.Provide(
		fx.Annotate(source, fx.ResultTags(command.OpSources)),
		fx.Annotate(func() device.Backend { return chip{cpu.New()} }, fx.ResultTags(command.Devices)),
		fx.Annotate(factory, fx.ResultTags(command.Backends)),
		fx.Annotate(greeting, fx.ResultTags(command.Patches)),
		fx.Annotate(func() opmanager.Listener { return listener{} }, fx.ResultTags(command.Listeners)),
	)))
}
