//go:build linux

package main

import (
	"fmt"
	"os"

	"github.com/primus-fl/primus/cmd/primus/command"
	"go.uber.org/fx"
)

// roleVariable makes this program play a role instead of attacking.
const roleVariable = "CHAOS_ROLE"

const (
	// rolePrimus is primus with the vendor chaos.
	rolePrimus = "primus"
	// roleSmallDisk is primus with a workspace on its own small disk.
	roleSmallDisk = "small disk"
	// roleHostile is a thousand hostile clients of a service.
	roleHostile = "hostile clients"
	// roleObserved is primus whose system calls the attacker decides.
	roleObserved = "observed"
	// roleMember is a run of a fleet.
	roleMember = "member of a fleet"
)

// play plays a role and returns the exit code.
func play(role string, args []string) int {
	switch role {
	case rolePrimus:
		return primus(args)
	case roleSmallDisk:
		return onSmallDisk(args)
	case roleObserved:
		return beObserved(args)
	case roleHostile:
		return beHostile(args)
	case roleMember:
		return beMember(args)
	default:
		fmt.Fprintf(os.Stderr, "chaos: no role %q\n", role)
		return 2
	}
}

// primus runs a command line of primus.
func primus(args []string) int {
	source, err := newSource(os.Getenv(faultVariable))
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return 2
	}
	return command.Main(args, command.StandardStreams(), fx.Supply(fx.Annotate(source, fx.ResultTags(command.OpSources))))
}
