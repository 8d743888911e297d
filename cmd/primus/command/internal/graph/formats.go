package graph

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
	"go.uber.org/fx"
)

// fileFormats lists the file formats of experiments and presets that are compiled in.
func fileFormats() fx.Option {
	return provideGroup("formats",
		func() document.Loader { return formats.YAML{} },
		func() document.Loader { return formats.JSON{} },
		func() document.Loader { return formats.TOML{} },
	)
}

// newFormats returns the formats of the group, whose order is random: the usual one first, then by
// name.
func newFormats(loaders []document.Loader) (*document.Formats, error) {
	slices.SortFunc(loaders, func(a, b document.Loader) int {
		return cmp.Or(formatRank(a)-formatRank(b), strings.Compare(a.Name(), b.Name()), strings.Compare(fmt.Sprintf("%T", a), fmt.Sprintf("%T", b)))
	})
	return document.NewFormats(loaders...)
}

// formatRank orders formats: a preset is looked for in them in this order.
func formatRank(l document.Loader) int {
	const others = 3
	switch l.(type) {
	case formats.YAML:
		return 0
	case formats.JSON:
		return 1
	case formats.TOML:
		return 2
	}
	return others
}

// FormatsGraph wires the formats and passes them to a function.
func FormatsGraph(extras []fx.Option, wire func(*document.Formats)) fx.Option {
	return fx.Options(Core(Config{Log: slog.New(slog.DiscardHandler), Extras: extras}), fx.Invoke(wire))
}

// LoadFormats returns the file formats of the program with what another program adds. Experiments
// are read before the graph of a run is built, so the formats come from a graph of their own.
func LoadFormats(extras []fx.Option) (loaded *document.Formats, err error) {
	graph := FormatsGraph(extras, func(f *document.Formats) { loaded = f })
	return loaded, Run(context.Background(), func() error { return nil }, graph)
}

// ExperimentExtensions returns the endings of experiment files, without the dot; none when the
// formats are in conflict, which the command itself reports.
func ExperimentExtensions(extras []fx.Option) []string {
	loaded, err := LoadFormats(extras)
	if err != nil {
		return nil
	}
	endings := loaded.Extensions()
	for i, ending := range endings {
		endings[i] = strings.TrimPrefix(ending, ".")
	}
	return endings
}
