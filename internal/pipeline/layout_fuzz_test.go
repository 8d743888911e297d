package pipeline

import (
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
)

// FuzzLayout reads layouts of stages: what they are written out to has a bound, and reads as
// itself.
//
// Oracle: round trip.
func FuzzLayout(f *testing.F) {
	for _, text := range []string{
		"Et*3|(tt|)*29,m|L", "Et|tL", "", "()*9", "((((t)*2)*2)*2)*2", "(tt)*4611686018427387904", "(tttt)*4611686018427387904",
		"t*9223372036854775807", "t*99999999999999999999", "t*", "(", ")", strings.Repeat("(", 200), "(t*65536)*0",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		defer primustest.Measured(t, len(text))()
		parts, err := Layout(text)
		if err != nil {
			return
		}
		whole := strings.Join(parts, "|")
		if len(whole) > maxLetters {
			t.Fatalf("given %d letters, want at most %d", len(whole), maxLetters)
		}
		if strings.Contains(whole, "*") { // which repeats nothing
			return
		}
		if again, err := Layout(whole); err != nil || strings.Join(again, "|") != whole {
			t.Fatalf("given %q (%v) for %q", again, err, whole)
		}
	})
}
