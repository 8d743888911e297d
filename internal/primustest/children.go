package primustest

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/primus-fl/primus/internal/procgroup"
)

// childrenVariable marks the processes that a test has started, and those that these have started.
const childrenVariable = "GO_TEST_CHILDREN"

// EndChildren has the processes that this one starts from now on ended with it, and all that these
// start. A test that is killed, as by the limit of go test, cannot end them itself. It does nothing
// where there are no process groups.
func EndChildren() { endChildren() }

// endChildren returns the guard of the processes, which is kept: it would take the end of its pipe,
// as when it is collected, for that of this process.
var endChildren = sync.OnceValue(func() *procgroup.Guard {
	value := fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixNano())
	// The guard is started first, so that it has no mark itself.
	guard, err := procgroup.StartGuard(childrenVariable + "=" + value)
	if err != nil {
		return nil
	}
	if err := os.Setenv(childrenVariable, value); err != nil {
		panic(err) // the name is a constant
	}
	return guard
})
