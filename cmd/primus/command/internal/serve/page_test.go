package serve_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tile is the value that the page shows under a name.
func tile(name string) string {
	return `[...document.querySelectorAll("#run-tiles div")].find(t => t.firstChild.textContent === ` + strconv.Quote(name) + `).lastChild.textContent`
}

func TestPage(t *testing.T) {
	primustest.Long(t, "it looks at pages in a browser")
	t.Parallel()
	b := commandtest.NewBrowser(t)
	l := commandtest.NewLab(t)
	s := commandtest.StartServing(t, l.Args("train_iters=1000000", "log_interval=100000", "eval_interval=50", "eval_iters=1", "--serve", "127.0.0.1:0", "--serve-token-file", commandtest.TokenFile(t))...)
	s.WaitFor("Op 'multi_tensor_adam' using 'default.flagos'")

	b.Do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(s.Base))
	b.Sees(`document.getElementById("run-state").textContent === "running"`)
	b.Sees(`document.querySelectorAll("#matrix tbody tr").length > 90`)
	b.Sees(`document.querySelector("#loss .curve") && /Loss: [\d.]+ at step 1,/.test(document.getElementById("loss").getAttribute("aria-label"))`)
	b.Sees(`document.querySelectorAll("#share meter").length > 3`)
	b.Sees(`document.getElementById("link").textContent === "live"`)

	// What an operator asks first, and the values in the charts.
	for name, value := range map[string]string{
		"elapsed": `^\d+ s$`, "time left": `\d`, "last checkpoint": `^none$`, "fallbacks": `^0$`, "errors of impls": `^0$`, "memory": ` MiB$`, "CPUs busy": `^\d+\.\d of \d+$`,
	} {
		b.Sees(`/` + value + `/.test(` + tile(name) + `)`)
	}
	b.Sees(`/^host \S+ · rank 0 of 1 · process \d+ · started /.test(document.getElementById("run-where").textContent)`)
	b.Sees(`document.getElementById("run-dir").textContent === ` + strconv.Quote(l.Path()))
	b.Sees(`/training exp|run started|step/i.test(document.getElementById("tail").textContent)`)
	b.Sees(`[...document.querySelectorAll("#speed text")].some(t => t.textContent === "0")`)
	b.Sees(`document.querySelectorAll("#loss .grid").length > 3 && document.getElementById("loss-legend").textContent === "trainingvalidation"`)
	b.Sees(`(() => {
		const loss = document.getElementById("loss"), box = loss.getBoundingClientRect();
		loss.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + box.width / 2, clientY: box.top + 50 }));
		return /^step \d+: training [\d.]+, validation [\d.]+( \(step \d+\))?$/.test(document.getElementById("loss-value").textContent);
	})()`)
	b.Sees(`(() => {
		const speed = document.getElementById("speed");
		speed.focus();
		speed.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft" }));
		return /^step \d+: tokens\/s [\d.,]+[KM]?$/.test(document.getElementById("speed-value").textContent);
	})()`)

	// Filter, and explain what is left.
	b.Do(chromedp.SendKeys("#filter", "swiglu"), chromedp.Click("#called"))
	b.Sees(`[...document.querySelectorAll("#matrix tbody tr")].map(r => r.dataset.op).sort().join() === "swiglu,swiglu_bwd" || document.querySelectorAll("#matrix tbody tr").length === 2`)
	b.Click(`[data-cell="swiglu reference.go"]`)
	b.Sees(`document.getElementById("explain").open && document.getElementById("explain-verdict").textContent === "served by default.flagos"`)
	b.Sees(`/later in the order flagos/.test(document.getElementById("standings").textContent)`)
	b.Do(chromedp.SendKeys("#dtype", "f33\n"))
	b.Sees(`/want one of/.test(document.getElementById("explain-fault").textContent)`)
	b.Do(chromedp.SendKeys("#explain", "\x1b"))
	b.Sees(`!document.getElementById("explain").open`)

	b.Do(chromedp.SendKeys("#filter", strings.Repeat("\b", len("swiglu"))))
	b.Sees(`document.querySelectorAll("#matrix tbody tr").length > 10`)

	// Change the policy, first without a token.
	b.Do(chromedp.SendKeys("#document", "per_op: {swiglu: reference}"), chromedp.Click("#propose"))
	b.Sees(`/swiglu.*default\.flagos → reference\.go/.test(document.getElementById("diff").textContent)`)
	b.Sees(`document.getElementById("verdict").textContent === "This would change what serves 1 op."`)
	b.Picture("service-1280", 1280, 900)
	b.Picture("service-390", 390, 844)
	b.Sees(`(cell => cell.offsetHeight > 0 && getComputedStyle(cell, "::before").content === '"default.flagos"')(document.querySelector('[data-cell="swiglu default.flagos"]').parentElement)`)
	b.Sees(`[...document.querySelectorAll("#matrix td")].every(cell => cell.textContent || cell.offsetHeight === 0)`)
	b.Dark(true)
	b.Picture("service-1280-dark", 1280, 900)
	b.Picture("service-390-dark", 390, 844)
	b.Dark(false)
	b.Do(chromedp.EmulateViewport(1280, 900), chromedp.Click("#apply"))
	b.Sees(`document.getElementById("verdict").className === "bad" && /token/.test(document.getElementById("verdict").textContent)`)
	b.Do(chromedp.SendKeys("#token", "0123456789abcdef"), chromedp.Click("#propose"))
	b.Sees(`!document.getElementById("apply").disabled`)
	b.Do(chromedp.Click("#apply"))
	b.Sees(`/In force since generation \d+/.test(document.getElementById("verdict").textContent)`)
	s.WaitFor("Op 'swiglu' switched from 'default.flagos' to 'reference.go'")
	b.Sees(`document.querySelector('[data-cell="swiglu reference.go"]').className === "selected"`)
	b.Sees(`/swiglu: default\.flagos → reference\.go/.test(document.getElementById("log").textContent)`)
	b.Do(chromedp.Click("#withdraw"))
	b.Sees(`document.querySelector('[data-cell="swiglu default.flagos"]').className === "selected"`)

	unnamed, err := chromedp.Run(b.Ctx, chromedp.Evaluate[string](`[...document.querySelectorAll("input, select, textarea, button, meter, progress, svg[role=img]")].filter(e =>
		!(e.labels && e.labels.length) && !e.getAttribute("aria-label") && !e.textContent.trim()).map(e => e.outerHTML).join("\n")`))
	require.NoError(t, err)
	assert.Empty(t, unnamed, "every control has a name")

	// Save and stop the run, and think better of it in between.
	b.Do(chromedp.Click("#save"))
	b.Sees(`document.getElementById("confirm").open`)
	b.Do(chromedp.Click("#confirm-yes"))
	s.WaitFor("saved checkpoint")
	b.Sees(`/^step \d+, \d+ s ago$/.test(` + tile("last checkpoint") + `)`)
	b.Do(chromedp.Click("#stop"))
	b.Sees(`/^Stop exp\? /.test(document.getElementById("confirm-question").textContent)`)
	b.Do(chromedp.Click("#confirm-yes + button"))
	b.Sees(`!document.getElementById("confirm").open && document.getElementById("run-state").textContent === "running"`)
	assert.NotContains(t, s.Stderr.String(), "stop run")
	b.Do(chromedp.Click("#stop"), chromedp.Click("#confirm-yes"))
	b.WellBehaved()
	err = s.Wait()
	require.ErrorIs(t, err, backend.ErrInterrupted)
	assert.ErrorContains(t, err, "by alice over the service")
	assert.False(t, strings.Contains(s.Stderr.String(), "0123456789abcdef"), "the token is not logged")
}
