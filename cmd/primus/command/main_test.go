package command_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/cmd/primus/settings"
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
	// The libraries of vendors keep threads for the life of a process, so this one does without; children have them.
	for _, variable := range []string{"PRIMUS_OPENBLAS", "PRIMUS_ONEDNN"} {
		if err := os.Setenv(variable, absent); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m)
}

// absent is a library that does not exist.
const absent = "/nonexistent/library.so"
