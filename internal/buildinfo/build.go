package buildinfo

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
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

// Checksum returns the SHA-256 of the file of this program, as far as it tells two builds
// apart; where it cannot be read, why.
func Checksum() string {
	f, err := os.Open("/proc/self/exe") // also when the file has been replaced
	if err != nil {
		var name string
		if name, err = os.Executable(); err == nil {
			f, err = os.Open(name)
		}
	}
	if err != nil {
		return err.Error()
	}
	defer func() { _ = f.Close() }() // it was only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err.Error()
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
