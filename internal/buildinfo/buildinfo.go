// Package buildinfo says which version of this module a program was built from.
//
// It depends on the standard library only, so that every package may use it.
package buildinfo

import (
	"cmp"
	"runtime/debug"
	"slices"
)

// Module is the path of this module.
const Module = "github.com/primus-fl/primus"

// Unversioned is the version that the go command gives to a directory.
const Unversioned = "(devel)"

// version is set by the linker in builds of the Makefile.
var version = ""

// Version returns the version of this module in the program: the one that the linker set, else the
// one that the go command chose, else the revision of the checkout, with +dirty when it had
// changes, and Unversioned when none of them is known.
func Version() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(version, info)
}

// Linked returns the version that the linker set, or "".
func Linked() string { return version }

// versionOf is Version for a program with this linked version and build information, which may be
// nil.
func versionOf(linked string, info *debug.BuildInfo) string {
	if linked != "" || info == nil {
		return cmp.Or(linked, Unversioned)
	}
	main := info.Main.Path == Module
	version := ""
	modules := append([]*debug.Module{&info.Main}, info.Deps...)
	if i := slices.IndexFunc(modules, func(m *debug.Module) bool { return m.Path == Module }); i >= 0 {
		m := modules[i]
		if m.Replace != nil {
			m = m.Replace
		}
		version = m.Version
	}
	if version == "" || version == Unversioned {
		version = ""
		if main {
			version = revision(info)
		}
	}
	return cmp.Or(version, Unversioned)
}

// revision returns the revision that the main module was built from.
func revision(info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	text := settings["vcs.revision"]
	if text != "" && settings["vcs.modified"] == "true" {
		text += "+dirty"
	}
	return text
}
