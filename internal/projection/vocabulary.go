package projection

import "strings"

// vocabularies are the sizes that published configurations give, by the beginning of the name of a
// tokenizer. The most specific name comes first.
var vocabularies = []struct {
	tokenizer string
	size      int
}{
	{"deepseek-ai/deepseek-v2", 102400},
	{"deepseek-ai/deepseek-v3", 129280},
	{"deepseek-ai/deepseek-coder-v2", 102400},
	{"deepseek-ai/deepseek-r1-distill-qwen-1.5b", 151936},
	{"deepseek-ai/deepseek-r1-distill-qwen", 152064},
	{"gpt2", 50257},
	{"liquidai/lfm2", 65536},
	{"meta-llama/llama-2", 32000},
	{"meta-llama/llama-3", 128256},
	{"meta-llama/llama-4", 202048},
	{"meta-llama/meta-llama-3", 128256},
	{"minimaxai/minimax-m2", 200064},
	{"mistralai/mixtral", 32000},
	{"moonshotai/kimi-k2", 163840},
	{"nousresearch/llama-2", 32000},
	{"nousresearch/meta-llama-3", 128256},
	{"openai/gpt-oss", 201088},
	{"qwen/qwen2.5-0.5b", 151936},
	{"qwen/qwen2.5-1.5b", 151936},
	{"qwen/qwen2.5-3b", 151936},
	{"qwen/qwen2.5", 152064},
	{"qwen/qwen3.5", 248320},
	{"qwen/qwen3", 151936},
	{"thudm/glm-4", 151552},
	{"xai-org/grok", 131072},
}

// publishedVocabulary returns the size of a known vocabulary, 0 for others.
func publishedVocabulary(tokenizer string) int {
	name := strings.ToLower(tokenizer)
	for _, v := range vocabularies {
		if strings.HasPrefix(name, v.tokenizer) {
			return v.size
		}
	}
	return 0
}
