package policyfile

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/opmanager"
)

// Layer is a policy layer that was read from a document, with what that says about plugins.
type Layer struct {
	opmanager.PolicyLayer
	plugins Plugins
}

// Read reads and parses a policy file. It ends with ctx.
func Read(ctx context.Context, file string) (*Layer, error) {
	data, err := readFile(file)
	if err != nil {
		return nil, err
	}
	return Parse(ctx, file, data)
}

// readFile returns the content of a regular file.
func readFile(file string) ([]byte, error) {
	data, err := document.ReadFile(file)
	if fault, ok := errors.AsType[*document.Error](err); ok {
		return nil, fmt.Errorf("policy: %w", fault)
	}
	if err != nil {
		return nil, readError(file, err)
	}
	return data, nil
}

// readError says which file was looked for, with its directory if the name is relative.
func readError(file string, err error) error {
	tried := ""
	if path, absErr := filepath.Abs(file); absErr == nil && path != file {
		tried = fmt.Sprintf(" (tried %s)", path)
	}
	return fmt.Errorf("policy: read policy file: %w%s; want a YAML file, whose format `primus policy schema` prints", err, tried)
}
