package commandtest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var screenshots = flag.String("screenshots", "", "write pictures of the page to this directory")

// browser is a tab of a real browser, which hears of everything that goes wrong in a page.
type browser struct {
	t   *testing.T
	Ctx context.Context

	mu     sync.Mutex
	faults []string
}

// NewBrowser starts a browser that ends with the test, or skips the test where there is none.
func NewBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed; scripts/install-test-deps.sh installs it")
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Minute)
	t.Cleanup(cancel)
	ctx, closeTab := chromedp.NewContext(limited, chromedp.WithAllocatorOptions(
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
	))
	b := &browser{t: t, Ctx: ctx}
	t.Cleanup(func() {
		assert.NoError(t, chromedp.Cancel(ctx))
		closeTab()
	})
	b.Do() // starts the browser
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

// Do runs steps, which have to succeed.
func (b *browser) Do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.Ctx, steps...))
}

// Click clicks on an element of a part of the page that may be drawn anew meanwhile.
func (b *browser) Click(selector string) {
	b.t.Helper()
	b.until("a click on "+selector, func() bool { return chromedp.Do(b.Ctx, chromedp.Click(selector)) == nil })
}

// Sees waits until an expression of the page is true.
func (b *browser) Sees(expression string) {
	b.t.Helper()
	b.until(expression, func() bool {
		ok, err := chromedp.Run(b.Ctx, chromedp.Evaluate[bool](expression))
		return err == nil && ok
	})
}

// until waits for something in the page, and shows its text when it does not come.
func (b *browser) until(what string, until func() bool) {
	b.t.Helper()
	primustest.Wait{What: what, Until: until, Ended: b.Ctx.Done(), Report: func() string {
		ctx, cancel := context.WithTimeout(b.Ctx, 10*time.Second)
		defer cancel()
		text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText"))
		b.mu.Lock()
		defer b.mu.Unlock()
		return fmt.Sprintf("the page shows %q (%v), and has reported %q", text, err, b.faults)
	}}.Do(b.t)
}

// Dark shows the page in dark colours, or in light ones.
func (b *browser) Dark(on bool) {
	b.t.Helper()
	b.Sees(`(document.documentElement.style.colorScheme = ` + strconv.Quote(map[bool]string{true: "dark", false: "light"}[on]) + `) !== ""`)
}

// WellBehaved checks that nothing has gone wrong in a page.
func (b *browser) WellBehaved() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Empty(b.t, b.faults)
}

// Picture takes the whole page at a width, where pictures are asked for.
func (b *browser) Picture(name string, width, height int64) {
	b.t.Helper()
	b.Do(chromedp.EmulateViewport(width, height))
	overflow, err := chromedp.Run(b.Ctx, chromedp.Evaluate[bool]("document.documentElement.scrollWidth > innerWidth"))
	require.NoError(b.t, err)
	assert.False(b.t, overflow, "at %d pixels the page is wider than the window", width)
	if *screenshots == "" {
		return
	}
	picture, err := chromedp.Run(b.Ctx, chromedp.FullScreenshot(100))
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(*screenshots, name+".png"), picture, 0o644))
}
