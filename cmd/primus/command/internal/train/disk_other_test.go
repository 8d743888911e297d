//go:build !linux

package train_test

import (
	"os"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
)

// mounted plays roles that exist on Linux only.
func mounted(string, []string) int { return 2 }

// asNobody runs the experiment where the rights of the user hold.
func asNobody(l *commandtest.Lab) commandtest.Outcome {
	l.T.Helper()
	if os.Geteuid() <= 0 {
		l.T.Skip("the user may read and write every file")
	}
	return l.Train()
}
