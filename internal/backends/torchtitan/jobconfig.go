package torchtitan

import (
	"fmt"
	"path/filepath"

	"github.com/primus-fl/primus/internal/backends/python"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/pyreader"
)

// jobConfigFile is where TorchTitan describes the configuration that it reads from TOML.
const jobConfigFile = "torchtitan/config/job_config.py"

// maxJobConfig bounds that file.
const maxJobConfig = 16 << 20

// readJobConfig reads the sections and keys of the job configuration of a source tree.
func readJobConfig(tree string) (map[string]pyreader.Field, error) {
	file := filepath.Join(tree, filepath.FromSlash(jobConfigFile))
	text, err := durable.ReadRegular(file, maxJobConfig)
	if err != nil {
		if python.Exists(filepath.Join(tree, "torchtitan")) {
			return nil, fmt.Errorf("framework %s: the source tree %s has no %s: this layout, whose configuration is Python code, is not supported; want a version that reads TOML, such as 0.2.2",
				Framework, tree, jobConfigFile)
		}
		return nil, fmt.Errorf("framework %s: %s is not a source tree of TorchTitan: %w", Framework, tree, err)
	}
	return pyreader.Fields(file, text, "JobConfig")
}
