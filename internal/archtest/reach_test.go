package archtest

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// unreachable lists packages that must not depend on a module, not even through other packages of
// this one, so that programs which import them need not build it.
var unreachable = []struct{ from, module string }{
	{"metrics", "go.yaml.in/yaml"},
	{"metrics", "github.com/pelletier/go-toml"},
	{"opmanager", "go.yaml.in/yaml"},
	{"opmanager", "github.com/prometheus"},
}

// importPath returns the chain of packages that leads from one to a third-party module, or nil when
// there is none.
func importPath(files []source, from, thirdParty string) []string {
	imports := map[string][]string{}
	for _, s := range files {
		if s.isTest() {
			continue
		}
		for _, i := range s.imports() {
			imports[s.dir] = append(imports[s.dir], i.path)
		}
	}
	seen := map[string]bool{}
	var walk func(dir string) []string
	walk = func(dir string) []string {
		if seen[dir] {
			return nil
		}
		seen[dir] = true
		for _, target := range imports[dir] {
			if inside(target, thirdParty) {
				return []string{dir, target}
			}
			if inside(target, module) {
				if rest := walk(path.Clean(strings.TrimPrefix(strings.TrimPrefix(target, module), "/"))); rest != nil {
					return append([]string{dir}, rest...)
				}
			}
		}
		return nil
	}
	return walk(from)
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	files := tree(t)
	for _, u := range unreachable {
		assert.Empty(t, importPath(files, u.from, u.module), "%s depends on %s by way of", u.from, u.module)
		assert.True(t, slices.ContainsFunc(files, func(s source) bool { return s.dir == u.from }), "%s is no package", u.from)
	}
}

func TestUnreachableFindsPaths(t *testing.T) {
	t.Parallel()
	files := []source{
		parse(t, "metrics/a.go", "package p\nimport \""+module+"/runtime/config\""),
		parse(t, "runtime/config/a.go", "package p\nimport \"go.yaml.in/yaml/v3\""),
		parse(t, "opmanager/a_test.go", "package p\nimport \"go.yaml.in/yaml/v3\""),
		parse(t, "opmanager/a.go", "package p\nimport \""+module+"/opmanager\""),
	}
	assert.Equal(t, []string{"metrics", "runtime/config", "go.yaml.in/yaml/v3"}, importPath(files, "metrics", "go.yaml.in/yaml"))
	assert.Nil(t, importPath(files, "opmanager", "go.yaml.in/yaml"))
}
