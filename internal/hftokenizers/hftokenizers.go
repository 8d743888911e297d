// Package hftokenizers encodes texts with @huggingface/tokenizers, the package of npm, for tests
// and benchmarks that compare with it.
package hftokenizers

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

//go:embed encode.cjs
var script []byte

// ErrAbsent says that node or the package is not installed. scripts/install-test-deps.sh does it.
var ErrAbsent = errors.New("node or @huggingface/tokenizers is not installed: run scripts/install-test-deps.sh")

// Find returns the folder of the package, or ErrAbsent.
func Find() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "primus-fl", "npm", "node_modules", "@huggingface", "tokenizers")
	_, nodeErr := exec.LookPath("node")
	if _, err := os.Stat(dir); err != nil || nodeErr != nil {
		return "", ErrAbsent
	}
	return dir, nil
}

// Result is what the package made of texts.
type Result struct {
	IDs     [][]int32     // of each text, without what is put around prompts
	Decoded string        // checksum (SHA-256) of the decoded texts, each with a newline after it
	Took    time.Duration // spent encoding
	CPU     time.Duration // the CPU time of that
}

// Encode encodes texts with a tokenizer.json. Bytes that are no UTF-8 become U+FFFD.
func Encode(ctx context.Context, tokenizer string, texts [][]byte) (*Result, error) {
	dir, err := Find()
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "hftokenizers-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(work) }() // it has nothing that is read again
	var in []byte
	for _, text := range texts {
		in = binary.LittleEndian.AppendUint32(in, uint32(len(text)))
		in = append(in, text...)
	}
	program, given, ids := filepath.Join(work, "encode.cjs"), filepath.Join(work, "texts"), filepath.Join(work, "ids")
	if err := errors.Join(os.WriteFile(program, script, 0o600), os.WriteFile(given, in, 0o600)); err != nil {
		return nil, err
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "node", "--stack-size=30000", program, dir, tokenizer, given, ids)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("hftokenizers: %w: %s", err, stderr.Bytes())
	}
	var printed struct {
		Seconds float64 `json:"seconds"`
		CPU     float64 `json:"cpu"`
		Decoded string  `json:"decoded"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &printed); err != nil {
		return nil, fmt.Errorf("hftokenizers: %w in %q", err, stdout.Bytes())
	}
	r := &Result{Decoded: printed.Decoded, Took: time.Duration(printed.Seconds * float64(time.Second)), CPU: time.Duration(printed.CPU * float64(time.Second))}
	out, err := os.ReadFile(ids)
	if err != nil {
		return nil, err
	}
	for len(out) > 0 {
		text := make([]int32, binary.LittleEndian.Uint32(out))
		out = out[4:]
		for i := range text {
			text[i] = int32(binary.LittleEndian.Uint32(out[4*i:]))
		}
		out = out[4*len(text):]
		r.IDs = append(r.IDs, text)
	}
	return r, nil
}
