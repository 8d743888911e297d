package fleet

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/service"
	"github.com/primus-fl/primus/internal/fleet"
	"github.com/primus-fl/primus/internal/httpserver"
	"github.com/spf13/cobra"
)

func newFleetSDCommand(prog cli.Program) *cobra.Command {
	var opts service.FleetFlags
	var listen string
	cmd := &cobra.Command{
		Use:   "sd",
		Short: "Tell Prometheus where the runs of a fleet serve their metrics, until interrupted",
		Long: `Tell Prometheus where the runs of a fleet serve their metrics, until interrupted: GET
/v1/sd answers in the format of its HTTP service discovery (http_sd_configs). Runs
without --metrics-addr and --serve are left out.`,
		Example: `  primus fleet sd --fleet 10.0.0.1:2379 --listen 127.0.0.1:9401
  curl -s 127.0.0.1:9401/v1/sd`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, _, err := net.SplitHostPort(listen); err != nil {
				return cli.Usagef(cmd, "--listen: given %q, want %s", listen, cli.Wants(cmd.Flags().Lookup("listen")))
			}
			return opts.WithFleet(cmd, func(ctx context.Context, c *fleet.Client) error {
				return serveDiscovery(ctx, prog, listen, c)
			})
		},
	}
	opts.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:9401", "serve on `HOST:PORT`; port 0 takes a free one")
	return cmd
}

// serveDiscovery serves /v1/sd until ctx ends.
func serveDiscovery(ctx context.Context, prog cli.Program, addr string, c *fleet.Client) error {
	mux := http.NewServeMux()
	mux.Handle("GET /v1/sd", fleet.Discovery(c))
	server, err := httpserver.Start(addr, &http.Server{Handler: mux}, nil)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	fmt.Fprintf(prog.Err, "targets on http://%s/v1/sd\n", server.Addr())
	return server.Run(ctx)
}
