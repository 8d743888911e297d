package command_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/cmd/primus/settings"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"go.uber.org/goleak"
)

// roleEnv makes a child process of the test binary play a role instead of running the tests.
const roleEnv = "PRIMUS_COMMAND_TEST_ROLE"

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleEnv); role {
	case "":
	case "primus":
		os.Exit(command.Main(os.Args[1:], command.StandardStreams()))
	default:
		os.Exit(mounted(role, os.Args[1:]))
	}
	if err := os.Setenv(settings.EnvFile, "none"); err != nil { // of the user who runs the tests
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// The libraries of vendors keep threads for the life of a process, so this one does without; children have them. Tests
	// wait for lines about ops, which the terminal shows at this level only.
	for variable, value := range map[string]string{"PRIMUS_OPENBLAS": absent, "PRIMUS_ONEDNN": absent, oppolicy.EnvLogLevel: "INFO"} {
		if err := os.Setenv(variable, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m)
}

// absent is a library that does not exist.
const absent = "/nonexistent/library.so"
