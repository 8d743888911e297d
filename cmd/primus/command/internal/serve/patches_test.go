package serve_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// patchesOf returns the patches of a source that a service lists, as JSON without their source.
func patchesOf(t *testing.T, s *commandtest.Serving, source string) string {
	t.Helper()
	code, text := s.Ask(http.MethodGet, "/v1/patches", "")
	require.Equal(t, http.StatusOK, code, text)
	var all []map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &all))
	found := []map[string]any{}
	for _, p := range all {
		if p["source"] == source {
			delete(p, "source")
			found = append(found, p)
		}
	}
	list, err := json.Marshal(found)
	require.NoError(t, err)
	return string(list)
}

// planOf returns the plan that a service answers with, as JSON without its source and experiment,
// and these two.
func planOf(t *testing.T, s *commandtest.Serving) (plan, source, config string) {
	t.Helper()
	code, text := s.Ask(http.MethodGet, "/v1/patches/plan", "")
	require.Equal(t, http.StatusOK, code, text)
	var view map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &view))
	source, config = view["source"].(string), view["config"].(string)
	delete(view, "source")
	delete(view, "config")
	rest, err := json.Marshal(view)
	require.NoError(t, err)
	return string(rest), source, config
}

func asked(t *testing.T, args ...string) string {
	t.Helper()
	got := commandtest.Run(t, append(args, "-o", "json")...)
	require.Zero(t, got.Code, got.Stderr)
	return got.Out
}

// The service lists and plans patches as the commands do that read a checkout once it has been
// read.
func TestServePatchesOfCheckout(t *testing.T) {
	root, exp := commandtest.PrimusTree(t), commandtest.MegatronExperiment(t, "loss_factor: 2")
	t.Setenv("PRIMUS_BACKEND_VERSION", "0.17.0")
	s := commandtest.StartServing(t, "serve", "--listen", "127.0.0.1:0", "--repo", root, "--config", exp, "--patches", "megatron.gpu")
	scanned, planned, listed := asked(t, "patches", "scan", "--repo", root),
		asked(t, "patches", "plan", "--repo", root, "--config", exp, "--backend-version", "0.17.0", "--patches", "megatron.gpu"), asked(t, "patches", "list")
	require.NoError(t, os.RemoveAll(filepath.Join(root, "primus")), "it is read at the start alone")
	assert.JSONEq(t, scanned, patchesOf(t, s, "checkout"))
	assert.JSONEq(t, listed, patchesOf(t, s, "program"))
	plan, source, config := planOf(t, s)
	assert.JSONEq(t, planned, plan)
	assert.Equal(t, "checkout "+exp, source+" "+config)
}

func TestServePatchesOfThisProgram(t *testing.T) {
	exp := commandtest.NewLab(t).Exp
	t.Setenv("PRIMUS_PATCHES", "none")
	s := commandtest.StartServing(t, "serve", "--listen", "127.0.0.1:0", "--config", exp)
	plan, source, config := planOf(t, s)
	assert.JSONEq(t, asked(t, "patches", "plan", "--config", exp), plan)
	assert.Equal(t, "program "+exp, source+" "+config)
	assert.JSONEq(t, "[]", patchesOf(t, s, "checkout"))

	s = commandtest.StartServing(t, "serve", "--listen", "127.0.0.1:0")
	code, text := s.Ask(http.MethodGet, "/v1/patches/plan", "")
	assert.Equal(t, http.StatusNotFound, code)
	assert.Contains(t, text, "start primus serve with --config FILE")
	assert.JSONEq(t, asked(t, "patches", "list"), patchesOf(t, s, "program"))
}

func TestServePatchesMistakes(t *testing.T) {
	root, exp := commandtest.PrimusTree(t), commandtest.MegatronExperiment(t, "seed: 1")
	for want, args := range map[string][]string{
		"git clone":                 {"--repo", filepath.Join(root, "none")},
		"no folder primus/backends": {"--repo", t.TempDir()},
		"want --repo DIR and":       {"--config", exp, "--backend-version", "0.17"},
		"and --config FILE with it": {"--repo", root, "--backend-version", "0.17"},
		"none.yaml":                 {"--repo", root, "--config", "none.yaml"},
	} {
		got := commandtest.Run(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
		assert.NotZero(t, got.Code, want)
		assert.Contains(t, commandtest.OnlyError(t, got), want)
	}
}

// The page lists patches when it is asked for them, searches them, and says which an experiment
// gets.
func TestPageOfPatches(t *testing.T) {
	primustest.Long(t, "it looks at pages in a browser")
	t.Parallel()
	b := commandtest.NewBrowser(t)
	s := commandtest.StartServing(t, "serve", "--listen", "127.0.0.1:0", "--repo", commandtest.PrimusTree(t), "--config", commandtest.MegatronExperiment(t, "loss_factor: 2"))
	const rows = `document.querySelectorAll("#patches-table tbody tr").length`
	const ids = `[...document.querySelectorAll("#patches-table tbody tr")].map(r => r.dataset.patch).join()`
	row := func(id string) string { return `document.querySelector('[data-patch="` + id + `"]')` }

	b.Do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(s.Base))
	b.Sees(`document.getElementById("link").textContent === "live"`)
	b.Sees(rows + ` === 0 && !performance.getEntriesByType("resource").some(r => r.name.includes("v1/patches"))`)
	b.Sees(`(document.querySelector("#patches summary").focus(), document.activeElement.tagName === "SUMMARY")`)
	b.Do(chromedp.KeyEvent("\r"))
	b.Sees(rows + ` > 10`)
	b.Sees(`[...` + row("megatron.loss") + `.cells].slice(1).map(c => c.textContent).join("|") === ` +
		`"megatron|before_train|50|loss_factor is not 1|yes: loss_factor is not 1 (loss_factor is 2)"`)
	b.Sees(`/^depends on .*torch/.test(` + row("megatron.gpu") + `.cells[5].textContent)`)
	b.Sees(`/framework megatron, version unknown/.test(document.getElementById("patches-plan").textContent)`)
	b.Picture("patches-1280", 1280, 900)
	b.Picture("patches-390", 390, 844)
	b.Do(chromedp.EmulateViewport(1280, 900))

	// Each word is looked for in ids, targets, parameters and texts.
	search := func(words, found string) {
		t.Helper()
		b.Do(chromedp.SendKeys("#patches-words", words))
		b.Sees(ids + ` === "` + found + `"`)
		b.Do(chromedp.SendKeys("#patches-words", strings.Repeat("\b", len(words))))
	}
	search("parallel_state.device", "megatron.gpu")
	search("LOSS_FACTOR", "megatron.loss")
	search("scale training", "megatron.loss")
	search("no such patch", "")
	choose := func(menu, option string) {
		b.Sees(`(m => (m.value = "` + option + `", m.dispatchEvent(new Event("input", { bubbles: true }))))(document.getElementById("patches-` + menu + `"))`)
	}
	choose("verdict", "depends")
	b.Sees(ids + ` === "megatron.gpu" && /^1 of \d+ patches$/.test(document.getElementById("patches-count").textContent)`)
	choose("verdict", "")
	choose("source", "checkout")
	b.Sees(rows + ` === 2`)
	b.Sees(`(` + row("megatron.loss") + `.querySelector("summary").focus(), document.activeElement.textContent === "megatron.loss")`)
	b.Do(chromedp.KeyEvent("\r"))
	b.Sees(`/Scale the loss.*function-wrap megatron\.training\.training\.train_step.*loss_patches\.py:\d+$/.test(` + row("megatron.loss") + `.querySelector("details[open]").textContent)`)
	b.WellBehaved()

	b.Do(chromedp.Navigate(s.Base + "/#patches"))
	b.Do(chromedp.Reload())
	b.Sees(rows + ` > 10`)
	b.WellBehaved()
}
