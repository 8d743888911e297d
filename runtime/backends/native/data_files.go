package native

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/primus-fl/primus/internal/durable"
	datacorpus "github.com/primus-fl/primus/internal/native/data/corpus"
)

// dataFile describes the files that a run reads, so that another run can say which have changed.
const dataFile = "data.json"

// Limits of a dataFile, and of what is said of it.
const (
	mostFiles    = 10_000
	maxDataFile  = 64 << 20
	namedChanges = 5
)

// dataRecord is the content of a dataFile.
type dataRecord struct {
	Fingerprint string            `json:"fingerprint"`
	Files       []datacorpus.File `json:"files"` // none if there are more than mostFiles
}

// describeFiles keeps a description of the files of the run, which may change while they are read.
func (t *trainer) describeFiles(paths []string) (err error) {
	if t.world.Leads() && len(paths) <= mostFiles {
		t.record.Files, err = datacorpus.Describe(paths)
	}
	return err
}

// changedFiles says how the files of this run differ from those of the run in its directory, whose
// data had a fingerprint; "" if that is not known.
func (t *trainer) changedFiles(fingerprint string) string {
	content, err := durable.ReadRegular(t.dir.Path(dataFile), maxDataFile)
	var was dataRecord
	if err != nil || json.Unmarshal(content, &was) != nil || was.Fingerprint != fingerprint || was.Files == nil || t.record.Files == nil {
		return ""
	}
	changes := datacorpus.Changes(was.Files, t.record.Files)
	if len(changes) == 0 {
		return "; no file has changed by its size, its time and its blocks"
	}
	more := ""
	if n := len(changes) - namedChanges; n > 0 {
		changes, more = changes[:namedChanges], fmt.Sprintf(" and %d more", n)
	}
	return "; of its files " + strings.Join(changes, ", ") + more
}

// left reports records that were left out.
func (t *trainer) left(bad datacorpus.Bad) {
	if text := bad.String(); text != "" {
		t.tc.Log.Warn(text)
		t.result.BadRecords += bad.Records
	}
}
