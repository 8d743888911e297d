package command_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var screenshots = flag.String("screenshots", "", "write pictures of the page to this directory")

// browser is a tab of a real browser, which hears of everything that goes wrong in a page.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	faults []string
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed; scripts/install-test-deps.sh installs it")
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 90*time.Second)
	t.Cleanup(cancel)
	ctx, closeTab := chromedp.NewContext(limited, chromedp.WithAllocatorOptions(
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
	))
	b := &browser{t: t, ctx: ctx}
	t.Cleanup(func() {
		assert.NoError(t, chromedp.Cancel(ctx))
		closeTab()
	})
	b.do() // starts the browser
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.Source != "network" && (m.Type == chromedp.ConsoleError || m.Type == chromedp.ConsoleException) {
				b.mu.Lock()
				b.faults = append(b.faults, m.Text)
				b.mu.Unlock()
			}
		}
	}()
	return b
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, steps...))
}

// click clicks on an element of a part of the page that may be drawn anew meanwhile.
func (b *browser) click(selector string) {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return chromedp.Do(b.ctx, chromedp.Click(selector)) == nil }, 20*time.Second, 50*time.Millisecond, selector)
}

// sees waits until an expression of the page is true.
func (b *browser) sees(expression string) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expression))
		return err == nil && ok
	}, 20*time.Second, 50*time.Millisecond, expression)
}

// dark shows the page in dark colours, or in light ones.
func (b *browser) dark(on bool) {
	b.t.Helper()
	b.sees(`(document.documentElement.style.colorScheme = ` + strconv.Quote(map[bool]string{true: "dark", false: "light"}[on]) + `) !== ""`)
}

// tile is the value that the page shows under a name.
func tile(name string) string {
	return `[...document.querySelectorAll("#run-tiles div")].find(t => t.firstChild.textContent === ` + strconv.Quote(name) + `).lastChild.textContent`
}

// wellBehaved checks that nothing has gone wrong in a page.
func (b *browser) wellBehaved() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Empty(b.t, b.faults)
}

// picture takes the whole page at a width, where pictures are asked for.
func (b *browser) picture(name string, width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
	overflow, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("document.documentElement.scrollWidth > innerWidth"))
	require.NoError(b.t, err)
	assert.False(b.t, overflow, "at %d pixels the page is wider than the window", width)
	if *screenshots == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(*screenshots, name+".png"), picture, 0o644))
}

func TestPage(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	l := newLab(t)
	s := startServing(t, l.args("train_iters=1000000", "log_interval=100000", "eval_interval=50", "eval_iters=1", "--serve", "127.0.0.1:0", "--serve-token-file", tokenFile(t))...)
	waitFor(t, s.stderr, "Op 'multi_tensor_adam' using 'default.flagos'")

	b.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(s.base))
	b.sees(`document.getElementById("run-state").textContent === "running"`)
	b.sees(`document.querySelectorAll("#matrix tbody tr").length > 90`)
	b.sees(`document.querySelector("#loss .curve") && /Loss: [\d.]+ at step 1,/.test(document.getElementById("loss").getAttribute("aria-label"))`)
	b.sees(`document.querySelectorAll("#share meter").length > 3`)
	b.sees(`document.getElementById("link").textContent === "live"`)

	// What an operator asks first, and the values in the charts.
	for name, value := range map[string]string{
		"elapsed": `^\d+ s$`, "time left": `\d`, "last checkpoint": `^none$`, "fallbacks": `^0$`, "errors of impls": `^0$`, "memory": ` MiB$`, "CPUs busy": `^\d+\.\d of \d+$`,
	} {
		b.sees(`/` + value + `/.test(` + tile(name) + `)`)
	}
	b.sees(`/^host \S+ · rank 0 of 1 · process \d+ · started /.test(document.getElementById("run-where").textContent)`)
	b.sees(`document.getElementById("run-dir").textContent === ` + strconv.Quote(l.path()))
	b.sees(`/training exp|run started|step/i.test(document.getElementById("tail").textContent)`)
	b.sees(`[...document.querySelectorAll("#speed text")].some(t => t.textContent === "0")`)
	b.sees(`document.querySelectorAll("#loss .grid").length > 3 && document.getElementById("loss-legend").textContent === "trainingvalidation"`)
	b.sees(`(() => {
		const loss = document.getElementById("loss"), box = loss.getBoundingClientRect();
		loss.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + box.width / 2, clientY: box.top + 50 }));
		return /^step \d+: training [\d.]+, validation [\d.]+( \(step \d+\))?$/.test(document.getElementById("loss-value").textContent);
	})()`)
	b.sees(`(() => {
		const speed = document.getElementById("speed");
		speed.focus();
		speed.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft" }));
		return /^step \d+: tokens\/s [\d.,]+[KM]?$/.test(document.getElementById("speed-value").textContent);
	})()`)

	// Filter, and explain what is left.
	b.do(chromedp.SendKeys("#filter", "swiglu"), chromedp.Click("#called"))
	b.sees(`[...document.querySelectorAll("#matrix tbody tr")].map(r => r.dataset.op).sort().join() === "swiglu,swiglu_bwd" || document.querySelectorAll("#matrix tbody tr").length === 2`)
	b.click(`[data-cell="swiglu reference.go"]`)
	b.sees(`document.getElementById("explain").open && document.getElementById("explain-verdict").textContent === "served by default.flagos"`)
	b.sees(`/later in the order flagos/.test(document.getElementById("standings").textContent)`)
	b.do(chromedp.SendKeys("#dtype", "f33\n"))
	b.sees(`/want one of/.test(document.getElementById("explain-fault").textContent)`)
	b.do(chromedp.SendKeys("#explain", "\x1b"))
	b.sees(`!document.getElementById("explain").open`)

	b.do(chromedp.SendKeys("#filter", strings.Repeat("\b", len("swiglu"))))
	b.sees(`document.querySelectorAll("#matrix tbody tr").length > 10`)

	// Change the policy, first without a token.
	b.do(chromedp.SendKeys("#document", "per_op: {swiglu: reference}"), chromedp.Click("#propose"))
	b.sees(`/swiglu.*default\.flagos → reference\.go/.test(document.getElementById("diff").textContent)`)
	b.picture("service-1280", 1280, 900)
	b.picture("service-390", 390, 844)
	b.sees(`(cell => cell.offsetHeight > 0 && getComputedStyle(cell, "::before").content === '"default.flagos"')(document.querySelector('[data-cell="swiglu default.flagos"]').parentElement)`)
	b.sees(`[...document.querySelectorAll("#matrix td")].every(cell => cell.textContent || cell.offsetHeight === 0)`)
	b.dark(true)
	b.picture("service-1280-dark", 1280, 900)
	b.picture("service-390-dark", 390, 844)
	b.dark(false)
	b.do(chromedp.EmulateViewport(1280, 900), chromedp.Click("#apply"))
	b.sees(`document.getElementById("verdict").className === "bad" && /token/.test(document.getElementById("verdict").textContent)`)
	b.do(chromedp.SendKeys("#token", "0123456789abcdef"), chromedp.Click("#propose"))
	b.sees(`!document.getElementById("apply").disabled`)
	b.do(chromedp.Click("#apply"))
	b.sees(`/In force since generation \d+/.test(document.getElementById("verdict").textContent)`)
	waitFor(t, s.stderr, "Op 'swiglu' switched from 'default.flagos' to 'reference.go'")
	b.sees(`document.querySelector('[data-cell="swiglu reference.go"]').className === "selected"`)
	b.sees(`/swiglu: default\.flagos → reference\.go/.test(document.getElementById("log").textContent)`)
	b.do(chromedp.Click("#withdraw"))
	b.sees(`document.querySelector('[data-cell="swiglu default.flagos"]').className === "selected"`)

	unnamed, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`[...document.querySelectorAll("input, select, textarea, button, meter, progress, svg[role=img]")].filter(e =>
		!(e.labels && e.labels.length) && !e.getAttribute("aria-label") && !e.textContent.trim()).map(e => e.outerHTML).join("\n")`))
	require.NoError(t, err)
	assert.Empty(t, unnamed, "every control has a name")

	// Save and stop the run, and think better of it in between.
	b.do(chromedp.Click("#save"))
	b.sees(`document.getElementById("confirm").open`)
	b.do(chromedp.Click("#confirm-yes"))
	waitFor(t, s.stderr, "saved checkpoint")
	b.sees(`/^step \d+, \d+ s ago$/.test(` + tile("last checkpoint") + `)`)
	b.do(chromedp.Click("#stop"))
	b.sees(`/^Stop exp\? /.test(document.getElementById("confirm-question").textContent)`)
	b.do(chromedp.Click("#confirm-yes + button"))
	b.sees(`!document.getElementById("confirm").open && document.getElementById("run-state").textContent === "running"`)
	assert.NotContains(t, s.stderr.String(), "stop run")
	b.do(chromedp.Click("#stop"), chromedp.Click("#confirm-yes"))
	b.wellBehaved()
	err = <-s.ended
	require.ErrorIs(t, err, backend.ErrInterrupted)
	assert.ErrorContains(t, err, "by alice over the service")
	assert.False(t, strings.Contains(s.stderr.String(), "0123456789abcdef"), "the token is not logged")
}
