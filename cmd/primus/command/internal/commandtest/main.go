package commandtest

import (
	"fmt"
	"os"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/settings"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"go.uber.org/goleak"
)

// RoleEnv makes a child process of the test binary play a role instead of running the tests.
const RoleEnv = "PRIMUS_COMMAND_TEST_ROLE"

// Main runs the tests of a package, or plays the role of a child: that of primus, or one of others,
// which may be nil.
func Main(m *testing.M, others func(role string, args []string) int) {
	switch role := os.Getenv(RoleEnv); role {
	case "":
	case "primus":
		os.Exit(command.Main(os.Args[1:], command.StandardStreams()))
	default:
		os.Exit(others(role, os.Args[1:]))
	}
	primustest.EndChildren()
	if err := os.Setenv(settings.EnvFile, "none"); err != nil { // of the user who runs the tests
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// The libraries of vendors keep threads for the life of a process, so this one does without;
	// children have them. Tests wait for lines about ops, which the terminal shows at this level only.
	for variable, value := range map[string]string{"PRIMUS_OPENBLAS": Absent, "PRIMUS_ONEDNN": Absent, "PRIMUS_OPENCL": Absent, oppolicy.EnvLogLevel: "INFO"} {
		if err := os.Setenv(variable, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m)
}

// Absent is a library that does not exist.
const Absent = "/nonexistent/library.so"
