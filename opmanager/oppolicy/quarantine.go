package oppolicy

import (
	"cmp"
	"time"
)

// Quarantine says when an impl that fails calls of an op is no longer used for that op, and for how
// long. Declined calls and wrong arguments do not count as failures. When the time is over, one
// call tries the impl again. If it succeeds, the quarantine ends; if it fails, the next quarantine
// lasts twice as long.
type Quarantine struct {
	// Disabled lets impls fail any number of times.
	Disabled bool
	// Failures is the number of failures within Window that starts a quarantine; 0 means 3.
	Failures int
	// Window is the time within which failures are counted together; 0 means one minute.
	Window time.Duration
	// Backoff is the length of the first quarantine; 0 means 30 seconds. The length doubles up to
	// one hour, or stays at Backoff if that is longer.
	Backoff time.Duration
}

// WithDefaults returns the settings with the defaults in place of zeros.
func (q Quarantine) WithDefaults() Quarantine {
	q.Failures = cmp.Or(q.Failures, 3)
	q.Window = cmp.Or(q.Window, time.Minute)
	q.Backoff = cmp.Or(q.Backoff, 30*time.Second)
	return q
}
