package command

import "go.uber.org/fx"

// Graphs returns the fx graphs of the program by name.
func Graphs() map[string]fx.Option {
	return map[string]fx.Option{
		"ops":   opsGraph(appConfig{}, func(opsParams) {}),
		"train": trainGraph(appConfig{metricsAddr: "127.0.0.1:0"}, func(trainParams) {}),
	}
}

// ParseCatalog reads a catalogue and returns how many impls it lists.
func ParseCatalog(file string, text []byte) (int, error) {
	entries, err := parseCatalog(file, text)
	return len(entries), err
}

// CatalogError is the error of ParseCatalog.
type CatalogError = catalogError

// Golden compares with a file in testdata.
var Golden = golden
