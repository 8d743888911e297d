package buildinfo

import "runtime/debug"

// ModuleVersion says which source of a module is in a program.
type ModuleVersion struct {
	Module  string `json:"module"`
	Version string `json:"version"` // "" for a directory
	Sum     string `json:"sum,omitempty"`
	Dir     string `json:"dir,omitempty"` // that stood in for the module
}

// String returns the module as `primus plugins build` takes it.
func (v ModuleVersion) String() string {
	switch {
	case v.Version != "":
		return v.Module + "@" + v.Version
	case v.Dir != "":
		return v.Module + "=" + v.Dir
	}
	return v.Module
}

// ModuleOf returns the version of a module in a program; ok is false if the program does not have
// it.
func ModuleOf(info *debug.BuildInfo, path string) (v ModuleVersion, ok bool) {
	modules := append([]*debug.Module{&info.Main}, info.Deps...)
	for _, m := range modules {
		if m.Path != path {
			continue
		}
		v := ModuleVersion{Module: path, Version: m.Version, Sum: m.Sum}
		if m.Replace != nil {
			v.Version, v.Sum = m.Replace.Version, m.Replace.Sum
			if v.Version == "" || v.Version == Unversioned {
				v.Version, v.Dir = "", m.Replace.Path
			}
		}
		return v, true
	}
	return ModuleVersion{}, false
}
