package policyfile_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/goldentest"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// schema is what the page says of a key.
type schema struct {
	Ref         string `yaml:"$ref"`
	Description string
	Examples    []any
	Default     any
	Minimum     any
	Above       any `yaml:"exclusiveMinimum"`
	Maximum     any
	Properties  yaml.Node
	Items       *schema
	Additional  yaml.Node `yaml:"additionalProperties"`
	OneOf       []schema  `yaml:"oneOf"`
	AnyOf       []schema  `yaml:"anyOf"`
}

// keys calls use with each key below a schema, in the order of the file.
func (s schema) keys(t *testing.T, defs map[string]schema, path string, use func(path string, key schema)) {
	for i := 0; i+1 < len(s.Properties.Content); i += 2 {
		var key schema
		require.NoError(t, s.Properties.Content[i+1].Decode(&key))
		name := path + s.Properties.Content[i].Value
		use(name, key)
		key.keys(t, defs, name+".", use)
	}
	for _, one := range s.OneOf {
		one.keys(t, defs, path, use)
	}
	if s.Items != nil {
		defs[strings.TrimPrefix(s.Items.Ref, "#/$defs/")].keys(t, defs, path, use)
	}
	if s.Additional.Kind == yaml.MappingNode {
		var each schema
		require.NoError(t, s.Additional.Decode(&each))
		each.keys(t, defs, path+"OP.", use)
	}
}

// values describes what a key may be.
func (s schema) values(defs map[string]schema) string {
	switch {
	case s.Above != nil:
		return fmt.Sprintf("above %v, up to %v", s.Above, s.Maximum)
	case s.Minimum != nil:
		return fmt.Sprintf("%v to %v", s.Minimum, s.Maximum)
	}
	var all []string
	for _, example := range s.Examples {
		all = append(all, fmt.Sprintf("`%v`", example))
	}
	if len(all) == 0 && s.Ref != "" {
		return defs[strings.TrimPrefix(s.Ref, "#/$defs/")].values(defs)
	}
	for _, one := range append(s.OneOf, s.AnyOf...) {
		if text := one.values(defs); text != "" && len(one.Properties.Content) == 0 {
			all = append(all, text)
		}
	}
	return strings.Join(all, ", ")
}

func TestPageListsKeys(t *testing.T) {
	t.Parallel()
	var root struct {
		schema `yaml:",inline"`
		Defs   map[string]schema `yaml:"$defs"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(policyfile.Schema()), &root))
	var page strings.Builder
	page.WriteString("| key | meaning | values | default |\n|---|---|---|---|\n")
	root.keys(t, root.Defs, "", func(path string, key schema) {
		value := ""
		if key.Default != nil {
			value = fmt.Sprintf("`%v`", key.Default)
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n", path, strings.TrimSuffix(key.Description, "."), key.values(root.Defs), value)
	})
	goldentest.Section(t, filepath.Join("..", "..", "docs", "reference", "policy-file.md"), "go test ./opmanager/policyfile -run TestPageListsKeys -update", page.String())
}

// The defaults of the schema are those of a policy.
func TestSchemaHasTheDefaults(t *testing.T) {
	t.Parallel()
	var root struct {
		Properties map[string]schema
	}
	require.NoError(t, yaml.Unmarshal([]byte(policyfile.Schema()), &root))
	p := oppolicy.Default()
	for key, want := range map[string]any{
		"prefer": p.Prefer, "strict": p.Strict, "deterministic": p.Deterministic,
		"protect_in_place": p.ProtectInPlace, "cross_device": p.CrossDevice,
	} {
		assert.Equal(t, fmt.Sprint(want), fmt.Sprint(root.Properties[key].Default), key)
	}
}
