package main

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParseMetrics(t *testing.T) {
	text := `# HELP go_goroutines Number of goroutines.
go_goroutines{rank="0",run="a b"} 12
go_threads{rank="0",run="a b"} 10
go_memstats_heap_inuse_bytes{rank="0",run="a b"} 3.145728e+06
process_resident_memory_bytes{rank="0",run="a b"} 2.097152e+06
primus_train_step{rank="0",run="a b"} 40
`
	r, ok := parseMetrics(strings.NewReader(text))
	assert.True(t, ok)
	assert.Equal(t, soakRow{step: 40, goroutines: 12, threads: 10, heap: 3, resident: 2}, r)
	_, ok = parseMetrics(strings.NewReader(strings.Replace(text, "go_threads", "go_bytes", 1)))
	assert.False(t, ok, "a metric is missing")
}

func TestGrown(t *testing.T) {
	rows := func(edit func(i int, r *soakRow)) []soakRow {
		all := make([]soakRow, 10)
		for i := range all {
			all[i] = soakRow{step: 100 * i, goroutines: 12, threads: 10, heap: 30 + float64(10*(i%2)), resident: 90}
			edit(i, &all[i])
		}
		return all
	}
	assert.NoError(t, grown(rows(func(int, *soakRow) {})))
	for name, edit := range map[string]func(i int, r *soakRow){
		"12 to 15 goroutines":    func(i int, r *soakRow) { r.goroutines += i / 5 * 3 },
		"14 to 19 threads":       func(i int, r *soakRow) { r.threads += i },
		"heap of 30.0 to 40.0":   func(i int, r *soakRow) { r.heap += float64(i / 5 * 10) },
		"resident 94.0 to 108.0": func(i int, r *soakRow) { r.resident += float64(i + i/5*9) },
	} {
		assert.ErrorContains(t, grown(rows(edit)), name)
	}
	assert.ErrorContains(t, grown(nil), "saw 0 rows")
}

func TestSoakFlags(t *testing.T) {
	for give, want := range map[string]string{
		"-steps 5":       "10 rows of 5 steps",
		"-rows 1":        "1 rows",
		"-primus none x": `argument "x"`,
		"-primus ./none": "./none",
	} {
		assert.ErrorContains(t, soak(t.Context(), strings.Fields(give), io.Discard, io.Discard), want, give)
	}
}
