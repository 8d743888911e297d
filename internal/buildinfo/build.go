package buildinfo

import (
	goruntime "runtime"
	"runtime/debug"
	"strings"
)

// Build is what a program knows about its build.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Read returns what the program knows about its build.
func Read() Build {
	v := Build{Version: Version(), Go: goruntime.Version(), Platform: goruntime.GOOS + "/" + goruntime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = s.Value
		}
	}
	return v
}

// String returns the build as one line.
func (v Build) String() string {
	parts := []string{"primus"}
	for _, part := range []string{v.Version, v.Revision, v.Go, v.Platform} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " ")
}
