package serve_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/runs"
	"github.com/primus-fl/primus/internal/serve"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An open page follows a run to its end and then the next one, and shows impls that were registered
// meanwhile.
func TestPageFollowsRunsAndImpls(t *testing.T) {
	primustest.Long(t, "it looks at pages in a browser")
	t.Parallel()
	b := commandtest.NewBrowser(t)
	hub := serve.NewHub()
	board := runs.NewBoard(runs.BoardSettings{})
	observers := backend.Observers{board, hub}
	reg := opregistry.NewRegistry()
	for _, src := range []opregistry.Source{{Name: "catalogue", Ops: ops.All()}, flagos.Source(), reference.Source()} {
		require.NoError(t, reg.Register(src))
	}
	manager := opmanager.New(reg, oppolicy.Default(), opmanager.Settings{Listeners: []opmanager.Listener{hub}})
	t.Cleanup(manager.Close)
	service, err := serve.New(serve.Config{Addr: "127.0.0.1:0"}, serve.Settings{
		Manager: manager, Registry: reg, Hub: hub, Runs: board, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	require.NoError(t, service.Start())
	t.Cleanup(func() { assert.NoError(t, service.Close(context.WithoutCancel(t.Context()))) })

	b.Do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(service.URL()))
	b.Sees(`!document.getElementById("run-none").hidden && document.getElementById("run-body").hidden`)
	b.Sees(`document.getElementById("link").textContent === "live"`)
	b.Sees(`document.getElementById("token").disabled`)

	train := func(name string, first, last int) {
		observers.RunStarted(backend.Run{Name: name, Model: "llama <2M>", FirstStep: first, Steps: last, Parameters: 2_000_000})
		for step := first; step <= last; step++ {
			observers.StepDone(backend.Step{
				Step: step, Loss: float64(10 * step), TokensPerSecond: 100,
				Reference: []opmanager.ReferenceCost{{Op: "swiglu", Impl: "reference.go", Share: 0.4, Reason: "flagos <declined>"}},
			})
		}
	}
	train("first", 1, 3)
	b.Sees(`document.getElementById("run-state").textContent === "running"`)
	b.Sees(`document.getElementById("loss").getAttribute("aria-label") === "Loss: 10 at step 1, 30 at step 3"`)
	b.Sees(`document.getElementById("run-notes").textContent === "swiglu took 40 % of the time of a step on reference.go: flagos <declined>."`)
	observers.RunEnded(backend.Result{Run: backend.Run{Name: "first"}, Err: errors.New("step 3: the <disk> is full")})
	b.Sees(`document.getElementById("run-state").className === "tag failed"`)
	b.Sees(`document.getElementById("run-about").textContent === "llama <2M> · 2M parameters · step 3: the <disk> is full"`)
	b.Sees(`document.getElementById("run-progress").value === 1`)
	b.Sees(`document.querySelector("#log .run_ended").textContent.endsWith("first")`)
	train("second", 7, 8)
	b.Sees(`document.getElementById("run-name").textContent === "second" && document.getElementById("run-state").textContent === "running"`)
	b.Sees(`document.getElementById("loss").getAttribute("aria-label") === "Loss: 70 at step 7, 80 at step 8"`)
	observers.Stalled(backend.Stall{Phase: backend.PhaseBackward, Step: 9, Text: "step 9 hangs in <backward>"})
	b.Sees(`document.getElementById("run-notes").firstChild.textContent === "step 9 hangs in <backward>"`)
	b.Sees(`document.querySelector("#log .stalled") !== null`)
	observers.Resumed()
	b.Sees(`!document.getElementById("run-notes").textContent.includes("hangs")`)
	observers.Judged(backend.Judgement{Change: backend.HealthDiverged, Step: 8, Text: "diverged since step 8"})
	b.Sees(`document.getElementById("run-state").className === "tag diverged"`)
	b.Sees(`document.getElementById("run-notes").firstChild.textContent === "diverged since step 8"`)
	b.Sees(`document.querySelector("#log .diverged") !== null`)
	observers.Judged(backend.Judgement{Change: backend.HealthRecovered, Step: 8})
	b.Sees(`document.getElementById("run-state").textContent === "running"`)
	observers.RunEnded(backend.Result{Run: backend.Run{Name: "second"}})
	b.Sees(`document.getElementById("run-state").textContent === "done"`)

	const cell = `document.querySelector('[data-cell="residual_add vendor.acme"]')`
	b.Sees(cell + ` === null && document.querySelectorAll("#matrix tbody tr").length > 90`)
	acme := opregistry.Impl{
		Op: norm.ResidualAdd, ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme", Priority: 100,
		Run: opregistry.Func[norm.ResidualAddArgs](func(*opregistry.Exec, norm.ResidualAddArgs) error { return nil }),
	}
	require.NoError(t, reg.Register(opregistry.Source{Name: "acme", Impls: []opregistry.Impl{acme}}))
	b.Sees(cell + `?.className === "candidate"`)
	b.Sees(`[...document.querySelectorAll("#matrix thead th")].some(h => h.textContent === "vendor.acme")`)
	b.WellBehaved()
}
