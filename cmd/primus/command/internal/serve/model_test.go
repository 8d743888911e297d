package serve_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// serveModel trains a few steps and serves the model.
func serveModel(t *testing.T, more ...string) *commandtest.Serving {
	t.Helper()
	l := commandtest.NewLab(t)
	require.Zero(t, l.Train("train_iters=2").Code)
	s := commandtest.StartServing(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--model", l.Path(), "--model-name", "tiny"}, more...)...)
	s.WaitFor("model tiny from ")
	return s
}

func TestServeModel(t *testing.T) {
	t.Parallel()
	s := serveModel(t, "--token-file", commandtest.TokenFile(t), "--context", "64")
	status, body := s.Ask("GET", "/v1/models", "")
	assert.Equal(t, 200, status)
	assert.Contains(t, body, `"id":"tiny"`)
	status, body = s.Ask("GET", "/readyz", "")
	assert.Equal(t, 200, status, body)
	status, body = s.Ask("POST", "/v1/completions", `{"prompt": "func", "max_tokens": 5}`)
	assert.Equal(t, 200, status, body)
	assert.Contains(t, body, `"completion_tokens":5`)
	status, body = s.Ask("POST", "/v1/completions", `{"prompt": "`+strings.Repeat("a", 64)+`"}`)
	assert.Equal(t, 400, status)
	assert.Contains(t, body, "fewer than the 64")

	_, figures := s.Ask("GET", "/metrics", "")
	assert.Regexp(t, `(?m)^primus_inference_generated_tokens_total\{rank="0",run="tiny"\} 5$`, figures)

	resp, err := http.Post(s.Base+"/v1/completions", "application/json", strings.NewReader(`{"prompt": "a"}`)) //nolint:noctx // a test
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	assert.Contains(t, string(text), "invalid_api_key")
}

// A conversation on the page, by the keyboard alone.
func TestModelPage(t *testing.T) {
	primustest.Long(t, "it looks at pages in a browser")
	t.Parallel()
	b := commandtest.NewBrowser(t)
	s := serveModel(t, "--context", "40000", "--parallel", "1") // an answer long enough to be stopped
	b.Do(chromedp.EmulateViewport(1000, 800), chromedp.Navigate(s.Base+"/model"))
	b.Sees(`document.getElementById("note").textContent.includes("no chat template")`)

	press := func(keys string, more ...chromedp.KeyOption) { t.Helper(); b.Do(chromedp.KeyEvent(keys, more...)) }
	// reach goes on with Tab until an element has the focus.
	reach := func(selector string) {
		t.Helper()
		for range 80 {
			at, err := chromedp.Run(b.Ctx, chromedp.Evaluate[bool](`!!document.activeElement?.matches(`+strconv.Quote(selector)+`)`))
			require.NoError(t, err)
			if at {
				return
			}
			press(kb.Tab)
		}
		t.Fatalf("the key Tab does not lead to %s", selector)
	}
	messages := func(want string) {
		t.Helper()
		b.Sees(`[...document.querySelectorAll("#messages h3")].map(h => h.textContent).join() === ` + strconv.Quote(want) + ` && document.getElementById("stop").disabled`)
	}
	const figures = `/^7 tokens in [\d.]+ s, [\d.]+ tokens\/s, ended by length$/`

	press(kb.Tab)
	b.Sees(`document.activeElement.className === "skip"`)
	reach("#message")
	press("func main")
	press(kb.Enter, chromedp.KeyModifiers(kb.ModifierShift))
	press("x")
	b.Sees(`document.getElementById("message").value === "func main\nx" && !document.querySelector("#messages li")`)
	reach("#settings summary")
	press(kb.Enter)
	reach("#tokens")
	press("a", chromedp.KeyModifiers(kb.ModifierCtrl))
	press("7")
	reach("#send")
	press(kb.Enter)
	messages("You,Model")
	b.Sees(figures + `.test(document.getElementById("state").textContent) && document.activeElement.id === "message"`)
	press("more")
	press(kb.Enter)
	messages("You,Model,You,Model")

	// Another answer, an edited message, an answer that is stopped.
	reach(`button[aria-label="Another answer to the last message"]`)
	press(kb.Enter)
	messages("You,Model,You,Model")
	reach(`button[aria-label="Edit message 1 and answer it again"]`)
	press(kb.Enter)
	b.Sees(`document.activeElement.getAttribute("aria-label") === "Message 1"`)
	press("!")
	press(kb.Enter)
	messages("You,Model")
	b.Sees(`document.querySelector("#messages .text").textContent.includes("!")`)
	reach("#tokens")
	press("a", chromedp.KeyModifiers(kb.ModifierCtrl))
	press("100000")
	reach("#message")
	press("go on")
	press(kb.Enter)
	b.Sees(`document.querySelectorAll("#messages .text").length === 4 && document.querySelectorAll("#messages .text")[3].textContent !== ""`)
	press(kb.Escape)
	b.Sees(`document.getElementById("state").textContent === "Stopped."`)
	messages("You,Model,You,Model")

	// The browser keeps conversations.
	before, err := chromedp.Run(b.Ctx, chromedp.Evaluate[string](`JSON.stringify(document.getElementById("messages").innerText)`))
	require.NoError(t, err)
	b.Do(chromedp.Navigate(s.Base + "/model"))
	messages("You,Model,You,Model")
	b.Sees(`document.getElementById("messages").innerText === ` + before)
	b.Picture("model-1280", 1280, 900)
	b.Picture("model-390", 390, 844)
	accessible(t, b.Ctx)
	b.Dark(true)
	b.Picture("model-390-dark", 390, 844)
	accessible(t, b.Ctx)
	b.Dark(false)
	reach("#new")
	press(kb.Enter)
	messages("")
	b.Sees(`[...document.querySelectorAll("#conversations option")].map(o => o.textContent).join() === "new conversation,func main\nx"`)
	reach("#conversations")
	press(kb.ArrowDown)
	messages("You,Model,You,Model")
	reach("#delete")
	press(kb.Enter)
	messages("")
	b.WellBehaved()
}

// accessible checks that every control of a page has a name, and every text the contrast that WCAG
// asks for at level AA.
func accessible(t *testing.T, ctx context.Context) {
	t.Helper()
	faults, err := chromedp.Run(ctx, chromedp.Evaluate[string](`(() => {
		const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
		const rgba = color => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); return canvas.getImageData(0, 0, 1, 1).data; };
		const light = c => [...c].slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
			.reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
		const behind = e => { for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; } return [255, 255, 255]; };
		const faults = [];
		for (const e of document.querySelectorAll("body *")) {
			if (e.matches("input, select, textarea, button") && !(e.labels && e.labels.length) && !e.getAttribute("aria-label") && !e.textContent.trim()) faults.push("no name: " + e.outerHTML);
			const own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || e.matches("input, textarea");
			if (!own || !e.offsetHeight || e.disabled) continue;
			const [a, b] = [light(rgba(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
			if ((a + 0.05) / (b + 0.05) < 4.5) faults.push("contrast " + ((a + 0.05) / (b + 0.05)).toFixed(2) + ": " + e.outerHTML.slice(0, 80));
		}
		return faults.join("\n");
	})()`))
	require.NoError(t, err)
	assert.Empty(t, faults)
}

func TestModelUsage(t *testing.T) {
	for give, want := range map[string]string{
		"--context 5":              "--context needs --model",
		"--model-name x":           "--model-name needs --model",
		"--model x --parallel 0":   "given 0",
		"--batch-invariant":        "--batch-invariant needs --model",
		"--model /nonexistent/dir": "/nonexistent/dir",

		"--model x --parallel 9 --batch-invariant": "--parallel: given 9, want at most 8 with --batch-invariant",
	} {
		got := commandtest.Run(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, strings.Fields(give)...)...)
		assert.NotZero(t, got.Code, give)
		assert.Contains(t, got.Stderr, want, give)
		assert.NotContains(t, got.Stderr, "service on", give)
	}
}
