package policyfile_test

import (
	"testing"

	"github.com/primus-fl/primus/opmanager/policyfile"
)

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := policyfile.Parse(b.Context(), "p.yaml", []byte(whole)); err != nil {
			b.Fatal(err)
		}
	}
}
