package pmi

import (
	"maps"
	"slices"
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
)

// FuzzParse reads lists of ranks as another process sends them: each is read as what its numbers
// are written as, and its cost has a bound.
//
// Oracle: round trip.
func FuzzParse(f *testing.F) {
	for _, list := range []string{"", "0", "0-2, 5", "65535", "65536", "0-65535, 0-65535, 3", "9223372036854775807", "5-9223372036854775807", "5--9", "3-1", "x, 2"} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		defer primustest.Measured(t, len(list))()
		all := Parse(list)
		if len(all) > maxRanks {
			t.Fatalf("given %d numbers, want at most %d", len(all), maxRanks)
		}
		for n := range all {
			if n < 0 || n >= maxRanks {
				t.Fatalf("given the rank %d of %q", n, list)
			}
		}
		if again := Parse(Numbers(slices.Sorted(maps.Keys(all)))); !maps.Equal(all, again) {
			t.Fatalf("given %d numbers of %q, want the %d that they are written as", len(again), list, len(all))
		}
	})
}
