package archtest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// confinement says where a module may be used.
type confinement struct {
	module string
	in     []string // folders
	files  []string // names of files in any folder
	tests  bool     // in test files and test kits of any folder
}

var confinements = []confinement{
	{module: "go.uber.org/fx", in: []string{"cmd", "examples/custom_distribution", "internal/chaos"}, files: []string{"module.go"}},
	{module: "go.uber.org/dig", in: []string{"cmd"}},
	{module: "github.com/spf13/viper", in: []string{"internal/settings"}},
	{module: "github.com/spf13/cobra", in: []string{"cmd"}},
	{module: "github.com/spf13/pflag", in: []string{"cmd", "internal/settings"}},
	{module: "github.com/prometheus", in: []string{"capi", "metrics", "internal/serve", "cmd"}},
	{module: "C", in: []string{"capi"}},
	{module: "go.opentelemetry.io", in: []string{"internal/spans"}},
	{module: "github.com/danielgtaylor/huma", in: []string{"internal/serve"}},
	{module: "github.com/chromedp", tests: true},
	{module: "go.etcd.io/etcd", in: []string{"internal/fleet"}},
	{module: "google.golang.org/grpc", in: []string{"internal/fleet"}},
	{module: "go.uber.org/zap", in: []string{"internal/fleet"}},
	{module: "github.com/ebitengine/purego", in: []string{"vendors/loader"}},
	{module: "go.yaml.in/yaml", in: []string{"document/formats"}, tests: true},
	{module: "github.com/pelletier/go-toml", in: []string{"document/formats"}},
	{module: "github.com/stretchr/testify", tests: true},
	{module: "go.uber.org/goleak", tests: true},
	{module: "testing", tests: true},
}

func (c confinement) allows(s source) bool {
	if c.tests && (s.isTest() || s.isKit()) || insideAny(s.dir, c.in) {
		return true
	}
	for _, name := range c.files {
		if s.name == name {
			return true
		}
	}
	return false
}

func (c confinement) String() string {
	switch {
	case c.tests:
		return "test files and test kits"
	case len(c.files) > 0:
		return fmt.Sprintf("files %s and in %s", list(c.files), list(c.in))
	default:
		return list(c.in)
	}
}

// checkThirdParty returns the imports of a file that are only allowed elsewhere.
func checkThirdParty(s source) []string {
	var found []string
	for _, i := range s.imports() {
		for _, c := range confinements {
			if inside(i.path, c.module) && !c.allows(s) {
				found = append(found, fmt.Sprintf("%s: imports %s, which belongs in %v only", s.where(), i.path, c))
			}
		}
	}
	return found
}

// checkUnusedThirdParty returns the places in which a module may be used and is not.
func checkUnusedThirdParty(confinements []confinement, files []source) []string {
	used := map[string]bool{}
	for _, s := range files {
		for _, i := range s.imports() {
			for _, c := range confinements {
				if !inside(i.path, c.module) {
					continue
				}
				used[c.module] = true
				for _, folder := range c.in {
					used[c.module+" "+folder] = used[c.module+" "+folder] || inside(s.dir, folder)
				}
				for _, name := range c.files {
					used[c.module+" "+name] = used[c.module+" "+name] || s.name == name
				}
			}
		}
	}
	var unused []string
	for _, c := range confinements {
		if !used[c.module] {
			unused = append(unused, fmt.Sprintf("%s is not imported: remove its rule", c.module))
			continue
		}
		for _, place := range append(slices.Clone(c.in), c.files...) {
			if !used[c.module+" "+place] {
				unused = append(unused, fmt.Sprintf("%s may be imported in %s, but is not: remove the permission", c.module, place))
			}
		}
	}
	return unused
}

func TestThirdParty(t *testing.T) {
	t.Parallel()
	files := tree(t)
	for _, s := range files {
		for _, violation := range checkThirdParty(s) {
			t.Error(violation)
		}
	}
	for _, unused := range checkUnusedThirdParty(confinements, files) {
		t.Error(unused)
	}
}

func TestThirdPartyFindsUnusedPermissions(t *testing.T) {
	t.Parallel()
	files := []source{parse(t, "serve/a.go", "package p\nimport \"example.org/web/v2\"")}
	assert.Equal(t, []string{
		"example.org/web may be imported in cmd, but is not: remove the permission",
		"example.org/web may be imported in module.go, but is not: remove the permission",
		"example.org/log is not imported: remove its rule",
	}, checkUnusedThirdParty([]confinement{
		{module: "example.org/web", in: []string{"serve", "cmd"}, files: []string{"module.go"}},
		{module: "example.org/log", in: []string{"cmd"}},
	}, files))
}

func TestThirdPartyFindsViolations(t *testing.T) {
	t.Parallel()
	tests := []struct {
		where, target string
		ok            bool
	}{
		{"opmanager/module.go", "go.uber.org/fx", true},
		{"opmanager/module_test.go", "go.uber.org/fx/fxtest", false},
		{"opmanager/manager.go", "go.uber.org/fx", false},
		{"cmd/primus/command/app.go", "go.uber.org/fx/fxevent", true},
		{"opmanager/module.go", "go.uber.org/dig", false},
		{"internal/settings/settings.go", "github.com/spf13/viper", true},
		{"cmd/primus/command/config_cli.go", "github.com/spf13/viper", false},
		{"opmanager/load.go", "github.com/spf13/viper", false},
		{"cmd/primus/command/root.go", "github.com/spf13/cobra", true},
		{"runtime/train/a.go", "github.com/spf13/cobra", false},
		{"metrics/a.go", "github.com/prometheus/client_golang/prometheus", true},
		{"opmanager/a_test.go", "github.com/prometheus/client_golang/prometheus", false},
		{"internal/fleet/a.go", "github.com/prometheus/client_golang/prometheus", false},
		{"internal/fleet/a.go", "go.etcd.io/etcd/client/v3", true},
		{"cmd/primus/command/a.go", "go.etcd.io/etcd/client/v3", false},
		{"vendors/loader/a.go", "github.com/ebitengine/purego", true},
		{"device/cuda/a.go", "github.com/ebitengine/purego", false},
		{"vendors/openblas/a.go", "github.com/ebitengine/purego", false},
		{"document/formats/a.go", "go.yaml.in/yaml/v3", true},
		{"opmanager/policyfile/a.go", "go.yaml.in/yaml/v3", false},
		{"document/a.go", "go.yaml.in/yaml/v3", false},
		{"runtime/config/a.go", "github.com/pelletier/go-toml/v2", false},
		{"tensor/a_test.go", "github.com/stretchr/testify/assert", true},
		{"tensor/a.go", "github.com/stretchr/testify/assert", false},
		{"capi/a.go", "C", true},
		{"vendors/loader/a.go", "C", false},
		{"tensor/a.go", "testing", false},
		{"tensor/a_test.go", "testing/synctest", true},
	}
	for _, tt := range tests {
		t.Run(tt.where+" imports "+tt.target, func(t *testing.T) {
			t.Parallel()
			s := parse(t, tt.where, fmt.Sprintf("package p\nimport %q\n", tt.target))
			assert.Equal(t, tt.ok, len(checkThirdParty(s)) == 0)
		})
	}
	kit := parse(t, "tensor/tensortest/a.go", "package tensortest\nimport \"testing\"\n")
	assert.Empty(t, checkThirdParty(kit), "a test kit may import testing")
}
