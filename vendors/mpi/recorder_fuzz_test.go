package mpi

import (
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
)

// FuzzJudge judges what two ranks of three tell, whatever that is.
func FuzzJudge(f *testing.F) {
	const waits = `[{"op":"all_reduce","first":0,"stride":1,"ranks":3,"number":2}]`
	f.Add(waits, `[{"op":"all_reduce","first":0,"stride":1,"ranks":3,"number":1,"lasted":1}]`)
	f.Add(waits, `[{"op":"barrier","first":1,"stride":1,"ranks":1000000000000,"number":2}]`)
	f.Add(waits, `[]`)
	f.Add("null", "{")
	f.Fuzz(func(t *testing.T, first, second string) {
		defer primustest.Measured(t, len(first)+len(second))()
		if text := judge(map[int]string{0: first, 2: second}, 3); len(text) > 1000+10*(len(first)+len(second)) {
			t.Errorf("given %q and %q, judge answers %d bytes", first, second, len(text))
		}
	})
}
