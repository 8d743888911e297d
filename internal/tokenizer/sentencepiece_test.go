package tokenizer_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/tokenizer"
)

// plainLines returns lines of valid text, as spm_encode reads them.
func plainLines(seed uint64, size int) []string {
	var lines []string
	for _, doc := range mixedText(seed, size) {
		if !utf8.Valid(doc) {
			doc = bytes.ToValidUTF8(doc, nil)
		}
		for line := range strings.FieldsFuncSeq(string(doc), func(r rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) }) {
			for _, special := range []string{"<s>", "</s>", "<unk>", "<pad>"} {
				line = strings.ReplaceAll(line, special, "")
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// TestSentencePiece compares models that spm_train makes with spm_encode and spm_decode.
func TestSentencePiece(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("spm_train"); err != nil {
		t.Skip("sentencepiece is not installed: run scripts/install-test-deps.sh")
	}
	tests := map[string][]string{
		"bpe":             {"--model_type=bpe", "--byte_fallback=true", "--normalization_rule_name=identity", "--remove_extra_whitespaces=false"},
		"bpe nmt_nfkc":    {"--model_type=bpe", "--user_defined_symbols=snake_case,▁the▁,[INST]", "--pad_id=3"},
		"unigram":         {"--model_type=unigram", "--user_defined_symbols=snake_case"},
		"unigram nfkc_cf": {"--model_type=unigram", "--byte_fallback=true", "--normalization_rule_name=nfkc_cf", "--add_dummy_prefix=false"},
	}
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			corpus := filepath.Join(dir, "corpus.txt")
			require.NoError(t, os.WriteFile(corpus, []byte(strings.Join(plainLines(4, 60_000), "\n")), 0o644))
			args := append([]string{"--input=" + corpus, "--model_prefix=" + filepath.Join(dir, "tokenizer"), "--vocab_size=1500", "--num_threads=1", "--hard_vocab_limit=false"}, args...)
			out, err := exec.Command("spm_train", args...).CombinedOutput()
			require.NoError(t, err, string(out))
			model := filepath.Join(dir, "tokenizer.model")
			tok, err := tokenizer.Load(model)
			require.NoError(t, err)
			assert.Equal(t, "SentencePiece", tok.Format())
			assert.Equal(t, int32(1), tok.BOS())
			assert.Equal(t, int32(2), tok.EOS())
			assert.Equal(t, []int32{1}, tok.EncodePrompt(nil, nil))

			lines := plainLines(5, 40_000)
			run := func(program string, lines []string, args ...string) []string {
				cmd := exec.Command(program, append(args, "--model="+model)...)
				cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
				out, err := cmd.Output()
				require.NoError(t, err)
				return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
			}
			ids := run("spm_encode", lines, "--output_format=id")
			require.Len(t, ids, len(lines))
			texts := run("spm_decode", ids, "--input_format=id")
			require.Len(t, texts, len(lines))
			for i, line := range lines {
				got := tok.Encode(nil, []byte(line))
				words := make([]string, len(got))
				unknown := false
				for j, id := range got {
					words[j] = strconv.Itoa(int(id))
					unknown = unknown || id == 0
				}
				require.Equal(t, ids[i], strings.Join(words, " "), "%q", line)
				if !unknown { // which spm_decode writes in a way of its own
					require.Equal(t, texts[i], string(tok.Decode(nil, got)))
				}
			}
		})
	}
}
