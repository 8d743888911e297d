package service

import (
	"context"
	"errors"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/fleet"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FleetFlags are the flags that say which fleet is meant.
type FleetFlags struct{ endpoints, prefix, ca, cert, key string }

// AddFlags gives a command the flags of a fleet.
func (o *FleetFlags) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.endpoints, "fleet", "", "etcd of the fleet: `HOST:PORT` or https://HOST:PORT, several separated by commas")
	flags.StringVar(&o.prefix, "fleet-prefix", "", "`PREFIX` of the keys of the fleet (default "+fleet.DefaultPrefix+")")
	flags.StringVar(&o.ca, "fleet-ca", "", "check etcd by the certificates in `FILE`")
	flags.StringVar(&o.cert, "fleet-cert", "", "show etcd the certificate in `FILE`")
	flags.StringVar(&o.key, "fleet-key", "", "`FILE` with the key of --fleet-cert")
}

// config returns what the flags say.
func (o *FleetFlags) config() fleet.Config {
	c := fleet.Config{Prefix: o.prefix, CA: o.ca, Cert: o.cert, Key: o.key}
	if o.endpoints != "" {
		for e := range strings.SplitSeq(o.endpoints, ",") {
			c.Endpoints = append(c.Endpoints, strings.TrimSpace(e))
		}
	}
	return c
}

// Check returns the mistakes in the flags of a command that may do without a fleet.
func (o *FleetFlags) Check(cmd *cobra.Command) error {
	if o.endpoints != "" {
		if err := o.config().Validate(); err != nil {
			return cli.UsageError{Err: err}
		}
		return nil
	}
	for _, name := range []string{"fleet-prefix", "fleet-ca", "fleet-cert", "fleet-key"} {
		if cmd.Flags().Changed(name) {
			return cli.Usagef(cmd, "--%s without --fleet: want %s there", name, cli.Wants(cmd.Flags().Lookup("fleet")))
		}
	}
	return nil
}

// WithFleet runs f with a client of the fleet that flags and environment name.
func (o *FleetFlags) WithFleet(cmd *cobra.Command, f func(context.Context, *fleet.Client) error) (err error) {
	if err := o.Check(cmd); err != nil {
		return err
	}
	if o.endpoints == "" {
		return cli.Usagef(cmd, "no fleet given: set --fleet or PRIMUS_FLEET to %s", cli.Wants(cmd.Flags().Lookup("fleet")))
	}
	client, err := fleet.Open(o.config())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	return f(cmd.Context(), client)
}
