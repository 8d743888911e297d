//go:build !unix

package procgroup

import "errors"

// Guard is the leader of a group.
type Guard struct{}

// StartGuard fails: there are no process groups.
func StartGuard(string) (*Guard, error) { return nil, errors.ErrUnsupported }

// Leader returns 0.
func (*Guard) Leader() int { return 0 }

// End does nothing.
func (*Guard) End() {}
