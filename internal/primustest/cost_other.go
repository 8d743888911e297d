//go:build !unix

package primustest

import "time"

// cpuTime returns 0 on systems where the time that a process has used is not asked for.
func cpuTime() time.Duration { return 0 }
