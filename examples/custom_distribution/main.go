// Command custom_distribution is primus with an op, a device, a framework, a patch and a listener
// of its own.
package main

import (
	"fmt"
	"os"

	"go.uber.org/fx"
	"gonum.org/v1/gonum/floats"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/patch"
)

func add(_ *opregistry.Exec, a norm.ResidualAddArgs) error {
	sum := floats.AddTo(make([]float64, a.A.NumElements()), a.A.Float64s(), a.B.Float64s())
	return a.Output.SetFloat64s(sum)
}

func source() opregistry.Source {
	return opregistry.Source{Name: "acme", Version: "0.1.0", Impls: []opregistry.Impl{
		{Op: norm.ResidualAdd, ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme", Priority: 200, Run: add}}}
}

type chip struct{ *cpu.Backend }

func (chip) Name() string { return "ACME" }

func factory() backend.Factory {
	return backend.Factory{Framework: "acme", Description: "trains as native does", New: native.Factory().New}
}

func greeting() patch.Patch {
	return patch.Patch{ID: "acme.greeting", Description: "Greet the user", Backend: "acme", Phase: patch.Setup, Style: patch.Environment,
		Symbols: []string{"env:GREETING"}, Apply: func(c *patch.Context) error { return c.Setenv("GREETING", "hello:") }}
}

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
