package checkpoint

import (
	"bytes"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
)

// FuzzManifest gives texts to the reader of manifests. One that it accepts is the text of what it
// returns.
//
// Oracle: round trip.
func FuzzManifest(f *testing.F) {
	for _, m := range []manifest{
		{Format: manifestFormat, Version: 1, Step: 100, Sequence: 1, Files: []manifestFile{{"a.json", 3, "00000000"}}},
		{Format: manifestFormat, Version: 2, Step: 100, Sequence: 9, Run: "exp-1", Files: []manifestFile{{"a.json", 3, "00000000"}, {"b", 0, ""}}},
		{Format: manifestFormat, Version: 2, Step: -1},
		{Format: manifestFormat, Version: 2, Files: []manifestFile{{"../a", 3, ""}}},
		{Format: manifestFormat, Version: 2, Files: []manifestFile{{"a", 3, ""}, {"a", 3, ""}}},
		{Format: manifestFormat, Version: 2, Files: []manifestFile{{"a", -3, ""}}},
		{Format: manifestFormat, Version: 99},
		{Format: manifestFormat, Version: -1},
	} {
		text, err := m.encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		f.Add(text[:len(text)/2])
		f.Add(bytes.Replace(text, []byte("{"), []byte(`{"step": 7,`), 1))
	}
	f.Add([]byte("null"))
	f.Add([]byte(strings.Repeat("[", 20000)))
	f.Fuzz(func(t *testing.T, text []byte) {
		var m manifest
		var err error
		primustest.Cost(t, len(text), 1000, func() { m, err = parseManifest("dir", text) })
		if err != nil {
			return
		}
		again, err := m.encode()
		if err != nil || !bytes.Equal(text, again) {
			t.Fatalf("%q was read as %+v", text, m)
		}
		if m.Step < 0 || m.Version < 1 || m.Version > manifestVersion {
			t.Fatalf("accepted %+v", m)
		}
		for _, file := range m.Files {
			if strings.ContainsAny(file.Name, "/\\") || strings.HasPrefix(file.Name, ".") || file.Size < 0 {
				t.Fatalf("accepted the file %+v", file)
			}
		}
	})
}
