package dispatch

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
)

// cudaVariables name the directory of a CUDA installation; the first one that is set wins, as in
// TransformerEngine-FL.
var cudaVariables = []string{"CUDA_HOME", "CUDA_PATH"}

// CudaHome is the CUDA installation that the environment names. Libraries of vendor nvidia may use
// it; nothing that is compiled in does.
type CudaHome struct {
	Dir    string `json:"dir"`
	Source string `json:"source"`
}

// Cuda returns the CUDA installation that the environment names, the zero one for none. It warns of
// one that is not there.
func (e Environment) Cuda(log *slog.Logger) CudaHome {
	for _, name := range cudaVariables {
		dir := strings.TrimSpace(e[name])
		if dir == "" {
			continue
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			log.Warn(fmt.Sprintf("environment %s=%q is not a directory, want that of a CUDA installation, or unset it", name, dir))
		}
		return CudaHome{dir, "environment " + name}
	}
	return CudaHome{}
}
