package patch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// vectors are what the engine of Primus was seen to do. Fields that a file lacks are zero.
type vectors struct {
	VersionInRange [][3]any    `json:"version_in_range"`
	ParseSemver    [][2]any    `json:"parse_semver"`
	PatchesEnv     [][2]any    `json:"primus_patches_env"`
	Scenarios      []scenario  `json:"scenarios"`
	GetParam       [][3]any    `json:"get_param"`
	MergeXLAFlags  [][3]string `json:"merge_xla_flags"`
}

type scenario struct {
	Registrations []struct {
		ID, Backend, Phase, Description, Fail string
		Cond                                  any
		Priority                              *int
		BackendVersions                       []string `json:"backend_versions"`
		PrimusVersions                        []string `json:"primus_versions"`
	}
	Call struct {
		Backend, Phase string
		BackendVersion string    `json:"backend_version"`
		PrimusVersion  string    `json:"primus_version"`
		ModelName      string    `json:"model_name"`
		ModuleName     string    `json:"module_name"`
		Platform       string    `json:"platform"`
		EnabledIDs     *[]string `json:"enabled_ids"`
		DryRun         bool      `json:"dry_run"`
		StopOnError    bool      `json:"stop_on_error"`
	}
	Ran      []string
	Returned *int
	Raised   *string
	Log      [][2]string
}

func load(t *testing.T) vectors {
	t.Helper()
	shared := os.Getenv("PRIMUS_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "..", "shared")
	}
	text, err := os.ReadFile(filepath.Join(shared, "fixtures", "primus-patches", "engine_vectors.json"))
	if err != nil {
		t.Skipf("recorded vectors are not here (set PRIMUS_SHARED): %v", err)
	}
	var v vectors
	require.NoError(t, json.Unmarshal(text, &v))
	return v
}

func TestVectorsOfVersions(t *testing.T) {
	v := load(t)
	for _, c := range v.VersionInRange {
		version, pattern := c[0].(string), c[1].(string)
		got, err := patch.MatchVersion(version, pattern)
		require.NoError(t, err)
		assert.Equal(t, c[2], got, "%q fits %q", version, pattern)
	}
	for _, c := range v.ParseSemver {
		got, ok := patch.ParseVersion(c[0].(string))
		parts, readable := c[1].([]any)
		require.Equal(t, readable, ok, c[0])
		for i, part := range parts {
			assert.Equal(t, fmt.Sprint(part), got[i], c[0])
		}
		assert.Len(t, got, len(parts))
	}
}

func TestVectorsOfFilters(t *testing.T) {
	for _, c := range load(t).PatchesEnv {
		got, given := patch.ParseFilter(c[0].(string)).IDs()
		want, listed := c[1].([]any)
		require.Equal(t, listed, given, "%q", c[0])
		assert.Len(t, got, len(want))
		for i := range want {
			assert.Equal(t, want[i], got[i], "%q", c[0])
		}
	}
}

func TestVectorsOfParams(t *testing.T) {
	params := mapping(t, map[string]any{"a": map[string]any{"b": 1, "none": nil}})
	for _, c := range load(t).GetParam {
		var got any
		v, ok := (&patch.Context{Params: params}).Value(c[0].(string))
		if got = c[1]; ok {
			got = v.Any()
		}
		assert.EqualValues(t, c[2], got, c[0])
	}
}

func TestVectorsOfFlags(t *testing.T) {
	for _, c := range load(t).MergeXLAFlags {
		assert.Equal(t, c[2], backend.MergeFlags(c[0], c[1]))
	}
}

func TestVectorsOfRuns(t *testing.T) {
	for i, s := range load(t).Scenarios {
		t.Run(fmt.Sprint(i), func(t *testing.T) { s.check(t) })
	}
}

func (s scenario) check(t *testing.T) {
	var patches []patch.Patch
	var ran []string
	ids := map[string]bool{}
	duplicate := false
	for _, r := range s.Registrations {
		p := patch.Patch{
			ID: r.ID, Description: r.Description, Backend: r.Backend, Phase: patch.Phase(r.Phase),
			BackendVersions: r.BackendVersions, PrimusVersions: r.PrimusVersions,
			Apply: func(*patch.Context) error {
				ran = append(ran, r.ID)
				switch r.Fail {
				case "":
					return nil
				case "ImportError":
					return missing("no module")
				}
				return errors.New(r.Fail)
			},
		}
		if r.Priority != nil {
			p.Priority = patch.At(*r.Priority)
		}
		switch cond := r.Cond.(type) {
		case bool:
			p.Condition.Holds = func(*patch.Context) (bool, error) { return cond, nil }
		case string:
			p.Condition.Holds = func(*patch.Context) (bool, error) { return false, errors.New(cond) }
		}
		duplicate = duplicate || ids[r.ID]
		ids[r.ID] = true
		patches = append(patches, p)
	}
	set, err := patch.NewSet(patches...)
	if duplicate { // Primus lets the last one win; here it is an error
		var d *patch.DuplicateError
		require.ErrorAs(t, err, &d)
		return
	}
	require.NoError(t, err)
	log := &lines{}
	c := &patch.Context{
		Backend: s.Call.Backend, Phase: patch.Phase(s.Call.Phase), BackendVersion: s.Call.BackendVersion,
		PrimusVersion: s.Call.PrimusVersion, ModelName: s.Call.ModelName, ModuleName: s.Call.ModuleName,
		Platform: s.Call.Platform, Log: slog.New(log),
	}
	o := patch.Options{DryRun: s.Call.DryRun, StopOnError: s.Call.StopOnError}
	if s.Call.EnabledIDs != nil {
		o.Filter = patch.Only(*s.Call.EnabledIDs...)
	}
	report, err := set.Run(c, o)
	assert.Equal(t, s.Raised != nil, err != nil, "%v", err)
	if s.Returned != nil {
		assert.Len(t, report.Applied, *s.Returned)
	}
	assert.Equal(t, strings.Join(s.Ran, " "), strings.Join(ran, " "))
	assert.Equal(t, s.Log, log.all)
}

// missing is an error for something that is not there, with no other text.
type missing string

func (m missing) Error() string { return string(m) }

func (missing) Is(target error) bool { return target == patch.ErrMissing }

// lines is a slog.Handler that keeps level and message as Primus names levels.
type lines struct{ all [][2]string }

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *lines) WithGroup(string) slog.Handler            { return l }

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.all = append(l.all, [2]string{strings.ToLower(r.Level.String()), r.Message})
	return nil
}

// with returns the messages of a level.
func (l *lines) with(level string) []string {
	var found []string
	for _, line := range l.all {
		if line[0] == level {
			found = append(found, line[1])
		}
	}
	return found
}

// has reports whether a message of a level contains every one of the texts.
func (l *lines) has(level string, texts ...string) bool {
	return slices.ContainsFunc(l.with(level), func(line string) bool {
		for _, text := range texts {
			if !strings.Contains(line, text) {
				return false
			}
		}
		return true
	})
}

func mapping(t *testing.T, data map[string]any) *document.Map {
	t.Helper()
	v, err := document.FromGo(data)
	require.NoError(t, err)
	m, _ := v.Map()
	return m
}
