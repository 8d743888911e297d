package command

import (
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	commandserve "github.com/primus-fl/primus/cmd/primus/command/internal/serve"
	"github.com/primus-fl/primus/cmd/primus/command/internal/service"
	"github.com/primus-fl/primus/cmd/primus/command/internal/train"
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/serve"
	"go.uber.org/fx"
)

// Graphs returns the fx graphs of the program by name, with what another program adds.
func Graphs(extras ...fx.Option) map[string]fx.Option {
	listens := serve.Config{Addr: "127.0.0.1:0"}
	output := service.MetricsConfig{Addr: "127.0.0.1:0", Textfile: "run.prom"}
	return map[string]fx.Option{
		"formats": graph.FormatsGraph(extras, func(*document.Formats) {}),
		"ops":     graph.OpsGraph(graph.Config{Extras: extras}, func(graph.OpsParams) {}),
		"plan":    graph.PlanGraph(graph.Config{Extras: extras}, func(graph.PlanParams) {}),
		"serve":   commandserve.Graph(graph.Config{Extras: extras}, service.Config{Serve: listens}),
		"train":   train.Graph(graph.Config{Extras: extras}, service.Config{Metrics: output, Serve: listens}, func(train.Params) {}),
	}
}
