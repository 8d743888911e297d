package command_test

import (
	"context"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/internal/backends/dummy"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
)

// primusWith runs a command line in this process with more in the graph.
func primusWith(t *testing.T, option fx.Option, args ...string) commandtest.Outcome {
	t.Helper()
	var out, stderr primustest.Buffer
	code := command.Main(args, command.Streams{Out: &out, Err: &stderr}, option)
	return commandtest.Outcome{Code: code, Out: out.String(), Stderr: stderr.String()}
}

// grouped provides values in a group of the command package.
func grouped[T any](group string, values ...T) fx.Option {
	var options []fx.Option
	for _, v := range values {
		options = append(options, fx.Provide(fx.Annotate(func() T { return v }, fx.ResultTags(group))))
	}
	return fx.Options(options...)
}

// acmeSource has one impl of residual_add.
func acmeSource(id string) opregistry.Source {
	return opregistry.Source{Name: "acme", Impls: []opregistry.Impl{{
		Op: norm.ResidualAdd, ID: id, Kind: opregistry.KindVendor, Vendor: "acme",
		Run: opregistry.Func[norm.ResidualAddArgs](func(*opregistry.Exec, norm.ResidualAddArgs) error { return nil }),
	}}}
}

// chip is a device that says when it is closed.
type chip struct {
	*cpu.Backend
	closed *bool
}

func (chip) Name() string { return "CHIP" }

func (c chip) Close() error {
	*c.closed = true
	return c.Backend.Close()
}

func TestOwnDeviceIsClosed(t *testing.T) {
	var closed bool
	got := primusWith(t, grouped[device.Backend](command.Devices, chip{cpu.New(), &closed}), "ops", "list", "residual_add")
	require.Zero(t, got.Code, got.Stderr)
	assert.False(t, closed, "a command that needs no device makes none")

	t.Setenv("STEPMESH_BACKEND", "chip")
	l := commandtest.NewLab(t)
	got = primusWith(t, grouped[device.Backend](command.Devices, chip{cpu.New(), &closed}), l.Args("train_iters=1")...)
	require.Zero(t, got.Code, got.Stderr)
	assert.True(t, closed)
}

// Two of one name are an error that names both, whoever brings them.
func TestDuplicatesInGroups(t *testing.T) {
	adapter := backend.Factory{Framework: "native", Description: "another one", New: func() backend.Adapter { return dummy.Adapter{} }}
	greet := dummy.Patches()[0]
	tests := []struct {
		name   string
		option fx.Option
		args   []string
		want   []string
	}{
		{"sources", grouped(command.OpSources, acmeSource("vendor.a"), acmeSource("vendor.b")), []string{"ops", "list"},
			[]string{`two sources of ops named "acme"`, `first "vendor.a"`, `first "vendor.b"`}},
		{"impls", grouped(command.OpSources, acmeSource("default.flagos")), []string{"ops", "list"},
			[]string{`"default.flagos"`, `"acme"`, `"flagos"`}},
		{"backends", grouped(command.Backends, adapter), []string{"backends", "list"},
			[]string{`two adapters for framework "native"`, `"another one" made by github.com/primus-fl/primus/cmd/primus/command_test.`, "backends/native."}},
		{"patches", grouped(command.Patches, greet), []string{"patches", "list"},
			[]string{`two patches with id "dummy.args.steps"`, "internal/backends/dummy/patches.go"}},
		{"patch for nobody", grouped(command.Patches, patch.Patch{ID: "acme.x", Backend: "nativ", Description: "x", Style: patch.Lifecycle, Apply: greet.Apply}),
			[]string{"patches", "list"}, []string{`patch "acme.x": unknown backend "nativ"`, `did you mean "native"?`}},
		{"a value that there is", fx.Provide(func() (*opregistry.Registry, error) { return opregistry.NewRegistry(), nil }), []string{"ops", "list"},
			[]string{"already provided", `graph".newRegistry (`, `command_test".TestDuplicatesInGroups.`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := primusWith(t, tt.option, tt.args...)
			assert.Equal(t, 1, got.Code, got.Stderr)
			for _, want := range tt.want {
				assert.Contains(t, got.Stderr, want)
			}
		})
	}
	devices := grouped[device.Backend](command.Devices, cpu.New())
	got := primusWith(t, devices, commandtest.NewLab(t).Args()...)
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Stderr, "device: backend is already registered: CPU is a *cpu.Backend and cannot become a *cpu.Backend")
}

// Whatever a program adds to the groups, the graph of each command is complete.
func TestGraphsWithExtras(t *testing.T) {
	extras := fx.Options(
		grouped(command.OpSources, acmeSource("vendor.acme")),
		grouped(command.Backends, dummy.Factory()),
		fx.Decorate(func(s *patch.Set) *patch.Set { return s }),
	)
	for name, graph := range command.Graphs(extras) {
		t.Run(name, func(t *testing.T) {
			assert.NoError(t, fx.ValidateApp(graph, fx.Supply(fx.Annotate(t.Context(), fx.As(new(context.Context))))))
		})
	}
	for name, graph := range command.Graphs(fx.Provide(func(chip) string { return "" }), fx.Invoke(func(string) {})) {
		t.Run(name+" lacks a type", func(t *testing.T) {
			assert.ErrorContains(t, fx.ValidateApp(graph, fx.Supply(fx.Annotate(t.Context(), fx.As(new(context.Context))))), "missing type")
		})
	}
}
