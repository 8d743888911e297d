package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/plaintext"
)

// maxPublished is larger than the report on any plugin.
const maxPublished = 64 << 20

// Read reads a report that was published as JSON.
func Read(file io.Reader) (*Report, error) {
	text, err := io.ReadAll(io.LimitReader(file, maxPublished+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxPublished:
		return nil, fmt.Errorf("given more than %d bytes, want the report on a plugin", maxPublished)
	}
	const want = "want what `primus plugins check FILE -o json` writes"
	r := &Report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("given no report: %w; %s", err, want)
	}
	if r.SHA256 == "" || r.Checks == nil {
		return nil, errors.New("given JSON without the checksum of a library and its ops; " + want)
	}
	return r, nil
}

// style is that of the page, in light and in dark colours.
const style = `:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: 0.5rem 0 1.5rem; }
th, td { border: 1px solid #8886; padding: 0.3rem 0.6rem; text-align: left; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
.right { background: #2a62; }
.wrong { background: #c336; }
.declined { color: #888; }
code { overflow-wrap: anywhere; }
`

// Page writes reports as one HTML page, which needs nothing else: first a table of all ops and
// vendors, then each report.
func Page(out io.Writer, reports []*Report) error {
	p := &page{}
	p.text("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n" +
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n" +
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n" +
		"<title>Ops of vendors</title>\n<style>\n" + style + "</style>\n</head>\n<body>\n<h1>Ops of vendors</h1>\n")
	p.matrix(reports)
	for i, r := range reports {
		p.report(i, r)
	}
	p.text("</body>\n</html>\n")
	_, err := io.WriteString(out, p.String())
	return err
}

// page is a page in the making.
type page struct{ strings.Builder }

func (p *page) text(s string) { p.WriteString(s) }

// cell adds a cell of a table with words of a report.
func (p *page) cell(class, words string) {
	if class != "" {
		class = ` class="` + class + `"`
	}
	p.text("<td" + class + ">" + escape(words) + "</td>")
}

func escape(s string) string { return html.EscapeString(plaintext.Printable(s)) }

// head begins a table that may be wider than the window.
func (p *page) head(columns ...string) {
	p.text("<div class=\"wide\"><table>\n<tr>")
	for _, c := range columns {
		p.text("<th>" + c + "</th>")
	}
	p.text("</tr>\n")
}

func (p *page) tableEnd() { p.text("</table></div>\n") }

// matrix shows what each vendor does with each op.
func (p *page) matrix(reports []*Report) {
	columns := []string{"op"}
	var names []string
	for i, r := range reports {
		columns = append(columns, fmt.Sprintf("<a href=\"#report%d\">%s %s</a><br>%s, %d threads", i, escape(r.Name), escape(r.Version), escape(r.CPU), r.Threads))
		for _, c := range r.Checks {
			if !slices.Contains(names, c.Op) {
				names = append(names, c.Op)
			}
		}
	}
	slices.Sort(names)
	p.text("<p>Right: how many of the calls at the sizes of models agree with the impl beside them. Then the speed " +
		"relative to that impl, the geometric mean, and the largest part of what the machine reaches.</p>\n")
	p.head(columns...)
	for _, op := range names {
		p.text("<tr><th>" + escape(op) + "</th>")
		for _, r := range reports {
			class, words := r.summary(op)
			p.cell(class, words)
		}
		p.text("</tr>\n")
	}
	p.tableEnd()
}

// summary says in a few words how the impls of a plugin do with an op.
func (r *Report) summary(op string) (class, words string) {
	var all []string
	for i := range r.Checks {
		if c := &r.Checks[i]; c.Op == op {
			one, text := c.summary()
			all = append(all, text)
			if class == "" || one == "wrong" {
				class = one
			}
		}
	}
	if all == nil {
		return "declined", "–"
	}
	return class, strings.Join(all, "; ")
}

func (c *OpReport) summary() (class, words string) {
	failed, served := 0, 0
	for _, r := range c.Results {
		failed, served = failed+len(r.Failures), served+r.Served
	}
	right, called, logs, rated, share := 0, 0, 0.0, 0, 0.0
	for _, s := range c.Sizes {
		if s.Result == Right {
			right++
		}
		if s.Result == Right || s.Result == Wrong {
			called++
		}
		if s.Time > 0 && s.BaselineTime > 0 {
			logs, rated = logs+math.Log(s.BaselineTime/s.Time), rated+1
		}
		share = max(share, s.PeakShare)
	}
	switch {
	case c.Unavailable != "":
		return "declined", "not available"
	case failed > 0 || len(c.Faults) > 0 || right < called:
		class, words = "wrong", "wrong"
	case served == 0:
		return "declined", "declined"
	default:
		class, words = "right", "right"
	}
	if called > 0 {
		words += fmt.Sprintf(", %d of %d", right, called)
	}
	if rated > 0 {
		words += fmt.Sprintf(", %.2g×", math.Exp(logs/float64(rated)))
	}
	if share > 0 {
		words += fmt.Sprintf(", %.0f%%", 100*share)
	}
	return class, words
}

// report shows one report whole.
func (p *page) report(i int, r *Report) {
	verdict := "failed"
	if r.Passed {
		verdict = "passed"
	}
	p.text(fmt.Sprintf("<h2 id=\"report%d\">%s %s: %s</h2>\n<p>ABI %s, checked by %s on %s with %d threads.<br><code>%s</code><br>sha256 <code>%s</code></p>\n",
		i, escape(r.Name), escape(r.Version), verdict, escape(r.ABI), escape(r.Primus.String()), escape(r.CPU), r.Threads, escape(r.File), escape(r.SHA256)))
	p.head("op", "impl", "dtype", "served", "declined", "failed")
	for _, c := range r.Checks {
		for _, s := range c.Results {
			p.text("<tr>")
			p.cell("", c.Op)
			p.cell("", c.Name())
			p.cell("", s.DType.String())
			for _, n := range []int{s.Served, s.Declined, len(s.Failures)} {
				p.cell("number", fmt.Sprint(n))
			}
			p.text("</tr>\n")
		}
	}
	p.tableEnd()
	p.sizes(r)
	for _, fault := range r.Faults {
		p.text("<p class=\"wrong\">" + escape(fault) + "</p>\n")
	}
	for _, note := range r.Notes {
		p.text("<p>" + escape(note) + "</p>\n")
	}
}

// sizes shows the calls at the sizes of models.
func (p *page) sizes(r *Report) {
	if !slices.ContainsFunc(r.Checks, func(c OpReport) bool { return len(c.Sizes) > 0 }) {
		return
	}
	p.head("op", "impl", "model", "dtype", "shape", "result", "µs per call", "× beside it", "beside it", "GB/s", "GFLOP/s", "of the machine")
	for _, c := range r.Checks {
		for _, s := range c.Sizes {
			p.text("<tr>")
			for _, words := range []string{c.Op, c.Name(), s.Model, s.DType.String(), s.Shape} {
				p.cell("", words)
			}
			class := map[string]string{Right: "right", Wrong: "wrong"}[s.Result]
			p.cell(class, strings.TrimSuffix(s.Result+": "+s.Reason, ": "))
			ratio := ""
			if s.Time > 0 && s.BaselineTime > 0 {
				ratio = fmt.Sprintf("%.2f", s.BaselineTime/s.Time)
			}
			share := ""
			if s.PeakShare > 0 {
				share = fmt.Sprintf("%.0f%% of %s", 100*s.PeakShare, s.Bound)
			}
			for _, words := range []string{fmt.Sprintf("%.0f", s.Time), ratio, s.Baseline, fmt.Sprintf("%.1f", s.GBPerS), fmt.Sprintf("%.1f", s.GFLOPS), share} {
				p.cell("number", words)
			}
			p.text("</tr>\n")
		}
	}
	p.tableEnd()
}
