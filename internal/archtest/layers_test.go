package archtest

import (
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// layer says what the packages below a folder may import from the module, besides the packages of
// their own folder.
type layer struct {
	root    string
	allowed []string
	apart   bool // no folder below root imports another
}

// layers is the table of the design, the most particular folder first.
var layers = []layer{
	{root: "device"},
	{root: "document"},
	{root: "tensor", allowed: []string{"device"}},
	{root: "opregistry/opstest", allowed: []string{"opregistry", "tensor", "device"}},
	{root: "opregistry/ops", allowed: []string{"opregistry", "tensor", "device"}},
	{root: "opregistry", allowed: []string{"tensor", "device"}},
	{root: "opmanager/policyfile", allowed: []string{"opmanager", "document"}},
	{root: "opmanager", allowed: []string{"opregistry", "tensor", "device"}},
	{root: "impls", allowed: []string{"opregistry", "tensor", "device", "internal"}, apart: true},
	{root: "vendors/abi"},
	{root: "vendors", allowed: []string{"vendors/abi", "vendors/loader", "vendors/internal/blas", "opregistry", "tensor", "device"}, apart: true},
	{root: "runtime", allowed: []string{"opmanager", "opregistry", "tensor", "device", "document"}},
	{root: "metrics", allowed: []string{"opmanager", "runtime", "opregistry", "tensor", "device"}},
	{root: "serve", allowed: []string{"document", "metrics", "runtime", "opmanager", "opregistry", "tensor", "device"}},
	{root: "fleet", allowed: []string{"metrics", "runtime", "opmanager", "opregistry", "tensor", "device"}},
	{root: "internal/buildinfo"},
	{root: "internal/chart"},
	{root: "internal/cpufeat"},
	{root: "internal/escape"},
	{root: "internal/race"},
	{root: "internal/secretfile"},
	{root: "internal/suggest"},
	{root: "internal/sysmem"},
	{root: "internal/benchmarks", allowed: everywhere},
	{root: "internal/chaos", allowed: append([]string{"cmd"}, everywhere...)},
	{root: "internal/recordtest", allowed: []string{"document"}},
	{root: "internal/abigen", allowed: []string{"opregistry", "vendors"}},
	{root: "internal", allowed: []string{"opregistry", "tensor", "device"}},
	{root: "examples/custom_distribution", allowed: append([]string{"cmd/primus/command"}, everywhere...)},
	{root: "examples", allowed: everywhere},
	{root: "cmd", allowed: append([]string{"cmd", "metrics"}, everywhere...)},
}

// leaves import nothing of the module, which their layers enforce, so every layer may import them.
var leaves = []string{
	"internal/buildinfo", "internal/chart", "internal/cpufeat", "internal/escape", "internal/race", "internal/secretfile", "internal/suggest",
	"internal/sysmem",
}

// everywhere lists all folders that a program of the module may import.
var everywhere = []string{
	"device", "document", "tensor", "opregistry", "opmanager", "impls", "vendors", "runtime", "metrics", "serve", "fleet", "internal", "examples",
}

// layerOf returns the rule for a package.
func layerOf(dir string) (layer, bool) {
	for _, l := range layers {
		if inside(dir, l.root) {
			return l, true
		}
	}
	return layer{}, false
}

// own returns the folder whose packages may always import each other.
func (l layer) own(dir string) string {
	if !l.apart {
		return l.root
	}
	below := strings.TrimPrefix(strings.TrimPrefix(dir, l.root), "/")
	first, _, _ := strings.Cut(below, "/")
	return path.Join(l.root, first)
}

// checkLayers returns the imports of a file that its package must not have.
func checkLayers(s source) []string {
	l, ok := layerOf(s.dir)
	if !ok {
		return []string{fmt.Sprintf("%s: no layer covers %s: add it to the table with what it may import", s.where(), s.dir)}
	}
	var found []string
	for _, i := range s.imports() {
		if !inside(i.path, module) {
			continue
		}
		target := strings.TrimPrefix(strings.TrimPrefix(i.path, module), "/")
		switch {
		case inside(target, "cmd"):
			if !inside(s.dir, "cmd") && !insideAny(target, l.allowed) {
				found = append(found, fmt.Sprintf("%s: imports %s: nobody imports cmd but programs that are made of it", s.where(), target))
			}
		case s.isTest(), insideAny(target, l.allowed), insideAny(target, leaves), inside(target, l.own(s.dir)):
		default:
			found = append(found, fmt.Sprintf("%s: imports %s: %s may import %s and what lies in %s",
				s.where(), target, s.dir, list(l.allowed), l.own(s.dir)))
		}
	}
	return found
}

func list(items []string) string {
	if len(items) == 0 {
		return "nothing of the module"
	}
	return strings.Join(items, ", ")
}

func TestLayers(t *testing.T) {
	t.Parallel()
	for _, s := range tree(t) {
		for _, violation := range checkLayers(s) {
			t.Error(violation)
		}
	}
}

func TestLayersFindViolations(t *testing.T) {
	t.Parallel()
	tests := []struct {
		where, target string
		ok            bool
	}{
		{"device/cpu/a.go", "device", true},
		{"opmanager/policyfile/a.go", "document", true},
		{"opmanager/policyfile/a.go", "opmanager", true},
		{"opmanager/a.go", "document", false},
		{"device/a.go", "tensor", false},
		{"device/a.go", "device/cpu", true},
		{"tensor/a.go", "device", true},
		{"tensor/a.go", "opregistry", false},
		{"tensor/tensortest/a.go", "tensor", true},
		{"opregistry/a.go", "tensor", true},
		{"opregistry/ops/a.go", "opregistry", true},
		{"opregistry/ops/a.go", "opmanager", false},
		{"opregistry/opstest/a.go", "impls/reference", false},
		{"opmanager/a.go", "opregistry/ops", true},
		{"opmanager/a.go", "impls/flagos", false},
		{"opmanager/a.go", "runtime/train", false},
		{"impls/flagos/a.go", "internal/parallel", true},
		{"impls/flagos/a.go", "opregistry/ops", true},
		{"impls/flagos/a.go", "impls/flagos/gemm", true},
		{"impls/flagos/gemm/a.go", "impls/flagos", true},
		{"impls/flagos/a.go", "impls/reference", false},
		{"impls/flagos/a_test.go", "impls/reference", true},
		{"impls/flagos/a.go", "opmanager", false},
		{"impls/flagos/a.go", "vendors/openblas", false},
		{"vendors/openblas/a.go", "vendors/loader", true},
		{"vendors/openblas/a.go", "vendors/onednn", false},
		{"vendors/openblas/a.go", "impls/reference", false},
		{"vendors/openblas/a.go", "opmanager", false},
		{"vendors/abi/a.go", "tensor", false},
		{"vendors/loader/a.go", "vendors/abi", true},
		{"vendors/loader/a.go", "vendors/openblas", false},
		{"runtime/train/a.go", "opmanager", true},
		{"runtime/train/a.go", "runtime/config", true},
		{"runtime/train/a.go", "document", true},
		{"runtime/config/a.go", "document", true},
		{"document/a.go", "runtime/config", false},
		{"document/a.go", "document/internal/scalar", true},
		{"document/a.go", "opmanager", false},
		{"runtime/train/a.go", "impls/reference", false},
		{"runtime/train/a.go", "vendors/openblas", false},
		{"runtime/train/a.go", "metrics", false},
		{"runtime/train/a.go", "cmd/primus/command", false},
		{"runtime/train/a_test.go", "cmd/primus/command", false},
		{"vendors/openblas/a.go", "vendors/internal/blas", true},
		{"vendors/internal/blas/a.go", "vendors/openblas", false},
		{"opmanager/a.go", "internal/suggest", true},
		{"opmanager/a.go", "internal/parallel", false},
		{"internal/suggest/a.go", "tensor", false},
		{"metrics/a.go", "opmanager", true},
		{"metrics/a.go", "impls/reference", false},
		{"internal/parallel/a.go", "opregistry", true},
		{"internal/parallel/a.go", "impls/flagos", false},
		{"internal/benchmarks/kernels/a.go", "vendors/openblas", true},
		{"cmd/primus/main.go", "cmd/primus/command", true},
		{"cmd/primus/command/a.go", "vendors/openblas", true},
		{"examples/custom_op/main.go", "impls/flagos", true},
		{"examples/custom_op/main.go", "cmd/primus/command", false},
		{"examples/custom_distribution/main.go", "cmd/primus/command", true},
		{"examples/custom_distribution/main.go", "cmd/primus/settings", false},
		{"serve/a.go", "runtime/runs", true},
		{"serve/a.go", "cmd/primus/settings", false},
		{"serve/a.go", "fleet", false},
		{"fleet/a.go", "opmanager/policyfile", true},
		{"fleet/a.go", "serve", false},
		{"examples/embedded/main.go", "serve", true},
		{"internal/chaos/main.go", "cmd/primus/command", true},
		{"internal/benchmarks/soak/main.go", "cmd/primus/command", false},
		{"tools/a.go", "tensor", false},
	}
	for _, tt := range tests {
		t.Run(tt.where+" imports "+tt.target, func(t *testing.T) {
			t.Parallel()
			s := parse(t, tt.where, fmt.Sprintf("package p\nimport %q\n", module+"/"+tt.target))
			assert.Equal(t, tt.ok, len(checkLayers(s)) == 0, "%v", checkLayers(s))
		})
	}
}
