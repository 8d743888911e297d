package command

import (
	"encoding/json"
	"fmt"
	goruntime "runtime"
	"runtime/debug"
	"strings"

	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/spf13/cobra"
)

// versionInfo is what the program knows about its build.
type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func buildVersion() versionInfo {
	v := versionInfo{Version: buildinfo.Version(), Go: goruntime.Version(), Platform: goruntime.GOOS + "/" + goruntime.GOARCH}
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
func (v versionInfo) String() string {
	parts := []string{"primus"}
	for _, part := range []string{v.Version, v.Revision, v.Go, v.Platform} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " ")
}

func newVersionCommand(prog program) *cobra.Command {
	var output outputFormat
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  primus version -o json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			v := buildVersion()
			if output == outputJSON {
				return json.NewEncoder(prog.Out).Encode(v)
			}
			_, err := fmt.Fprintln(prog.Out, v)
			return err
		},
	}
	output.addFlag(cmd)
	return cmd
}
