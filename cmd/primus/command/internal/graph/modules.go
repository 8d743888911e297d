package graph

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

// Groups of values that the graph collects, as result tags for fx.Annotate.
const (
	OpSources = `group:"op_sources"`
	Backends  = `group:"backends"`
	Patches   = `group:"patches"`
	Devices   = `group:"devices"`
	Formats   = `group:"formats"`
	Listeners = `group:"listeners"`
)

// ProvideExtra returns the option that adds the ops of another module.
func ProvideExtra(module string, source func() opregistry.Source) fx.Option {
	return provideGroup("extra_sources", func() extraSource { return extraSource{source(), module} })
}

// extraSource is a source of another module that is compiled in.
type extraSource struct {
	opregistry.Source
	module string
}

// builtFrom returns the version of a module in this program, or the module alone if the version is
// not known.
func builtFrom(path string) buildinfo.ModuleVersion {
	v := buildinfo.ModuleVersion{Module: path}
	if info, ok := debug.ReadBuildInfo(); ok {
		if found, ok := buildinfo.ModuleOf(info, path); ok {
			v = found
		}
	}
	if linked := buildinfo.Linked(); path == buildinfo.Module && linked != "" {
		v.Version = linked
	}
	return v
}

// moduleOfSource returns the module that has the function of the first impl of a source, or this
// module if the program does not know.
func moduleOfSource(src opregistry.Source) string {
	info, ok := debug.ReadBuildInfo()
	if !ok || len(src.Impls) == 0 {
		return buildinfo.Module
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
	return cmp.Or(found, buildinfo.Module)
}
