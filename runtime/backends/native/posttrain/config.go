package posttrain

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/primus-fl/primus/runtime/tokenizer"
	"github.com/primus-fl/primus/runtime/tokenizer/chat"
)

// Tuning are the parameters of fine-tuning.
type Tuning struct {
	ChatTemplate string  `param:"chat_template"` // a name of package chat or a file; "" is that of the tokenizer, else chatml
	Packing      bool    `param:"packing"`       // several examples per sequence
	PromptKey    string  `param:"prompt_key"`    // "" means prompt
	ResponseKey  string  `param:"response_key"`  // "" means response, completion or answer
	DPOBeta      float64 `param:"dpo_beta"`      // of the stage dpo
}

// Validate returns every fault of the configuration.
func (c Tuning) Validate() error {
	var faults []error
	if !(c.DPOBeta >= 0 && c.DPOBeta <= 1e6) {
		faults = append(faults, fmt.Errorf("dpo_beta: got %v, want a number >= 0", c.DPOBeta))
	}
	if (c.PromptKey == "") != (c.ResponseKey == "") {
		faults = append(faults, fmt.Errorf("prompt_key: got %q with response_key %q, want both or none", c.PromptKey, c.ResponseKey))
	}
	return errors.Join(faults...)
}

// defaultTemplate is the chat template of tokenizers without one.
const defaultTemplate = "chatml"

// maxTemplate bounds the size of the file of a chat template.
const maxTemplate = 1 << 20

// template returns the chat template for a tokenizer, with its source.
func (c Tuning) template(t tokenizer.Tokenizer) (template *chat.Template, source string, err error) {
	if f, ok := t.(*tokenizer.File); ok {
		source = f.ChatTemplate()
	}
	switch {
	case strings.ContainsAny(c.ChatTemplate, `./\`):
		info, err := os.Stat(c.ChatTemplate)
		if err != nil {
			return nil, "", fmt.Errorf("chat_template: %w", err)
		}
		if !info.Mode().IsRegular() || info.Size() > maxTemplate {
			return nil, "", fmt.Errorf("chat_template: %s: want a file of at most %d bytes", c.ChatTemplate, maxTemplate)
		}
		text, err := os.ReadFile(c.ChatTemplate)
		if err != nil {
			return nil, "", fmt.Errorf("chat_template: %w", err)
		}
		source = string(text)
	case c.ChatTemplate != "" || source == "":
		name := c.ChatTemplate
		if name == "" {
			name = defaultTemplate
		}
		if source, err = chat.Named(name); err != nil {
			return nil, "", fmt.Errorf("chat_template: got %q, want the name of a template or of a file: %w", name, err)
		}
	}
	if template, err = chat.Parse(source); err != nil {
		return nil, "", fmt.Errorf("chat_template: %w", err)
	}
	return template, source, nil
}
