package buildinfo

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestVersionOf(t *testing.T) {
	this := func(version string) debug.Module { return debug.Module{Path: Module, Version: version} }
	other := debug.Module{Path: "example.com/program", Version: "v9.9.9"}
	dep := this("v0.5.0")
	replaced := debug.Module{Path: Module, Version: "v0.5.0", Replace: &debug.Module{Path: "../primus"}}
	forked := debug.Module{Path: Module, Version: "v0.5.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v0.5.1"}}
	vcs := []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}}
	for name, tt := range map[string]struct {
		linked string
		info   *debug.BuildInfo
		want   string
	}{
		"no build information":                {info: nil, want: "(devel)"},
		"linked":                              {linked: "v1.2.3", info: &debug.BuildInfo{Main: this("v0.1.0")}, want: "v1.2.3"},
		"a version of the main module":        {info: &debug.BuildInfo{Main: this("v0.1.0")}, want: "v0.1.0"},
		"a checkout":                          {info: &debug.BuildInfo{Main: this("(devel)"), Settings: vcs}, want: "abc+dirty"},
		"a directory":                         {info: &debug.BuildInfo{Main: this("(devel)")}, want: "(devel)"},
		"a program of others":                 {info: &debug.BuildInfo{Main: other, Deps: []*debug.Module{&dep}, Settings: vcs}, want: "v0.5.0"},
		"a program of others and a directory": {info: &debug.BuildInfo{Main: other, Deps: []*debug.Module{&replaced}, Settings: vcs}, want: "(devel)"},
		"a program of others and a fork":      {info: &debug.BuildInfo{Main: other, Deps: []*debug.Module{&forked}}, want: "v0.5.1"},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tt.want, versionOf(tt.linked, tt.info)) })
	}
}
