package document_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/internal/recordtest"
)

func loadText(text string, env map[string]string) (document.Value, error) {
	root, _, err := formats.All().Parse(context.Background(), "x.yaml", []byte(text))
	if err != nil {
		return document.Value{}, err
	}
	root, _, err = document.Substitute(root, recordtest.Environment(env))
	return root, err
}

func TestRecordedYAMLScalars(t *testing.T) {
	t.Parallel()
	for _, c := range recordtest.Cases(t, "yaml_scalars.jsonl") {
		t.Run(c.Doc, func(t *testing.T) {
			t.Parallel()
			root, err := loadText(c.Doc, nil)
			require.NoError(t, err)
			m, ok := root.Map()
			require.True(t, ok)
			got, _ := m.Get("a")
			assert.NoError(t, recordtest.Mismatch(c.Result, got, "a"))
		})
	}
}

func TestRecordedYAMLDocuments(t *testing.T) {
	t.Parallel()
	for _, c := range recordtest.Cases(t, "yaml_docs.jsonl") {
		t.Run(c.Doc, func(t *testing.T) {
			t.Parallel()
			root, err := loadText(c.Doc, c.Env)
			if recordtest.Deviates(t, "yaml_docs.jsonl", c.Doc, err) {
				return
			}
			if c.Error != "" {
				require.ErrorContains(t, err, "x.yaml:")
				return
			}
			require.NoError(t, err)
			assert.NoError(t, recordtest.Mismatch(c.Result, root, ""))
		})
	}
}

func TestRecordedSubstitutions(t *testing.T) {
	t.Parallel()
	for _, c := range recordtest.Cases(t, "env_scalars.jsonl") {
		t.Run(c.Text, func(t *testing.T) {
			t.Parallel()
			got, _, err := document.Substitute(document.StringValue(c.Text), recordtest.Environment(c.Env))
			if c.Error != "" {
				require.ErrorIs(t, err, document.ErrUnsetVariable)
				return
			}
			require.NoError(t, err)
			assert.NoError(t, recordtest.Mismatch(c.Result, got, ""))
		})
	}
}

func TestRecordedOverrides(t *testing.T) {
	t.Parallel()
	const name = "overrides_modern.jsonl"
	for _, c := range recordtest.Cases(t, name) {
		id := strings.Join(c.Tokens, " ")
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			got, _, err := document.ParseOverrides(c.Tokens)
			if recordtest.Deviates(t, name, id, err) {
				return
			}
			if c.Error != "" {
				require.ErrorIs(t, err, document.ErrUsage)
				return
			}
			require.NoError(t, err)
			assert.NoError(t, recordtest.Mismatch(c.Result, document.MapValue(got), ""))
		})
	}
}
