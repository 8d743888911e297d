package command

import (
	"runtime/debug"

	"github.com/primus-fl/primus/opregistry"
)

// primusModule is the module that this program is made from.
const primusModule = "github.com/primus-fl/primus"

// unversioned is what the go command calls the version of a directory.
const unversioned = "(devel)"

// Extra is a source of ops from another module that is compiled in by a main of its own, as `primus plugins build` writes
// one.
type Extra struct {
	Module string
	Source func() opregistry.Source
}

// extraSource is a source of another module that is compiled in.
type extraSource struct {
	opregistry.Source
	module string
}

func newExtraSources(set appConfig) []extraSource {
	var all []extraSource
	for _, e := range set.extras {
		all = append(all, extraSource{e.Source(), e.Module})
	}
	return all
}

// moduleVersion is what went into a program of a module.
type moduleVersion struct {
	Module  string `json:"module"`
	Version string `json:"version"` // "" for a directory
	Sum     string `json:"sum,omitempty"`
	Dir     string `json:"dir,omitempty"` // that stood in for the module
}

// String spells it as plugins build takes it.
func (v moduleVersion) String() string {
	switch {
	case v.Version != "":
		return v.Module + "@" + v.Version
	case v.Dir != "":
		return v.Module + "=" + v.Dir
	}
	return v.Module
}

// builtFrom returns the version of a module in this program, the module alone where that is not known.
func builtFrom(path string) moduleVersion {
	v := moduleVersion{Module: path}
	if info, ok := debug.ReadBuildInfo(); ok {
		if found, ok := moduleOf(info, path); ok {
			v = found
		}
	}
	if path == primusModule && version != "" {
		v.Version = version
	}
	return v
}

// moduleOf returns the version of a module in a program; ok is false when it is not in it.
func moduleOf(info *debug.BuildInfo, path string) (v moduleVersion, ok bool) {
	modules := append([]*debug.Module{&info.Main}, info.Deps...)
	for _, m := range modules {
		if m.Path != path {
			continue
		}
		v := moduleVersion{Module: path, Version: m.Version, Sum: m.Sum}
		if m.Replace != nil {
			v.Version, v.Sum = m.Replace.Version, m.Replace.Sum
			if v.Version == "" || v.Version == unversioned {
				v.Version, v.Dir = "", m.Replace.Path
			}
		}
		return v, true
	}
	return moduleVersion{}, false
}
