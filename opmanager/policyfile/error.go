package policyfile

import "fmt"

// Error is one fault of a policy document.
type Error struct {
	Place   Place
	Key     string // "per_op.rmsnorm_fwd", "" for the document
	Problem string
}

// Error returns "policy: FILE:LINE:COLUMN: KEY: PROBLEM".
func (e *Error) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("policy: %s: %s", e.Place, e.Problem)
	}
	return fmt.Sprintf("policy: %s: %s: %s", e.Place, e.Key, e.Problem)
}

var _ error = (*Error)(nil)
