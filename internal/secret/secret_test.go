package secret_test

import (
	"testing"

	"github.com/primus-fl/primus/internal/secret"
	"github.com/stretchr/testify/assert"
)

func TestSecret(t *testing.T) {
	for name, want := range map[string]bool{
		"HF_TOKEN": true, "WANDB_API_KEY": true, "hf_access_token": true, "AWS_SECRET_ACCESS_KEY": true, "DB_PASSWORD": true, "VENDOR_KEY": true, "HF_TOKEN_OLD": true, "train.api_key": true,
		"TOKENIZERS_PARALLELISM": false, "moe_token_dispatcher_type": false, "tokenizer_model": false, "KEYBOARD": false, "monkey": false, "num_nodes_env_key": false, "MONKEY": false, "HF_HOME": false,
	} {
		assert.Equal(t, want, secret.Name(name), name)
	}
	for _, tt := range []struct{ name, value, want string }{
		{"WANDB_API_KEY", "x", "***"}, {"HF_HOME", "x", "x"}, {"HF_TOKEN", "", ""}, {"HF_TOKEN", `""`, `""`}, {"moe_token_dispatcher_type", "alltoall", "alltoall"},
		{"train_tokens", "1000000", "1000000"}, {"train_tokens", "1.5e9", "1.5e9"}, {"API_TOKENS", "abc1", "***"}, {"db.password", "1234", "***"},
	} {
		assert.Equal(t, tt.want, secret.Shown(tt.name, tt.value), "%s=%s", tt.name, tt.value)
	}
}
