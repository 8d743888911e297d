package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

const (
	manifestName    = "checkpoint.json"
	manifestFormat  = "primus-checkpoint"
	manifestVersion = 1
	maxManifest     = 1 << 20
)

// fileName is what a checkpoint may call its files: one plain path element.
var fileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// manifest is the content of checkpoint.json. Its text is the one that encode
// makes, byte for byte, so that any change of it is found.
type manifest struct {
	Format   string         `json:"format"`
	Version  int            `json:"version"`
	Step     int64          `json:"step"`
	Sequence uint64         `json:"sequence"`
	Files    []manifestFile `json:"files"`
	Checksum string         `json:"checksum"` // of this text with an empty checksum
}

type manifestFile struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	CRC32C string `json:"crc32c"`
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func hex32(v uint32) string { return fmt.Sprintf("%08x", v) }

func (m manifest) encode() ([]byte, error) {
	m.Checksum = ""
	open, err := m.text()
	if err != nil {
		return nil, err
	}
	m.Checksum = hex32(crc32.Checksum(open, castagnoli()))
	return m.text()
}

func (m manifest) text() ([]byte, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("checkpoint: encode %s: %w", manifestName, err)
	}
	return append(text, '\n'), nil
}

// readManifest reads the manifest of the checkpoint in dir and checks that it is
// intact; the files it lists are not looked at.
func readManifest(dir string) (manifest, error) {
	var m manifest
	corrupt := func(got, want string) (manifest, error) {
		return manifest{}, &CorruptError{Path: dir, File: manifestName, Got: got, Want: want}
	}
	path := filepath.Join(dir, manifestName)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return corrupt("no such file", "the manifest of a complete checkpoint")
	case err != nil:
		return m, fmt.Errorf("checkpoint: %w", err)
	case !info.Mode().IsRegular() || info.Size() > maxManifest:
		return corrupt(fmt.Sprintf("%v of %d bytes", info.Mode(), info.Size()), fmt.Sprintf("a regular file of at most %d bytes", maxManifest))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return m, fmt.Errorf("checkpoint: %w", err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return corrupt("text that is not JSON: "+err.Error(), "a manifest")
	}
	if m.Format != manifestFormat {
		return corrupt(fmt.Sprintf("format %q", m.Format), manifestFormat)
	}
	if m.Version != manifestVersion {
		return m, fmt.Errorf("checkpoint: %s: got version %d, want %d: it was written by another version of this program", path, m.Version, manifestVersion)
	}
	again, err := m.encode()
	if err != nil {
		return m, err
	}
	if !bytes.Equal(text, again) {
		return corrupt("a text that does not match its own checksum", "an unchanged manifest")
	}
	for _, f := range m.Files {
		if !fileName.MatchString(f.Name) {
			return corrupt(fmt.Sprintf("the file name %q", f.Name), "a plain file name")
		}
	}
	return m, nil
}
