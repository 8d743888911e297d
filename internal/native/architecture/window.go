package architecture

import "github.com/primus-fl/primus/runtime/backend"

// WindowsParam is the parameter of the layers that have the window.
const WindowsParam = "window_attn_skip_freq"

// WriteOutWindows replaces a number n in window_attn_skip_freq, which means that every n-th layer
// sees all tokens, by the list of all layers. Without num_layers the number stays.
func WriteOutWindows(args *backend.Args) error {
	v, _ := args.Lookup(WindowsParam)
	every, counted := v.Int64()
	v, _ = args.Lookup("num_layers")
	layers, known := v.Int64()
	if !counted || !known || every < 1 || layers < 1 || layers > maxLayers {
		return nil
	}
	list := make([]int, layers)
	for i := range list {
		if int64(i+1)%every != 0 {
			list[i] = 1
		}
	}
	return args.Set(WindowsParam, list, WindowsParam)
}

// maxLayers is the largest number of layers whose windows are written out.
const maxLayers = 1 << 16
