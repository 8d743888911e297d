package scaffold

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// readModule reads the go.mod of a directory, which names a module.
func readModule(dir string) (*modfile.File, error) {
	name := filepath.Join(dir, "go.mod")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%w; want the root of a Go module", err)
	}
	mod, err := modfile.ParseLax(name, text, nil)
	if err != nil {
		return nil, err
	}
	if mod.Module == nil {
		return nil, fmt.Errorf("%s names no module", name)
	}
	return mod, nil
}

// noVersion is the version of a module that a directory replaces.
func noVersion(path string) string {
	_, major, _ := module.SplitPathVersion(path)
	if major = module.PathMajorPrefix(major); major == "" {
		major = "v0"
	}
	return module.ZeroPseudoVersion(major)
}

// requirements returns the go.mod of a program with the parts. It requires what the parts require,
// in the highest version of each, so that the go command need not look for other modules.
func requirements(parts []part) ([]byte, error) {
	var mod modfile.File
	versions := map[string]string{}
	var paths []string
	need := func(path, version string) {
		if versions[path] == "" {
			paths = append(paths, path)
		}
		if semver.Compare(version, versions[path]) > 0 {
			versions[path] = version
		}
	}
	for _, p := range parts {
		need(p.Path, p.Version)
	}
	for _, p := range parts {
		for _, r := range p.mod.Require {
			need(r.Mod.Path, r.Mod.Version)
		}
	}
	if err := mod.AddModuleStmt("primus_with_plugins"); err != nil {
		return nil, err
	}
	if primus := parts[0].mod; primus.Go != nil {
		if err := mod.AddGoStmt(primus.Go.Version); err != nil {
			return nil, err
		}
	}
	for i, path := range paths {
		mod.AddNewRequire(path, versions[path], i >= len(parts))
	}
	for _, p := range parts {
		if !p.replaced {
			continue
		}
		if err := mod.AddReplace(p.Path, "", p.Dir, ""); err != nil {
			return nil, err
		}
	}
	return mod.Format()
}
