package check_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/plugin/check"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// TestPage draws reports whose texts are those of strangers.
func TestPage(t *testing.T) {
	t.Parallel()
	const evil = `"><script>alert(1)</script>`
	size := check.Size{Model: "8B", Shape: "1024x4096", DType: tensor.F32, Result: check.Right, Time: 50, Baseline: "default.flagos", BaselineTime: 100, GBPerS: 1.5, Bound: "memory", PeakShare: 0.25}
	good := &check.Report{SHA256: "00", Description: check.Description{Name: "acme"}, Passed: true, Checks: []check.OpReport{
		{Op: "gelu", Impl: "vendor.acme", Results: []opstest.Result{{DType: tensor.F32, Served: 3}}, Sizes: []check.Size{size, size}},
	}}
	size.Result, size.Reason = check.Wrong, evil
	bad := &check.Report{SHA256: "01", File: evil, CPU: evil, Description: check.Description{Name: evil, Version: evil, ABI: evil}, Faults: []string{evil}, Notes: []string{evil},
		Checks: []check.OpReport{
			{Op: "gelu", Impl: evil, Results: []opstest.Result{{DType: tensor.F32, Served: 3}}, Sizes: []check.Size{size}},
			{Op: "silu", Impl: "vendor.evil", Unavailable: evil},
		}}
	text, err := json.Marshal(bad)
	require.NoError(t, err)
	read, err := check.Read(strings.NewReader(string(text)))
	require.NoError(t, err)

	var page strings.Builder
	require.NoError(t, check.Page(&page, []*check.Report{good, read}))
	html := page.String()
	assert.NotContains(t, html, "<script")
	assert.Contains(t, html, `<td class="right">right, 2 of 2, 2×, 25%</td><td class="wrong">wrong, 0 of 1, 2×, 25%</td>`)
	assert.Contains(t, html, `<tr><th>silu</th><td class="declined">–</td><td class="declined">not available</td></tr>`)
	for _, reference := range regexp.MustCompile(`(?:href|src|url)[=(]\S*`).FindAllString(html, -1) {
		assert.Contains(t, reference, `href="#report`, "the page refers to nothing outside of it")
	}
	assert.Equal(t, strings.Count(html, "<table"), strings.Count(html, "</table>"))

	for _, other := range []string{"", "[]", "null", `{"sha256": "00"}`, `{"ops": []}`, "{"} {
		_, err := check.Read(strings.NewReader(other))
		require.ErrorContains(t, err, "want what `primus plugins check FILE -o json` writes", other)
	}
}
