package patch_test

import (
	"strings"
	"testing"

	"github.com/primus-fl/primus/runtime/patch"
	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/internal/primustest"
)

func TestMatchVersion(t *testing.T) {
	tests := []struct {
		version, pattern string
		want             bool
	}{
		{"0.8.0", "0.8.0", true},
		{"0.8.0", "0.8", false},
		{"0.17", ">=0.17.0", false}, // no padding
		{"0.17.0", ">=0.17", true},
		{"0.8.5.1", "0.8.0~0.8.5", false},
		{"0.16.0rc0", "<=0.16.0", true}, // suffixes do not count
		{"0.16.0rc0", ">0.16.0", false},
		{"10.0.0", ">9.9", true}, // numbers, not text
		{"0.08.0", "<=0.8.0", true},
		{"99999999999999999999.0", ">9999999999999999999", true},
		{"0.8.0", ">= 0.8.0", false},
		{"0.8.0", "==0.8.0", false},
		{">=x", ">=x", true},
		{"0.8.1", "0.*.1", true},
		{"0.8.1", "0x8*", false}, // dots are literal
		{"", "*", false},
		{"0.8.0", "", false},
	}
	for _, tt := range tests {
		got, err := patch.MatchVersion(tt.version, tt.pattern)
		assert.NoError(t, err)
		assert.Equal(t, tt.want, got, "%q fits %q", tt.version, tt.pattern)
	}
	_, err := patch.MatchVersion("1", "a(*")
	assert.ErrorContains(t, err, `version pattern "a(*"`)
}

// Oracle: round trip.
func FuzzMatchVersion(f *testing.F) {
	for _, seed := range [][2]string{
		{"0.8.0", "0.8.*"}, {"0.8.0", "0.8.0~0.9"}, {"0.17.0", ">=0.17"}, {"1", "[*"}, {"v1", "<2"}, {"0..1", "~"}, {"٣.1", ">=1"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, version, pattern string) {
		defer primustest.Measured(t, len(version)+len(pattern))()
		got, err := patch.MatchVersion(version, pattern)
		if err != nil && (got || !strings.Contains(pattern, "*")) {
			t.Fatalf("%q fits %q: %v, %v", version, pattern, got, err)
		}
		if version == "" && got {
			t.Fatalf("an empty version fits %q", pattern)
		}
		v, readable := patch.ParseVersion(version)
		if low, high, isRange := strings.Cut(pattern, "~"); isRange && got {
			l, lok := patch.ParseVersion(low)
			h, hok := patch.ParseVersion(high)
			if !readable || !lok || !hok || l.Compare(v) > 0 || v.Compare(h) > 0 {
				t.Fatalf("%q fits %q", version, pattern)
			}
		}
		if readable {
			canonical := strings.Join(v, ".")
			again, ok := patch.ParseVersion(canonical)
			if !ok || again.Compare(v) != 0 {
				t.Fatalf("%q reads as %v, and %q as %v", version, v, canonical, again)
			}
			for _, operator := range []string{">=", "<="} {
				if same, err := patch.MatchVersion(version, operator+canonical); err != nil || !same {
					t.Fatalf("%q does not fit %s%s: %v", version, operator, canonical, err)
				}
			}
		}
	})
}

// Oracle: round trip.
func FuzzParseFilter(f *testing.F) {
	for _, seed := range []string{"", " all ", "NONE", "a,b", ",", "all,x", "a,,b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		defer primustest.Measured(t, len(text))()
		ids, given := patch.ParseFilter(text).IDs()
		for _, id := range ids {
			if id == "" || id != strings.TrimSpace(id) || strings.Contains(id, ",") || !strings.Contains(text, id) {
				t.Fatalf("%q gives id %q", text, id)
			}
		}
		if !given && len(ids) > 0 {
			t.Fatalf("%q lists %v and is no list", text, ids)
		}
		again, _ := patch.ParseFilter(strings.Join(ids, ",") + ",").IDs()
		if len(again) != len(ids) {
			t.Fatalf("%q gives %v, then %v", text, ids, again)
		}
	})
}
