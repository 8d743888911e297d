package command

import (
	"cmp"
	"path"
	"reflect"
	goruntime "runtime"
	"runtime/debug"
	"strings"

	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/opregistry"
	"go.uber.org/fx"
)

// The groups that a program of its own may add to with [Main], as result tags for fx.Annotate: what is in them is treated as
// what is compiled in here. The order in a group does not matter, and two of one name are an error that names both.
const (
	// OpSources is the group of opregistry.Source values.
	OpSources = `group:"op_sources"`
	// Backends is the group of backend.Factory values, the training frameworks.
	Backends = `group:"backends"`
	// Patches is the group of patch.Patch values; a constructor of several takes `group:"patches,flatten"`.
	Patches = `group:"patches"`
	// Devices is the group of device.Backend values. One that implements io.Closer is closed at the end.
	Devices = `group:"devices"`
	// Formats is the group of document.Loader values, the file formats of experiments and presets. One that is a
	// document.Renderer can be written, too.
	Formats = `group:"formats"`
	// Listeners is the group of opmanager.Listener values, which hear of dispatch.
	Listeners = `group:"listeners"`
)

// primusModule is the module that this program is made from.
const primusModule = buildinfo.Module

// Extra returns an option for [Main] that adds the ops of another module, as the programs of `primus plugins build` do.
// Errors and `primus plugins list` name the module.
func Extra(module string, source func() opregistry.Source) fx.Option {
	return provideGroup("extra_sources", func() extraSource { return extraSource{source(), module} })
}

// extraSource is a source of another module that is compiled in.
type extraSource struct {
	opregistry.Source
	module string
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
	if linked := buildinfo.Linked(); path == primusModule && linked != "" {
		v.Version = linked
	}
	return v
}

// moduleOfSource returns the module that a source was written in, by the function of its first impl; this one when the
// program does not know.
func moduleOfSource(src opregistry.Source) string {
	info, ok := debug.ReadBuildInfo()
	if !ok || len(src.Impls) == 0 {
		return primusModule
	}
	name := goruntime.FuncForPC(reflect.ValueOf(src.Impls[0].Run).Pointer()).Name()
	dir, last := path.Split(name)
	pkg, _, _ := strings.Cut(last, ".")
	if pkg = dir + pkg; pkg == "main" {
		return info.Main.Path
	}
	found := ""
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if (pkg == m.Path || strings.HasPrefix(pkg, m.Path+"/")) && len(m.Path) > len(found) {
			found = m.Path
		}
	}
	return cmp.Or(found, primusModule)
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
			if v.Version == "" || v.Version == buildinfo.Unversioned {
				v.Version, v.Dir = "", m.Replace.Path
			}
		}
		return v, true
	}
	return moduleVersion{}, false
}
