package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/primus-fl/primus/fleet"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newFleetCommand(prog program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Look at all runs of a fleet, and change the policy of all of them",
		Long: `Look at all runs of a fleet, and change the policy of all of them.

A fleet is what trains with the same --fleet and --fleet-prefix: endpoints of etcd,
and the prefix of the keys there. Both may be given as PRIMUS_FLEET and
PRIMUS_FLEET_PREFIX, and so may --fleet-ca, --fleet-cert and --fleet-key.`,
		Args: subcommandOnly,
		RunE: showHelp,
	}
	cmd.AddCommand(newFleetListCommand(prog), newFleetExplainCommand(prog), newFleetPolicyCommand(prog),
		newFleetWatchCommand(prog), newFleetSDCommand(prog))
	return cmd
}

// fleetOptions are the flags that say which fleet is meant.
type fleetOptions struct{ endpoints, prefix, ca, cert, key string }

// addFlags gives a command the flags of a fleet.
func (o *fleetOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.endpoints, "fleet", "", "etcd of the fleet: `HOST:PORT` or https://HOST:PORT, several with commas")
	flags.StringVar(&o.prefix, "fleet-prefix", "", "`PREFIX` of the keys of the fleet (default "+fleet.DefaultPrefix+")")
	flags.StringVar(&o.ca, "fleet-ca", "", "check etcd by the certificates in `FILE`")
	flags.StringVar(&o.cert, "fleet-cert", "", "show etcd the certificate in `FILE`")
	flags.StringVar(&o.key, "fleet-key", "", "`FILE` with the key of --fleet-cert")
}

// config returns what the flags say.
func (o *fleetOptions) config() fleet.Config {
	c := fleet.Config{Prefix: o.prefix, CA: o.ca, Cert: o.cert, Key: o.key}
	if o.endpoints != "" {
		for e := range strings.SplitSeq(o.endpoints, ",") {
			c.Endpoints = append(c.Endpoints, strings.TrimSpace(e))
		}
	}
	return c
}

// check returns the mistakes in the flags of a command that may do without a fleet.
func (o *fleetOptions) check(cmd *cobra.Command) error {
	if o.endpoints != "" {
		if err := o.config().Validate(); err != nil {
			return usageError{err}
		}
		return nil
	}
	for _, name := range []string{"fleet-prefix", "fleet-ca", "fleet-cert", "fleet-key"} {
		if cmd.Flags().Changed(name) {
			return usagef(cmd, "--%s without --fleet: want %s there", name, wants(cmd.Flags().Lookup("fleet")))
		}
	}
	return nil
}

// withFleet runs f with a client of the fleet that flags and environment name.
func (o *fleetOptions) withFleet(cmd *cobra.Command, f func(context.Context, *fleet.Client) error) (err error) {
	if err := o.check(cmd); err != nil {
		return err
	}
	if o.endpoints == "" {
		return usagef(cmd, "no fleet given: set --fleet or PRIMUS_FLEET to %s", wants(cmd.Flags().Lookup("fleet")))
	}
	client, err := fleet.Open(o.config())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	return f(cmd.Context(), client)
}

// countRuns returns a number of runs in words.
func countRuns(n int) string {
	if n == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", n)
}
