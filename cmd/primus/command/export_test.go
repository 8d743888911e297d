package command

import "go.uber.org/fx"

// Graphs returns the fx graphs of the program by name.
func Graphs() map[string]fx.Option {
	return map[string]fx.Option{
		"ops":   opsGraph(appConfig{}, func(opsParams) {}),
		"train": trainGraph(appConfig{metricsAddr: "127.0.0.1:0"}, func(trainParams) {}),
	}
}
