package cli

import (
	goruntime "runtime"
	"runtime/debug"
	"strings"

	"github.com/primus-fl/primus/internal/buildinfo"
)

// Version is what the program knows about its build.
type Version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// BuildVersion returns what the program knows about its build.
func BuildVersion() Version {
	v := Version{Version: buildinfo.Version(), Go: goruntime.Version(), Platform: goruntime.GOOS + "/" + goruntime.GOARCH}
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

// String returns the version as one line.
func (v Version) String() string {
	parts := []string{"primus"}
	for _, part := range []string{v.Version, v.Revision, v.Go, v.Platform} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " ")
}
