package models

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/primus-fl/primus/internal/durable"
)

// maxLine is the largest length of a line with a prompt.
const maxLine = 16 << 20

// read returns the prompts of the file; - is stdin. Empty lines are passed over.
func (o *generateOptions) read(stdin io.Reader) ([]generateRequest, error) {
	name, in := "standard input", stdin
	if o.prompts != "-" {
		name = o.prompts
		file, err := durable.OpenRegular(name)
		if err != nil {
			return nil, fmt.Errorf("--prompts: %w", err)
		}
		defer file.Close()
		in = file
	}
	var all []generateRequest
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for number := 1; lines.Scan(); number++ {
		text := lines.Bytes()
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		r := o.request(strings.TrimSuffix(string(text), "\r"))
		if filepath.Ext(o.prompts) == ".jsonl" || o.prompts == "-" && text[0] == '{' {
			var err error
			if r, err = o.parse(text); err != nil {
				return nil, fmt.Errorf("%s: line %d: %w", name, number, err)
			}
		}
		all = append(all, r)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("%s: a line of more than %d bytes", name, maxLine)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if all == nil {
		return nil, fmt.Errorf("%s: no prompts, want one per line", name)
	}
	return all, nil
}

// parse reads a line of JSON: a string, or an object with the prompt and its parameters.
func (o *generateOptions) parse(text []byte) (generateRequest, error) {
	r := o.request("")
	if text = bytes.TrimSpace(text); text[0] == '"' {
		return r, json.Unmarshal(text, &r.Prompt)
	}
	fields := struct {
		Prompt      *string  `json:"prompt"`
		MaxTokens   *int     `json:"max_tokens"`
		Temperature *float64 `json:"temperature"`
		TopK        *int     `json:"top_k"`
		TopP        *float64 `json:"top_p"`
		Seed        *uint64  `json:"seed"`
		Stop        []string `json:"stop"`
	}{Prompt: &r.Prompt, MaxTokens: &r.MaxTokens, Temperature: &r.Temperature, TopK: &r.TopK, TopP: &r.TopP, Seed: &r.Seed, Stop: r.Stop}
	if err := json.Unmarshal(text, &fields); err != nil {
		return r, fmt.Errorf(`want a string or an object with "prompt": %w`, err)
	}
	if fields.Prompt == nil || r.Prompt == "" {
		return r, errors.New(`want an object with a "prompt"`)
	}
	r.Stop = fields.Stop
	return r, r.Validate()
}
