package tokenizer

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/durable"
)

// maxFile is the size up to which files are read. The largest in use have 40 MB.
const maxFile = 512 << 20

// Names of the files of a tokenizer in a folder.
const (
	nameJSON          = "tokenizer.json"
	nameSentencePiece = "tokenizer.model"
	nameConfig        = "tokenizer_config.json"
	nameSpecial       = "special_tokens_map.json"
)

// TemplateName is the file of a folder with the chat template of its tokenizer.
const TemplateName = "chat_template.jinja"

// Load reads a tokenizer: a tokenizer.json, a tokenizer.model of SentencePiece or a file of
// tiktoken, or a folder that has one of these, as Hugging Face's have. In a folder,
// tokenizer_config.json, special_tokens_map.json and chat_template.jinja are read with it. A folder
// without a tokenizer gives an error that is fs.ErrNotExist.
func Load(path string) (*File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w; want a %s, a %s, a file that ends in .tiktoken, or a folder with one of these", durable.Explain(err), nameJSON, nameSentencePiece)
	}
	if !info.IsDir() {
		raw, err := read(path)
		if err != nil {
			return nil, err
		}
		return load(path, raw, nil)
	}
	main, err := find(path)
	if err != nil {
		return nil, err
	}
	raw, err := read(main)
	if err != nil {
		return nil, err
	}
	var beside []Raw
	for _, name := range []string{nameConfig, nameSpecial, TemplateName} {
		r, err := read(filepath.Join(path, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		beside = append(beside, r)
	}
	return load(main, raw, beside)
}

// find returns the file of the tokenizer in a folder.
func find(dir string) (string, error) {
	for _, name := range []string{nameJSON, nameSentencePiece} {
		if path := filepath.Join(dir, name); exists(path) {
			return path, nil
		}
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.tiktoken"))
	if err == nil && len(names) == 1 {
		return names[0], nil
	}
	return "", fmt.Errorf("tokenizer: %s has no %s, no %s and not one file that ends in .tiktoken: %w", dir, nameJSON, nameSentencePiece, fs.ErrNotExist)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func read(path string) (Raw, error) {
	data, err := durable.ReadRegular(path, maxFile)
	if err != nil {
		return Raw{}, fmt.Errorf("tokenizer: %w", durable.Explain(err))
	}
	return Raw{Name: filepath.Base(path), Data: data}, nil
}

// load reads a tokenizer and the files beside it.
func load(path string, main Raw, beside []Raw) (*File, error) {
	f, err := parse(main, beside)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %s: %w", path, err)
	}
	return f, nil
}

// parse is load without the path.
func parse(main Raw, beside []Raw) (*File, error) {
	parsers := map[string]func([]byte) (*builder, error){formatJSON: parseJSON, formatSentencePiece: parseSentencePiece, formatTiktoken: parseTiktoken}
	format := formatOf(main)
	main.Name = nameIn(format, main.Name)
	b, err := parsers[format](main.Data)
	if err != nil {
		return nil, err
	}
	c, configured, err := parseConfig(beside)
	if err != nil {
		return nil, err
	}
	if err := b.addConfigured(c); err != nil {
		return nil, err
	}
	f := &File{raw: append([]Raw{main}, beside...), vocab: b.vocab, format: format, bos: b.bos, eos: b.eos, pad: b.pad}
	f.pipeline, f.decoder = b.build()
	sum := sha256.New()
	sum.Write(main.Data)
	if len(b.configured) > 0 {
		fmt.Fprintf(sum, "%+q", b.configured)
	}
	f.name = fmt.Sprintf("file:%x", sum.Sum(nil)[:16])
	return f, f.configure(beside, c, configured, b.template)
}

// nameIn returns the name under which a folder has a tokenizer, so that Load finds it there.
func nameIn(format, given string) string {
	switch {
	case format == formatJSON:
		return nameJSON
	case format == formatTiktoken && strings.HasSuffix(given, ".tiktoken"):
		return given
	default:
		return nameSentencePiece
	}
}

// Formats of tokenizers.
const (
	formatJSON          = "tokenizer.json"
	formatSentencePiece = "SentencePiece"
	formatTiktoken      = "tiktoken"
)

// formatOf returns the format of a file, which its content shows: tokenizer.model is a name that
// files of tiktoken have, too.
func formatOf(raw Raw) string {
	begin := strings.TrimLeft(string(raw.Data[:min(len(raw.Data), 512)]), " \t\r\n\ufeff")
	switch {
	case strings.HasPrefix(begin, "{"):
		return formatJSON
	case isTiktoken(begin):
		return formatTiktoken
	case strings.HasSuffix(raw.Name, ".json"):
		return formatJSON
	default:
		return formatSentencePiece
	}
}

// parseConfig reads the files of settings beside the tokenizer, if there are any.
func parseConfig(beside []Raw) (c config, configured bool, err error) {
	for _, raw := range beside {
		if raw.Name == TemplateName {
			continue
		}
		var other config
		if err := json.Unmarshal(raw.Data, &other); err != nil {
			return c, false, fmt.Errorf("%s: %w", raw.Name, jsonError(raw.Data, err))
		}
		if raw.Name == nameConfig {
			other, c = c, other
		}
		c = c.or(other)
		configured = true
	}
	return c, configured, nil
}

// configure applies the files beside the tokenizer.
func (f *File) configure(beside []Raw, c config, configured, template bool) error {
	for _, raw := range beside {
		if raw.Name == TemplateName {
			f.chatTemplate = string(raw.Data)
		}
	}
	if f.chatTemplate == "" {
		var err error
		if f.chatTemplate, err = c.template(); err != nil {
			return fmt.Errorf("%s: %w", nameConfig, err)
		}
	}
	if err := f.setSpecial(c, configured); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(namesOf(beside), " and "), err)
	}
	f.setPrompt(c, template)
	return nil
}

func namesOf(files []Raw) []string {
	names := make([]string, len(files))
	for i, raw := range files {
		names[i] = raw.Name
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == TemplateName })
}
