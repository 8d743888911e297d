package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"regexp"

	"github.com/primus-fl/primus/internal/durable"
)

const (
	manifestName    = "checkpoint.json"
	manifestFormat  = "primus-checkpoint"
	manifestVersion = 3
	maxManifest     = 1 << 20
)

// fileName matches the names of files in a checkpoint: plain path elements.
var fileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// manifest is the content of checkpoint.json. Its text is the one that encode
// makes, byte for byte, so that any change of it is found.
type manifest struct {
	Format   string         `json:"format"`
	Version  int            `json:"version"`
	Step     int64          `json:"step"`
	Sequence uint64         `json:"sequence"`
	Run      string         `json:"run,omitempty"` // the run that saved it; version 1 has none
	Files    []manifestFile `json:"files"`

	// Judgement and ValidLoss are in version 3 only.
	Judgement Judgement `json:"judgement,omitempty"`
	ValidLoss *float64  `json:"valid_loss,omitempty"`

	Checksum string `json:"checksum"` // of this text with an empty checksum
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

// readManifest reads the manifest of the checkpoint in dir and checks that it is intact; it does
// not read the files that are listed. The error is a *CorruptError, *UnreadableError or
// *VersionError.
func readManifest(dir string) (manifest, error) {
	text, err := durable.ReadRegular(filepath.Join(dir, manifestName), maxManifest)
	if err != nil {
		return manifest{}, unusable(dir, manifestName, "the manifest of a complete checkpoint", err)
	}
	return parseManifest(dir, text)
}

// parseManifest reads the text of the manifest of the checkpoint in dir.
func parseManifest(dir string, text []byte) (manifest, error) {
	var m manifest
	corrupt := func(got, want string) (manifest, error) {
		return manifest{}, &CorruptError{Path: dir, File: manifestName, Got: got, Want: want}
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return corrupt("text that is not JSON: "+err.Error(), "a manifest")
	}
	switch {
	case m.Format != manifestFormat:
		return corrupt(fmt.Sprintf("format %q", m.Format), manifestFormat)
	case m.Version > manifestVersion:
		return manifest{}, &VersionError{Path: dir, Got: m.Version, Want: manifestVersion}
	case m.Version < 1:
		return corrupt(fmt.Sprintf("version %d", m.Version), "a version of at least 1")
	}
	again, err := m.encode()
	if err != nil {
		return manifest{}, err
	}
	if !bytes.Equal(text, again) {
		return corrupt("a text that does not match its own checksum", "an unchanged manifest")
	}
	if m.Step < 0 {
		return corrupt(fmt.Sprintf("step %d", m.Step), "0 or more")
	}
	seen := map[string]bool{manifestName: true}
	for _, f := range m.Files {
		if !fileName.MatchString(f.Name) || seen[f.Name] || f.Size < 0 {
			return corrupt(fmt.Sprintf("the file %q of %d bytes", f.Name, f.Size), "plain file names, each once")
		}
		seen[f.Name] = true
	}
	return m, nil
}

// unusable returns the error for a file of the checkpoint in dir that cannot be opened. The
// checkpoint is damaged if the file is missing or not a regular file, and unreadable otherwise.
func unusable(dir, file, want string, err error) error {
	got := ""
	irregular, isIrregular := errors.AsType[*durable.IrregularError](err)
	long, isLong := errors.AsType[*durable.LengthError](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		got = "no such file"
	case isIrregular:
		got = irregular.Kind()
	case isLong:
		got = fmt.Sprintf("more than %d bytes", long.Limit)
	default:
		return &UnreadableError{Path: dir, Err: durable.Explain(err)}
	}
	return &CorruptError{Path: dir, File: file, Got: got, Want: want}
}
