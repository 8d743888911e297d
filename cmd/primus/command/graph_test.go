package command_test

import (
	"context"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/stretchr/testify/assert"
	"go.uber.org/fx"
)

func TestGraphs(t *testing.T) {
	for name, graph := range command.Graphs() {
		t.Run(name, func(t *testing.T) {
			assert.NoError(t, fx.ValidateApp(graph, fx.Supply(fx.Annotate(t.Context(), fx.As(new(context.Context))))))
		})
	}
}
