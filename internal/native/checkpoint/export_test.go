package checkpoint

import (
	"os"
	"path/filepath"
)

// Rewrite changes the manifest of the checkpoint in dir, and leaves it intact.
func Rewrite(dir string, version int, run string, step int64) error {
	m, err := readManifest(dir)
	if err != nil {
		return err
	}
	m.Version, m.Run, m.Step = version, run, step
	text, err := m.encode()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, manifestName), text, 0o644)
}
