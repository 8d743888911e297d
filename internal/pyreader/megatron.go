package pyreader

import (
	"io/fs"
	"maps"
	"path/filepath"
	"strings"

	"github.com/primus-fl/primus/internal/megatronargs"
)

// DefaultsOf returns the version of the framework whose defaults are used for parameters that a run
// does not set, and whether it is the version of the run. It counts as that of the run if the run
// states no version or needs no defaults.
func (r Run) DefaultsOf() (version string, same bool) {
	switch {
	case r.Backend != "megatron" || r.Version == "":
		return r.Version, true
	case r.Defaults != nil:
		return r.Defaults.Version, r.Version == r.Defaults.Version
	}
	return megatronargs.Version, r.Version == megatronargs.Version || strings.HasPrefix(r.Version, megatronargs.Version+".")
}

// withDefaults returns the parameters that conditions of a phase see. From the phase setup on they
// include the defaults of the framework. These are known for Megatron; other frameworks add none
// that patches read.
func withDefaults(run Run, phase string) map[string]any {
	if run.Backend != "megatron" || phase == "build_args" {
		return run.Params
	}
	defaults := megatronargs.Defaults()
	if run.Defaults != nil {
		defaults = run.Defaults.Values
	}
	params := maps.Clone(defaults)
	maps.Copy(params, run.Params)
	return params
}

// frameworks are the frameworks whose source trees say which version they are: the folder that
// Primus keeps them in, and the file that has the version.
var frameworks = map[string]struct{ folder, versionFile string }{
	"megatron":        {"Megatron-LM", "megatron/core/package_info.py"},
	"megatron_bridge": {"Megatron-Bridge", "src/megatron/bridge/package_info.py"},
}

// FrameworkTree returns where a checkout of Primus has the source tree of a framework, "" if it has
// none.
func FrameworkTree(root, framework string) string {
	folder := frameworks[framework].folder
	tree := filepath.Join(root, "third_party", folder)
	if folder == "" || !isFolder(tree) {
		return ""
	}
	return tree
}

// FrameworkVersion returns the version that the source tree of a framework states. The error is
// fs.ErrNotExist if it has no file for that.
func FrameworkVersion(tree, framework string) (string, error) {
	file := frameworks[framework].versionFile
	if file == "" {
		return "", fs.ErrNotExist
	}
	return fileVersion(tree, file)
}
