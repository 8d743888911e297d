package rundir

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
)

// FuzzMetrics gives texts to the reader of metrics.jsonl. What it keeps are whole lines of the
// text, of no later step, which it reads again as the same records without a warning; and they can
// be drawn.
//
// Oracle: round trip.
func FuzzMetrics(f *testing.F) {
	line := `{"step":3,"loss":2.5,"cross_entropy":2.4,"valid_loss":2.25,"valid_tokens":64,"lr":0.001,"grad_norm":1,"tokens_per_second":1e4,"step_seconds":0.1}` + "\n"
	for _, text := range []string{
		"", "\n", line, line + line, line + line[:40], "no record\n" + line, strings.Repeat("[", 20000) + "\n",
		`{"step":-9223372036854775808,"loss":1e308}` + "\n" + `{"step":9223372036854775807,"loss":-1e308}` + "\n", `{"step":1125899906842623,"loss":1}` + "\n" + `{"step":1125899906842623,"loss":1e38}` + "\n", `{"step":1e3}` + "\nnull\n",
	} {
		f.Add([]byte(text), int64(3))
		f.Add([]byte(text), int64(math.MaxInt64))
	}
	f.Fuzz(func(t *testing.T, text []byte, step int64) {
		defer primustest.Measured(t, len(text))()
		records, kept, _ := parse(text, step)
		again, same, warnings := parse(kept, step)
		if !bytes.Equal(kept, same) || len(again) != len(records) || len(warnings) > 0 {
			t.Fatalf("%q kept %q, and of that %q with %q", text, kept, same, warnings)
		}
		if slices.ContainsFunc(records, func(r Record) bool { return r.Step > step }) {
			t.Fatalf("%q has a record after step %d", kept, step)
		}
		whole := slices.Collect(bytes.Lines(text))
		for l := range bytes.Lines(kept) {
			at := slices.IndexFunc(whole, func(w []byte) bool { return bytes.Equal(w, l) })
			if at < 0 {
				t.Fatalf("%q is no line of %q, or not in its order", l, text)
			}
			whole = whole[at+1:]
		}
		if len(records) > 0 {
			_, _ = PlotLoss(Losses{Name: "run", Records: records}) // an error for losses that cannot be drawn
		}
	})
}
