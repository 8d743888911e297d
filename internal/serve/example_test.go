package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"log/slog"
	"net/http"

	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/runs"
	"github.com/primus-fl/primus/internal/serve"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
	"github.com/prometheus/client_golang/prometheus"
)

// A program of its own offers the service over its op manager.
func Example() {
	reg := opregistry.NewRegistry()
	for _, src := range []opregistry.Source{{Name: "catalogue", Ops: ops.All()}, flagos.Source(), reference.Source()} {
		if err := reg.Register(src); err != nil {
			log.Fatal(err)
		}
	}
	hub := serve.NewHub()
	m := opmanager.New(reg, oppolicy.Default(), opmanager.Settings{Listeners: []opmanager.Listener{hub}})
	defer m.Close()
	service, err := serve.New(serve.Config{Addr: "127.0.0.1:0"}, serve.Settings{
		Manager: m, Registry: reg, Hub: hub, Runs: runs.NewBoard(runs.BoardSettings{Stats: m.Stats}),
		Gatherer: prometheus.NewRegistry(), Version: "1.0.0", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := service.Start(); err != nil {
		log.Fatal(err)
	}
	defer func() {
		if err := service.Close(context.Background()); err != nil {
			log.Print(err)
		}
	}()

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(service.URL() + "/v1/ops/swiglu/explain")
	if err != nil {
		log.Print(err)
		return
	}
	defer resp.Body.Close()
	var explained struct {
		Op    string
		Order []struct {
			ID string `json:"impl_id"`
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&explained); err != nil {
		log.Print(err)
		return
	}
	fmt.Println(explained.Op, "is served by", explained.Order[0].ID)
	// Output: swiglu is served by default.flagos
}
