package devices

import (
	"io"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/device/opencl"
)

// Show writes the devices of a backend.
func Show(out io.Writer, b *opencl.Backend) error {
	return write(cli.Program{Streams: cli.Streams{Out: out}}, openCL(b))
}
