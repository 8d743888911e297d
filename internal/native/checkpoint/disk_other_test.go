//go:build !linux

package checkpoint_test

import "errors"

func fullDisk(string) error { return errors.ErrUnsupported }

func readOnly(string) error { return errors.ErrUnsupported }
