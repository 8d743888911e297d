package fleet

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/opmanager"
)

// Identity is what does not change during a run.
type Identity struct {
	Experiment string `json:"experiment"`
	Backend    string `json:"backend"` // the training framework
	Rank       int    `json:"rank"`
	WorldSize  int    `json:"world_size"`
	Host       string `json:"host"`
	PID        int    `json:"pid"`
	// Metrics is the HOST:PORT that serves /metrics, "" for none, and MetricsTLS whether over TLS.
	Metrics    string    `json:"metrics,omitempty"`
	MetricsTLS bool      `json:"metrics_tls,omitempty"`
	Version    string    `json:"version"` // of primus
	Started    time.Time `json:"started"`
}

// Member is the record of a run.
type Member struct {
	ID string `json:"id"`
	Identity
	// Generation is the number of the dispatch table in force in this run. It also grows with
	// quarantines, so runs with the same policy may have different ones.
	Generation uint64 `json:"generation"`
	// Fingerprint is equal for policies that mean the same, Manifest for decisions that are the same.
	Fingerprint string `json:"policy_fingerprint"`
	Manifest    string `json:"manifest"`
	// Policy says what the run did with the policy of the fleet.
	Policy PolicyReport `json:"policy"`
	// Status is how the run gets on.
	Status Status `json:"status"`
}

// PolicyReport says what a run did with the policy of the fleet.
type PolicyReport struct {
	// Seen is the revision of the last policy that reached the run, and InForce that of the last
	// one that it could use; 0 for none.
	Seen    int64 `json:"seen"`
	InForce int64 `json:"in_force"`
	// Rejected says why the last one cannot be used, "" if it can.
	Rejected string `json:"rejected,omitempty"`
}

// newID returns a name for a run that no other has: experiment, rank and eight random digits.
func newID(i Identity) string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // documented never to fail
	return fmt.Sprintf("%s-%d-%s", plain(i.Experiment), i.Rank, hex.EncodeToString(random[:]))
}

// plain returns a name with underscores in place of characters that have a meaning in keys.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, name)
}

// manifestHash returns a short text that is equal for equal decisions.
func manifestHash(m opmanager.Manifest) string {
	sum := sha256.Sum256(encode(m.Ops))
	return hex.EncodeToString(sum[:8])
}

func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("BUG: fleet: a %T cannot be written as JSON: %v", v, err))
	}
	return text
}

// maxText bounds the texts in a record, because etcd limits its size.
const maxText = 4096

func shorten(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

// oneLine returns the faults of an error on one line.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// parseMember reads a record. Fields that it does not know are those of a later release.
func parseMember(key string, text []byte) (Member, error) {
	var m Member
	if err := decode(text, &m); err != nil {
		return m, fmt.Errorf("fleet: key %q: %w; want the record of a run", key, err)
	}
	if m.ID == "" || !strings.HasSuffix(key, "/"+m.ID) {
		return m, fmt.Errorf("fleet: key %q holds the record of %q, want the id that ends the key", key, m.ID)
	}
	return m, nil
}

// decode reads JSON from etcd, which anybody with access may have written. Its texts are printed in
// tables and logs, so characters that are not printable are escaped.
func decode(text []byte, v any) error {
	read := json.NewDecoder(bytes.NewReader(text))
	read.UseNumber()
	var all any
	if err := read.Decode(&all); err != nil {
		return err
	}
	if _, err := read.Token(); !errors.Is(err, io.EOF) {
		return errors.New("given more than one value, want one")
	}
	return json.Unmarshal(encode(makePrintable(all)), v)
}

// makePrintable returns a JSON value with its texts printable.
func makePrintable(v any) any {
	switch v := v.(type) {
	case string:
		return plaintext.Text(v)
	case []any:
		for i := range v {
			v[i] = makePrintable(v[i])
		}
	case map[string]any:
		clean := make(map[string]any, len(v))
		for key, value := range v {
			clean[plaintext.Text(key)] = makePrintable(value)
		}
		return clean
	}
	return v
}

func sortMembers(all []Member) {
	slices.SortFunc(all, func(a, b Member) int {
		return cmp.Or(strings.Compare(a.Experiment, b.Experiment), cmp.Compare(a.Rank, b.Rank), strings.Compare(a.ID, b.ID))
	})
}
