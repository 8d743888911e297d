package plugin

import (
	"context"
	"log/slog"
	"unsafe"

	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/vendors/abi"
	"github.com/primus-fl/primus/vendors/loader"
)

// newHost returns the functions that a plugin may call. Like the plugin, they stay for the life of
// the process.
func newHost(log *slog.Logger, name string) (*abi.Host, error) {
	free, err := loader.Global("free")
	if err != nil {
		return nil, err
	}
	alloc, err := loader.Global("aligned_alloc")
	if err != nil {
		return nil, err
	}
	h := &abi.Host{Free: free}
	h.StructSize = uint32(unsafe.Sizeof(*h))
	h.Log = loader.Callback(func(level uint32, text uintptr) uintptr {
		logText(log, name, level, text)
		return 0
	})
	h.Alloc = loader.Callback(func(bytes uint64) uintptr {
		if bytes > maxWorkspace {
			return 0
		}
		return loader.Call(alloc, 64, uintptr((bytes+63)&^63))
	})
	return h, nil
}

func logText(log *slog.Logger, name string, level uint32, text uintptr) {
	if log == nil {
		return
	}
	line, err := readString(text, maxLogText, "the text of a log line")
	if err != nil {
		line = err.Error()
	}
	levels := []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	log.Log(context.Background(), levels[min(level, abi.LogError)], plaintext.Text(line), "plugin", name)
}
