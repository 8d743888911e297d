package pluginset_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
	"github.com/primus-fl/primus/vendors/plugin/pluginset"
)

// A plugin that cannot be loaded has no ops and does not keep others from being used.
func Example() {
	wanted := pluginset.Wanted{Modules: []string{"/nonexistent/libacme.so"}}
	wanted.From.Modules = "acme.yaml"
	set := pluginset.Load(context.Background(), wanted, pluginset.Settings{Ops: ops.All(), Log: slog.New(slog.DiscardHandler)})
	defer set.Close()
	registry := opregistry.NewRegistry()
	fmt.Println("registered:", set.Register(registry) == nil)
	for _, p := range set.Plugins() {
		fmt.Println(p.Module, len(p.Source.Impls), p.Err != nil)
	}
	// Output:
	// registered: false
	// /nonexistent/libacme.so 0 true
}
