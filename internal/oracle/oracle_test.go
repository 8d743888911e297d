package oracle

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/goldentest"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/gonum"
	"github.com/primus-fl/primus/vendors/onednn"
	"github.com/primus-fl/primus/vendors/openblas"
)

// Every impl must compute what PyTorch computes in float64, in every case of the kit for which
// PyTorch has functions. TestMillionElements tests the impls that serve only large calls.
func TestConformance(t *testing.T) {
	torch := start(t)
	oracle := torch.source(t)
	for _, src := range sources() {
		covered := src
		covered.Impls = slices.DeleteFunc(src.Impls, func(impl opregistry.Impl) bool {
			return impl.Support.MinElements > 0 || !slices.Contains(torch.ops, impl.Op.Name())
		})
		t.Run(src.Name, func(t *testing.T) {
			opscases.All().RunAll(t, covered, oracle, opstest.PartialOracle(), opstest.WithDTypes(tensor.F32, tensor.BF16, tensor.F16), opstest.Sample(24, 1))
		})
	}
}

// sources returns the sources that are tested.
func sources() []opregistry.Source {
	return []opregistry.Source{
		reference.Source(), flagos.Source(), gonum.Source(),
		openblas.New(openblas.Options{Threads: 1}).Source(), onednn.New(onednn.Options{Threads: 1}).Source(),
	}
}

// The page lists the ops that PyTorch computes, and those that it does not.
func TestPageListsOps(t *testing.T) {
	torch := start(t)
	var covered, alone []string
	for _, impl := range reference.Source().Impls {
		name := "`" + impl.Op.Name() + "`"
		if slices.Contains(torch.ops, impl.Op.Name()) {
			covered = append(covered, name)
		} else {
			alone = append(alone, name)
		}
	}
	list := wrapped(fmt.Sprintf("PyTorch computes %d of the %d ops: %s.", len(covered), len(covered)+len(alone), strings.Join(covered, ", "))) +
		"\n" + wrapped("It has no function for "+strings.Join(alone, ", ")+".")

	goldentest.Section(t, filepath.Join("..", "..", "docs", "reference", "coverage.md"), "go test ./internal/oracle -run TestPageListsOps -update", list)
}

// wrapped breaks a paragraph into lines of at most 100 characters.
func wrapped(text string) string {
	var b strings.Builder
	length := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case length+1+len(word) > 100:
			b.WriteByte('\n')
			length = 0
		default:
			b.WriteByte(' ')
			length++
		}
		b.WriteString(word)
		length += len(word)
	}
	return b.String() + "\n"
}
