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
	program bool // may import every folder of programs, too
}

// layers is the table of the design, the most specific folder first.
var layers = []layer{
	{root: "device/opencl", allowed: []string{"device", "tensor", "vendors/loader"}},
	{root: "device"},
	{root: "document"},
	{root: "tensor", allowed: []string{"device"}},
	{root: "opstest/ondevice", allowed: []string{"opregistry", "tensor", "device"}},
	{root: "opstest", allowed: []string{"internal/argcopy", "opregistry", "tensor"}},
	{root: "ops/opscases", allowed: []string{"internal/random", "opregistry", "ops", "opstest", "tensor"}},
	{root: "."},
	{root: "opregistry", allowed: []string{"tensor", "device"}},
	{root: "ops", allowed: []string{"opregistry", "tensor"}},
	{root: "opmanager/policyfile", allowed: []string{"opmanager", "document"}},
	{root: "opmanager", allowed: []string{"internal/argcopy", "opregistry", "tensor", "device"}},
	{root: "impls", allowed: []string{"opregistry", "ops", "tensor", "device", "internal/kernel", "internal/parallel", "internal/random"}, apart: true},
	{root: "vendors/abi"},
	{root: "vendors/internal/blas/blastest", allowed: []string{"opregistry", "ops", "opstest", "tensor"}},
	{root: "vendors/plugin/pluginset", allowed: []string{"internal/plugin", "vendors/loader", "opregistry"}},
	{root: "vendors", allowed: []string{"vendors/loader", "vendors/internal/blas", "opregistry", "ops", "tensor", "device"}, apart: true},
	{root: "runtime/config", allowed: []string{"document"}},
	{root: "runtime/backend", allowed: []string{"runtime/config", "internal/launch", "document", "opmanager", "device"}},
	{root: "runtime/patch", allowed: []string{"runtime/backend", "document"}},
	{root: "runtime/backends/native", allowed: []string{"internal/native", "internal/rundir", "internal/safetensors", "internal/tokenizer", "runtime/backend", "runtime/config", "runtime/patch",
		"document", "opmanager", "ops", "tensor", "device"}},
	{root: "runtime/train", allowed: []string{"runtime/backend", "runtime/config", "internal/configs", "internal/launch", "runtime/patch", "document", "opmanager", "device"}},
	{root: "metrics", allowed: []string{"runtime/backend", "opmanager", "opregistry"}},
	{root: "internal/argcopy", allowed: []string{"opregistry", "tensor"}},
	{root: "internal/backends", allowed: []string{"internal/backends/python", "internal/launch", "internal/pyreader", "internal/rankops", "internal/rundir", "runtime/backend", "runtime/patch", "document", "opmanager", "opregistry"}, apart: true},
	{root: "internal/configs"},
	{root: "internal/dashboards"},
	{root: "internal/finite", allowed: []string{"opmanager", "opregistry", "tensor", "internal/kernel/vector"}},
	{root: "internal/fleet", allowed: []string{"opmanager"}},
	{root: "internal/launch/placement", allowed: []string{"internal/launch", "document"}},
	{root: "internal/launch"},
	{root: "internal/native", allowed: []string{"internal/finite", "internal/opbench", "internal/pipeline", "internal/random", "internal/recording", "internal/safetensors", "internal/tokenizer", "internal/torchfile", "internal/tuning",
		"runtime/backend", "runtime/backends/native", "runtime/config", "runtime/patch", "document", "opmanager", "opregistry", "ops", "tensor", "device"}},
	{root: "internal/opbench", allowed: []string{"opregistry", "ops", "tensor", "device", "internal/kernel/vector"}},
	{root: "internal/opencltest", allowed: []string{"opregistry", "opstest", "device", "internal/loadertest", "internal/primustest"}},
	{root: "internal/loadertest", allowed: []string{"vendors/loader"}},
	{root: "internal/plugin/check", allowed: []string{"vendors/abi", "vendors/loader", "internal/plugin", "internal/opbench", "opregistry", "ops", "opstest", "tensor", "device", "internal/parallel"}},
	{root: "internal/plugin", allowed: []string{"vendors/abi", "vendors/loader", "opregistry", "ops", "tensor", "device"}},
	{root: "internal/pipeline", allowed: []string{"document"}},
	{root: "internal/projection", allowed: []string{"document", "internal/pipeline"}},
	{root: "internal/rankops", allowed: []string{"runtime/backend", "opmanager", "opregistry"}},
	{root: "internal/recording", allowed: []string{"internal/argcopy", "internal/finite", "internal/safetensors", "opmanager", "opregistry", "tensor"}},
	{root: "internal/report", allowed: []string{"internal/launch", "internal/pyreader", "internal/rundir", "runtime/backend", "runtime/patch", "runtime/train", "document", "opmanager"}},
	{root: "internal/rundir/tracking", allowed: []string{"internal/rundir", "document"}},
	{root: "internal/rundir", allowed: []string{"runtime/backend"}},
	{root: "internal/runs", allowed: []string{"internal/rundir", "runtime/backend", "document", "opmanager"}},
	{root: "internal/safetensors", allowed: []string{"tensor", "device"}},
	{root: "internal/serve", allowed: []string{"internal/native", "internal/runs", "internal/tokenizer", "runtime", "document", "opmanager", "opregistry", "tensor"}},
	{root: "internal/watchdog", allowed: []string{"runtime/backend"}},
	{root: "internal/settings", allowed: []string{"document"}},
	{root: "internal/spans", allowed: []string{"opmanager", "opregistry", "runtime/backend"}},
	{root: "internal/timeline", allowed: []string{"opmanager", "ops/collective"}},
	{root: "internal/tokenizer"},
	{root: "internal/torchfile", allowed: []string{"tensor"}},
	{root: "internal/tuning", allowed: []string{"internal/opbench", "internal/recording", "opmanager", "opregistry"}},
	{root: "internal/parallel", allowed: []string{"opregistry"}},
	{root: "internal/kernel/philox", allowed: []string{"internal/random"}},
	{root: "internal/fardevice", allowed: []string{"device", "tensor"}},
	{root: "internal/pyreader", allowed: []string{"runtime/patch"}},
	{root: "internal/policytest", allowed: []string{"opmanager", "opregistry", "tensor"}},
	{root: "internal/recordtest", allowed: []string{"document", "internal/primustest"}},
	{root: "internal/fuzz", allowed: []string{"internal/primustest"}},
	{root: "internal/generate", allowed: []string{"internal/dashboards", "ops", "opregistry", "internal/plugin"}},
	{root: "internal/benchmarks", program: true},
	{root: "internal/program", allowed: []string{"internal/primustest", "internal/settings"}},
	{root: "internal/mutants", program: true},
	{root: "internal/chaos", allowed: []string{"cmd"}, program: true},
	{root: "internal", apart: true},
	{root: "examples/custom_distribution", allowed: []string{"cmd/primus/command", "device", "ops", "opmanager", "opregistry", "runtime"}},
	{root: "examples", allowed: []string{"ops", "opmanager", "opregistry", "tensor"}},
	{root: "cmd/primus/command/internal/commandtest", allowed: []string{"cmd/primus/command"}, program: true},
	{root: "cmd/primus/command/internal", allowed: shared, apart: true, program: true},
	{root: "cmd/primus/command", program: true},
	{root: "cmd", program: true},
	{root: "capi", program: true},
}

// shared lists what several commands have in common; a command imports no other one.
var shared = []string{
	"cmd/primus/command/internal/cli", "cmd/primus/command/internal/commandtest", "cmd/primus/command/internal/dispatch", "cmd/primus/command/internal/experiments",
	"cmd/primus/command/internal/graph", "cmd/primus/command/internal/models", "cmd/primus/command/internal/service",
}

// leaves import nothing of the module but each other, so every layer may import them.
var leaves = []string{
	".", "internal/buildinfo", "internal/chart", "internal/cpufeat", "internal/durable", "internal/fair", "internal/foreign", "internal/heartbeat", "internal/httpserver", "internal/isa", "internal/meter", "internal/megatronargs", "internal/plaintext", "internal/procgroup", "internal/pyrepr", "internal/race", "internal/secret", "internal/stats", "internal/suggest",
	"internal/sysmem",
}

// forPrograms lists the folders that a program of the module may import.
var forPrograms = []string{
	"device", "document", "tensor", "opregistry", "ops", "opstest", "opbench", "opmanager", "impls", "vendors", "runtime", "metrics", "serve", "fleet", "internal", "examples",
}

// layerOf returns the rule for a package.
func layerOf(dir string) (layer, bool) {
	for _, l := range layers {
		if l.covers(dir) {
			return l, true
		}
	}
	return layer{}, false
}

// covers reports whether a package is below the root, or matches a root with wildcards.
func (l layer) covers(dir string) bool {
	matches, _ := path.Match(l.root, dir)
	return matches || inside(dir, l.root)
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

// permits reports whether a package of the layer may import another package of the module.
func (l layer) permits(dir, target string) bool {
	return insideAny(target, l.allowed) || insideAny(target, leaves) || inside(target, l.own(dir)) || l.program && insideAny(target, forPrograms)
}

// targets returns the packages of the module that a file imports.
func (s source) targets() []string {
	var targets []string
	for _, i := range s.imports() {
		if inside(i.path, module) {
			targets = append(targets, path.Clean(strings.TrimPrefix(strings.TrimPrefix(i.path, module), "/")))
		}
	}
	return targets
}

// checkLayers returns the imports of a file that its package must not have.
func checkLayers(s source) []string {
	l, ok := layerOf(s.dir)
	if !ok {
		return []string{fmt.Sprintf("%s: no layer covers %s: add it to the table with what it may import", s.where(), s.dir)}
	}
	var found []string
	for _, target := range s.targets() {
		switch {
		case l.permits(s.dir, target):
		case s.isTest() && inside(s.dir, "cmd") && target == "cmd/primus/command": // tests run the whole program
		case s.isTest() && target == "internal/primustest": // it imports leaves alone
		case inside(target, "cmd") && inside(s.dir, "cmd"):
			found = append(found, fmt.Sprintf("%s: imports %s: what two commands share lies in cmd/primus/command/internal or below cmd", s.where(), target))
		case inside(target, "cmd"):
			found = append(found, fmt.Sprintf("%s: imports %s: nobody imports cmd but programs that are made of it", s.where(), target))
		case insideAny(s.dir, leaves):
			found = append(found, fmt.Sprintf("%s: imports %s: %s is a leaf, which imports nothing of the module but other leaves", s.where(), target, s.dir))
		case !s.isTest():
			found = append(found, fmt.Sprintf("%s: imports %s: %s may import %s and what lies in %s",
				s.where(), target, s.dir, list(l.allowed), l.own(s.dir)))
		}
	}
	return found
}

// checkUnused returns the parts of the table that no file needs.
func checkUnused(layers []layer, files []source) []string {
	covered, used := map[string]bool{}, map[string]bool{}
	for _, s := range files {
		l, _ := layerOf(s.dir)
		covered[l.root] = true
		for _, target := range s.targets() {
			for _, permission := range l.allowed {
				if inside(target, permission) && (!s.isTest() || inside(target, "cmd")) {
					used[l.root+" "+permission] = true
				}
			}
			for _, leaf := range leaves {
				used[leaf] = used[leaf] || inside(target, leaf) && !inside(s.dir, leaf)
			}
		}
	}
	var unused []string
	for _, l := range layers {
		if !covered[l.root] {
			unused = append(unused, fmt.Sprintf("layer %s covers no package: remove it", l.root))
			continue
		}
		for _, permission := range l.allowed {
			if !used[l.root+" "+permission] {
				unused = append(unused, fmt.Sprintf("layer %s may import %s, but no package of it does: remove the permission", l.root, permission))
			}
		}
	}
	for _, leaf := range leaves {
		if !used[leaf] {
			unused = append(unused, fmt.Sprintf("leaf %s is imported by nobody: remove it", leaf))
		}
	}
	return unused
}

func list(items []string) string {
	if len(items) == 0 {
		return "nothing of the module"
	}
	return strings.Join(items, ", ")
}

func TestLayers(t *testing.T) {
	t.Parallel()
	files := tree(t)
	for _, s := range files {
		for _, violation := range checkLayers(s) {
			t.Error(violation)
		}
	}
	for _, unused := range checkUnused(layers, files) {
		t.Error(unused)
	}
}

func TestUnusedPermissions(t *testing.T) {
	t.Parallel()
	files := []source{
		parse(t, "tensor/a.go", "package p\nimport \""+module+"/device\""),
		parse(t, "tensor/a_test.go", "package p\nimport \""+module+"/opregistry\""),
	}
	table := []layer{{root: "tensor", allowed: []string{"device", "opregistry"}}, {root: "tools"}}
	assert.Subset(t, checkUnused(table, files), []string{
		"layer tensor may import opregistry, but no package of it does: remove the permission",
		"layer tools covers no package: remove it",
	})
	assert.NotContains(t, strings.Join(checkUnused(table, files), "\n"), "may import device")
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
		{"ops/norm/a.go", "opregistry", true},
		{"ops/norm/a.go", "opmanager", false},
		{"opregistry/a.go", "ops", false},
		{"opstest/a.go", "impls/reference", false},
		{"ops/opscases/a.go", "opstest", true},
		{"ops/norm/a.go", "opstest", false},
		{"opmanager/a.go", "impls/flagos", false},
		{"opmanager/a.go", "runtime/train", false},
		{"impls/flagos/a.go", "internal/parallel", true},
		{"impls/flagos/a.go", "ops", true},
		{"impls/flagos/a.go", "impls/flagos/internal/gemm", true},
		{"impls/flagos/internal/gemm/a.go", "impls/flagos/internal/host", true},
		{"impls/flagos/a.go", "impls/reference", false},
		{"impls/flagos/a_test.go", "impls/reference", true},
		{"impls/flagos/a.go", "opmanager", false},
		{"impls/flagos/a.go", "vendors/openblas", false},
		{"vendors/openblas/a.go", "vendors/loader", true},
		{"vendors/openblas/a.go", "vendors/onednn", false},
		{"vendors/openblas/a.go", "impls/reference", false},
		{"vendors/openblas/a.go", "opmanager", false},
		{"vendors/abi/a.go", "tensor", false},
		{"vendors/loader/a.go", "vendors/openblas", false},
		{"runtime/train/a.go", "opmanager", true},
		{"runtime/config/a.go", "runtime/backend", false},
		{"internal/backends/megatron/a.go", "runtime/backends/native", false},
		{"internal/backends/megatron/a.go", "internal/backends/python", true},
		{"internal/serve/a.go", "metrics", false},
		{"internal/chart/a.go", "internal/parallel", false},
		{"internal/chart/a.go", "internal/suggest", true},
		{"internal/stats/a.go", "opregistry", false},
		{"internal/report/a.go", "runtime/train", true},
		{"runtime/train/a.go", "internal/report", false},
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
		{"internal/benchmarks/a.go", "vendors/openblas", true},
		{"cmd/primus/main.go", "cmd/primus/command", true},
		{"cmd/primus/command/a.go", "vendors/openblas", true},
		{"cmd/primus/command/a.go", "cmd/primus/command/internal/serve", true},
		{"cmd/primus/command/internal/serve/a.go", "cmd/primus/command/internal/cli", true},
		{"cmd/primus/command/internal/serve/a.go", "cmd/primus/command/internal/patches", false},
		{"cmd/primus/command/internal/serve/a_test.go", "cmd/primus/command/internal/patches", false},
		{"cmd/primus/command/internal/serve/a_test.go", "cmd/primus/command/internal/commandtest", true},
		{"cmd/primus/command/internal/serve/a.go", "cmd/primus/command", false},
		{"cmd/primus/command/internal/serve/a_test.go", "cmd/primus/command", true},
		{"cmd/primus/command/internal/cli/a.go", "cmd/primus/command/internal/serve", false},
		{"examples/custom_op/main.go", "opmanager", true},
		{"examples/custom_op/main.go", "cmd/primus/command", false},
		{"examples/custom_distribution/main.go", "cmd/primus/command", true},
		{"examples/custom_distribution/main.go", "internal/settings", false},
		{"internal/serve/a.go", "internal/runs", true},
		{"internal/serve/a.go", "internal/settings", false},
		{"internal/serve/a.go", "internal/fleet", false},
		{"internal/fleet/a.go", "opmanager/policyfile", true},
		{"internal/fleet/a.go", "internal/serve", false},
		{"examples/embedded/main.go", "internal/serve", false},
		{"internal/chaos/main.go", "cmd/primus/command", true},
		{"internal/benchmarks/main.go", "cmd/primus/command", false},
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
