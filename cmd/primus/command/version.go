package command

import (
	"encoding/json"
	"fmt"
	goruntime "runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker in releases.
var version = ""

type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func buildVersion() versionInfo {
	v := versionInfo{Version: version, Go: goruntime.Version(), Platform: goruntime.GOOS + "/" + goruntime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = s.Value
		}
	}
	if v.Version == "" {
		v.Version = info.Main.Version
	}
	return v
}

func newVersionCommand(streams Streams) *cobra.Command {
	var output outputFormat
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  primus version -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := buildVersion()
			if output == outputJSON {
				return json.NewEncoder(streams.Out).Encode(v)
			}
			_, err := fmt.Fprintf(streams.Out, "primus %s %s %s %s\n", v.Version, v.Revision, v.Go, v.Platform)
			return err
		},
	}
	output.addFlag(cmd.Flags())
	return cmd
}
