//go:build !linux

package preflight

import "errors"

func diskOf(string) (disk, error) { return disk{}, errors.ErrUnsupported }

func processLimits() []limit { return nil }

func clockSynchronised() (synchronised, known bool) { return false, false }
