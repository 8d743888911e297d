package command

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
)

// cudaVariables name the directory of a CUDA installation; the first one that is set wins, as in TransformerEngine-FL.
var cudaVariables = []string{"CUDA_HOME", "CUDA_PATH"}

// cudaHome is the CUDA installation that the environment names. Libraries of vendor nvidia may use it; nothing that is
// compiled in does.
type cudaHome struct {
	Dir    string `json:"dir"`
	Source string `json:"source"`
}

// cuda returns the CUDA installation that the environment names, the zero one for none. It warns of one that is not there.
func (e environment) cuda(log *slog.Logger) cudaHome {
	for _, name := range cudaVariables {
		dir := strings.TrimSpace(e[name])
		if dir == "" {
			continue
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			log.Warn(fmt.Sprintf("environment %s=%q is no directory, want that of a CUDA installation, or unset it", name, dir))
		}
		return cudaHome{dir, "environment " + name}
	}
	return cudaHome{}
}
