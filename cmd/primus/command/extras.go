package command

import (
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/opregistry"
	"go.uber.org/fx"
)

// The groups to which a program may add with [Main], as result tags for fx.Annotate. Their values
// are treated like those that are compiled in here. The order in a group does not matter; two
// values of one name are an error that names both.
const (
	// OpSources is the group of opregistry.Source values.
	OpSources = graph.OpSources
	// Backends is the group of backend.Factory values, the training frameworks.
	Backends = graph.Backends
	// Patches is the group of patch.Patch values; a constructor of several takes
	// `group:"patches,flatten"`.
	Patches = graph.Patches
	// Devices is the group of device.Backend values. One that implements io.Closer is closed at the
	// end.
	Devices = graph.Devices
	// Formats is the group of document.Loader values, the file formats of experiments and presets. One
	// that is a document.Renderer can be written, too.
	Formats = graph.Formats
	// Listeners is the group of opmanager.Listener values, which receive the events of dispatch.
	Listeners = graph.Listeners
)

// Extra returns an option for [Main] that adds the ops of another module, as the programs of
// `primus plugins build` do. Errors and `primus plugins list` name the module.
func Extra(module string, source func() opregistry.Source) fx.Option {
	return graph.ProvideExtra(module, source)
}
