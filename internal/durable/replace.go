package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ReplaceDir renames the directory temp to target and flushes their common parent. When target
// exists, the two change places in one step where the system can do that; elsewhere the old one is
// moved to a temporary name first, and a kill between the two moves leaves both under temporary
// names. The old directory is removed at the end.
func ReplaceDir(temp, target string) error {
	parent := filepath.Dir(target)
	old := temp
	_, err := os.Lstat(target)
	switch {
	case errors.Is(err, os.ErrNotExist):
		old = ""
		err = os.Rename(temp, target)
	case err == nil:
		var swapped bool
		if swapped, err = exchange(temp, target); !swapped {
			old, err = replaceInTwo(temp, target)
		}
	}
	if err != nil {
		return fmt.Errorf("rename %s to %s: %w", temp, target, Explain(err))
	}
	if err := SyncDir(parent); err != nil {
		return err
	}
	if old == "" {
		return nil
	}
	if err := os.RemoveAll(old); err != nil {
		return fmt.Errorf("remove the replaced %s: %w", old, Explain(err))
	}
	return nil
}

func replaceInTwo(temp, target string) (old string, err error) {
	old = TempName(target)
	if err := os.Rename(target, old); err != nil {
		return "", err
	}
	if err := os.Rename(temp, target); err != nil {
		return "", errors.Join(err, os.Rename(old, target))
	}
	return old, nil
}
