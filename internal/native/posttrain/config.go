package posttrain

import (
	"errors"
	"fmt"

	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/internal/tokenizer/chat"
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
		faults = append(faults, fmt.Errorf("dpo_beta: given %v, want a number >= 0", c.DPOBeta))
	}
	if (c.PromptKey == "") != (c.ResponseKey == "") {
		faults = append(faults, fmt.Errorf("prompt_key: given %q with response_key %q, want both or none", c.PromptKey, c.ResponseKey))
	}
	return errors.Join(faults...)
}

// defaultTemplate is the chat template of tokenizers without one.
const defaultTemplate = "chatml"

// template returns the chat template for a tokenizer, with its source.
func (c Tuning) template(t tokenizer.Tokenizer) (template *chat.Template, source string, err error) {
	if f, ok := t.(*tokenizer.File); ok {
		source = f.ChatTemplate()
	}
	if name := c.ChatTemplate; name != "" || source == "" {
		if name == "" {
			name = defaultTemplate
		}
		if source, err = chat.Source(name); err != nil {
			return nil, "", fmt.Errorf("chat_template: %w", err)
		}
	}
	if template, err = chat.Parse(source); err != nil {
		return nil, "", fmt.Errorf("chat_template: %w", err)
	}
	return template, source, nil
}
