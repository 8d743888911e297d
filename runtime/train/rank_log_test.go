package train_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/primus-fl/primus/runtime/train"
	"github.com/stretchr/testify/assert"
)

// A command makes the log of a rank before it reads the experiment, and a run makes it again.
func TestOfRank(t *testing.T) {
	t.Parallel()
	for rank, want := range []string{"msg=all\nmsg=odd\n", "msg=\"[rank 1] odd\"\n"} {
		var text bytes.Buffer
		log := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key != slog.MessageKey {
				return slog.Attr{}
			}
			return a
		}}))
		log = train.OfRank(train.OfRank(log, rank), rank)
		log.Info("all")
		log.Warn("odd")
		assert.Equal(t, want, text.String())
	}
}
