package scaffold

import (
	"context"
	gobuildinfo "debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/primus-fl/primus/internal/buildinfo"
)

// Module says which module goes into a program, in which version or from which directory. Without
// either the newest version is taken.
type Module struct{ Path, Version, Dir string }

// modulePath matches the paths of modules.
var modulePath = regexp.MustCompile(`^[A-Za-z0-9_.~-]+(/[A-Za-z0-9_.~-]+)*$`)

// ValidPath reports whether a module may have the path.
func ValidPath(path string) bool { return modulePath.MatchString(path) }

// ParseModule reads MODULE[@VERSION][=DIR].
func ParseModule(s string) (Module, error) {
	name, dir, local := strings.Cut(s, "=")
	path, version, versioned := strings.Cut(name, "@")
	if !ValidPath(path) || versioned && version == "" || local && dir == "" {
		return Module{}, fmt.Errorf("given %q, want MODULE, MODULE@VERSION, MODULE=DIR or MODULE@VERSION=DIR", s)
	}
	return Module{path, version, dir}, nil
}

// ErrUnknownSource is the error of Primus in a program that does not know its source.
var ErrUnknownSource = errors.New("this program does not know which version of " + buildinfo.Module + " it was built from")

// Primus returns the source of this module: the VERSION, DIR or VERSION=DIR that was asked for,
// else that of this program, else that of the working directory.
func Primus(asked string) (Module, error) {
	if asked != "" {
		if isDirectory(asked) {
			return Module{Path: buildinfo.Module, Dir: asked}, nil
		}
		m, err := ParseModule(buildinfo.Module + "@" + asked)
		if err != nil {
			return m, fmt.Errorf("given %q, want VERSION, DIR or VERSION=DIR", asked)
		}
		return m, nil
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		v, _ := buildinfo.ModuleOf(info, buildinfo.Module)
		switch {
		case v.Dir != "":
			return Module{Path: buildinfo.Module, Dir: v.Dir}, nil
		case strings.HasPrefix(v.Version, "v") && !strings.HasSuffix(v.Version, "+dirty"):
			return Module{Path: buildinfo.Module, Version: v.Version}, nil
		}
	}
	dir, err := os.Getwd()
	if err != nil {
		return Module{}, err
	}
	for ; ; dir = filepath.Dir(dir) {
		if mod, err := readModule(dir); err == nil && mod.Module.Mod.Path == buildinfo.Module {
			return Module{Path: buildinfo.Module, Dir: dir}, nil
		}
		if dir == filepath.Dir(dir) {
			return Module{}, ErrUnknownSource
		}
	}
}

// isDirectory reports whether what was asked for means a directory and no version.
func isDirectory(asked string) bool {
	if strings.HasPrefix(asked, ".") || filepath.IsAbs(asked) {
		return true
	}
	info, err := os.Stat(asked)
	return err == nil && info.IsDir()
}

// Program says what a program is made of.
type Program struct {
	Primus  Module
	Modules []Module // with ops
	Output  string   // the file to write
}

// Check returns an error if a module is in the program twice.
func (b *Program) Check() error {
	seen := map[string]bool{buildinfo.Module: true}
	for _, m := range b.Modules {
		if seen[m.Path] {
			return fmt.Errorf("module %q is in the program already", m.Path)
		}
		seen[m.Path] = true
	}
	return nil
}

// Build compiles the program, lets it list its ops once and moves it to its place. It returns the
// modules that are in it.
func (b *Program) Build(ctx context.Context) ([]buildinfo.ModuleVersion, error) {
	work, err := os.MkdirTemp("", "primus-build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	parts := []part{}
	for _, m := range append([]Module{b.Primus}, b.Modules...) {
		p, err := fetch(ctx, work, m)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	for i := range parts[1:] {
		if err := parts[1+i].findSource(ctx); err != nil {
			return nil, err
		}
	}
	if err := generate(work, parts); err != nil {
		return nil, err
	}
	output, err := filepath.Abs(b.Output)
	if err != nil {
		return nil, err
	}
	unproven := output + ".tmp-build"
	defer os.Remove(unproven)
	if err := compile(ctx, work, unproven, parts); err != nil {
		return nil, err
	}
	if err := tryProgram(ctx, unproven); err != nil {
		return nil, err
	}
	info, err := gobuildinfo.ReadFile(unproven)
	if err != nil {
		return nil, err
	}
	var built []buildinfo.ModuleVersion
	for _, p := range parts {
		if v, ok := buildinfo.ModuleOf(info, p.Path); ok {
			built = append(built, v)
		}
	}
	return built, os.Rename(unproven, output)
}
