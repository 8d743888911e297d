package weights_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/weights"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/safetensors"
)

const (
	configName = "config.json"
	indexName  = "model.safetensors.index.json"
	shardName  = "model-1.safetensors"
)

// hostileFolder changes a folder of weights, which has an index and one shard.
type hostileFolder struct {
	change func(dir string) error
	want   string // in the error, "" for a folder that is as good as before
}

// setting returns a folder whose configuration has another value.
func setting(key string, value any, want string) hostileFolder {
	return hostileFolder{func(dir string) error {
		path := filepath.Join(dir, configName)
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var config map[string]any
		if err := json.Unmarshal(text, &config); err != nil {
			return err
		}
		config[key] = value
		if text, err = json.Marshal(config); err != nil {
			return err
		}
		return os.WriteFile(path, text, 0o600)
	}, want}
}

// content returns a folder in which a file has another content.
func content(name, text, want string) hostileFolder {
	return hostileFolder{func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) }, want}
}

// shard returns a folder whose shard has this header and 64 bytes of data.
func shard(header, want string) hostileFolder {
	return content(shardName, string(binary.LittleEndian.AppendUint64(nil, uint64(len(header))))+header+strings.Repeat("\x00", 64), want)
}

// edited returns a folder in which a file has its content changed.
func edited(name string, edit func(text []byte) []byte, want string) hostileFolder {
	return hostileFolder{func(dir string) error {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, edit(text), 0o600)
	}, want}
}

// hostileFolders returns folders of weights that are not what they should be, by name.
func hostileFolders() map[string]hostileFolder {
	all := map[string]hostileFolder{}
	for _, name := range []string{configName, indexName, shardName} {
		for kind, put := range primustest.HostileFiles() {
			all[name+" is "+kind] = hostileFolder{func(dir string) error {
				path := filepath.Join(dir, name)
				if err := os.Remove(path); err != nil {
					return err
				}
				return put(path)
			}, name}
		}
		all[name+" is missing"] = hostileFolder{func(dir string) error { return os.Remove(filepath.Join(dir, name)) }, name}
		all[name+" is cut"] = edited(name, func(text []byte) []byte { return text[:len(text)/2] }, name)
		all[name+" is noise"] = content(name, strings.Repeat("\xff\x00\x80{", 100), name)
	}
	const deep = 100_000
	maps.Copy(all, map[string]hostileFolder{
		"a deep configuration":               content(configName, strings.Repeat("[", deep), configName),
		"a list for a configuration":         content(configName, "[]", configName),
		"two configurations":                 edited(configName, func(text []byte) []byte { return append(text, text...) }, configName),
		"a configuration with a byte order":  edited(configName, func(text []byte) []byte { return append([]byte("\xef\xbb\xbf"), text...) }, configName),
		"no class":                           setting("architectures", []string{}, ""),
		"a class that nobody knows":          setting("architectures", []string{strings.Repeat("x", 1<<20)}, ""),
		"a number for the class":             setting("architectures", 7, ""),
		"layers below zero":                  setting("num_hidden_layers", -1, "num_hidden_layers"),
		"more layers than memory":            setting("num_hidden_layers", 1<<40, "num_hidden_layers"),
		"layers as text":                     setting("num_hidden_layers", "2", "num_hidden_layers"),
		"half a layer":                       setting("num_hidden_layers", 2.5, "num_hidden_layers"),
		"layers without end":                 setting("num_hidden_layers", json.RawMessage("1e308"), "num_hidden_layers"),
		"no width":                           setting("hidden_size", 0, "hidden_size"),
		"more width than memory":             setting("hidden_size", 1<<40, "hidden_size"),
		"no heads":                           setting("num_attention_heads", 0, "num_attention_heads"),
		"heads that do not divide the width": setting("num_attention_heads", 3, "num_attention_heads"),
		"groups that do not divide heads":    setting("num_key_value_heads", 3, "num_query_groups"),
		"a vocabulary below zero":            setting("vocab_size", -5, "vocab_size"),
		"more vocabulary than memory":        setting("vocab_size", math.MaxInt32, ""),
		"no context":                         setting("max_position_embeddings", -1, "max_position_embeddings"),
		"an epsilon below zero":              setting("rms_norm_eps", -1, "epsilon"),
		"an activation that nobody knows":    setting("hidden_act", "hostile", "hidden_act"),
		"an index that is a list":            content(indexName, "[]", indexName),
		"an index without tensors":           content(indexName, "{}", indexName),
		"a deep index":                       content(indexName, strings.Repeat(`{"weight_map":`, deep), indexName),
		"an index out of the folder":         content(indexName, `{"weight_map":{"a":"../../etc/passwd.safetensors"}}`, "etc/passwd"),
		"an index from the root":             content(indexName, `{"weight_map":{"a":"/dev/zero.safetensors"}}`, "/dev/zero"),
		"an index of a device":               content(indexName, `{"weight_map":{"a":"/dev/zero"}}`, "/dev/zero"),
		"an index with a NUL":                content(indexName, `{"weight_map":{"a":"b\u0000.safetensors"}}`, "b"),
		"an index of an endless name":        content(indexName, `{"weight_map":{"a":"`+strings.Repeat("b", 1<<16)+`.safetensors"}}`, "name"),
		"an index of many files":             content(indexName, manyShards(), "missing-"),
		"an index that leaves tensors out":   content(indexName, `{"weight_map":{"model.norm.weight":"`+shardName+`"}}`, ""),
		"an index of tensors that are not there": edited(indexName, func(text []byte) []byte {
			return []byte(strings.Replace(string(text), `{"weight_map":{`, `{"weight_map":{"hostile":"`+shardName+`",`, 1))
		}, "hostile"),
		"no header":                       content(shardName, "\x00\x00\x00\x00\x00\x00\x00\x00", shardName),
		"a header without end":            content(shardName, "\xff\xff\xff\xff\xff\xff\xff\x7f{}", shardName),
		"a header of the largest number":  content(shardName, "\xff\xff\xff\xff\xff\xff\xff\xff{}", shardName),
		"a header that is a list":         shard(`[]`, shardName),
		"a deep header":                   shard(strings.Repeat(`{"a":`, deep), shardName),
		"a tensor without a shape":        shard(`{"a":{"dtype":"F32","data_offsets":[0,64]}}`, shardName),
		"a dtype that nobody knows":       shard(`{"a":{"dtype":"F33","shape":[16],"data_offsets":[0,64]}}`, shardName),
		"a shape below zero":              shard(`{"a":{"dtype":"F32","shape":[-16],"data_offsets":[0,64]}}`, shardName),
		"a shape that overflows":          shard(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,64]}}`, shardName),
		"a shape of many dimensions":      shard(`{"a":{"dtype":"F32","shape":[`+strings.Repeat("1,", deep)+`16],"data_offsets":[0,64]}}`, shardName),
		"a tensor beyond the end":         shard(`{"a":{"dtype":"F32","shape":[17],"data_offsets":[0,68]}}`, shardName),
		"a tensor that ends first":        shard(`{"a":{"dtype":"F32","shape":[16],"data_offsets":[64,0]}}`, shardName),
		"tensors that overlap":            shard(`{"a":{"dtype":"F32","shape":[16],"data_offsets":[0,64]},"b":{"dtype":"F32","shape":[16],"data_offsets":[0,64]}}`, shardName),
		"tensors with a gap":              shard(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[60,64]}}`, shardName),
		"a tensor twice":                  shard(`{"a":{"dtype":"F32","shape":[8],"data_offsets":[0,32]},"a":{"dtype":"F32","shape":[8],"data_offsets":[32,64]}}`, shardName),
		"a tensor smaller than its shape": shard(`{"a":{"dtype":"F32","shape":[1073741824],"data_offsets":[0,64]}}`, shardName),
		"bytes behind the tensors":        edited(shardName, func(text []byte) []byte { return append(text, 0) }, shardName),
		"weights that are NaN": edited(shardName, func(text []byte) []byte {
			return append(text[:len(text)-4:len(text)-4], 0xff, 0xff, 0xff, 0x7f)
		}, "NaN"),
		"weights that are infinite": edited(shardName, func(text []byte) []byte {
			return append(text[:len(text)-4:len(text)-4], 0, 0, 0x80, 0x7f)
		}, "nf"),
	})
	return all
}

// manyShards returns an index of files that are not there.
func manyShards() string {
	var b strings.Builder
	b.WriteString(`{"weight_map":{"a":"missing-0.safetensors"`)
	for i := range 50_000 {
		fmt.Fprintf(&b, `,"t%d":"missing-%d.safetensors"`, i, i)
	}
	return b.String() + "}}"
}

// Whatever is in a folder of weights, opening and loading it ends soon, costs little, and gives the
// weights or an error that says what is wrong.
func TestHostileFolders(t *testing.T) {
	primustest.Sequential(t, "it measures what the process allocates")
	m := newModel(t, llama(), 1)
	all := hostileFolders()
	primustest.Documented(t, "model folders", len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeJSON(t, filepath.Join(dir, configName), m.Config().HFConfig())
			tensors, index := entries(t, m), map[string]string{}
			for _, e := range tensors {
				index[e.Name()] = shardName
			}
			writeJSON(t, filepath.Join(dir, indexName), map[string]any{"weight_map": index})
			require.NoError(t, safetensors.WriteFile(filepath.Join(dir, shardName), tensors, nil))
			require.NoError(t, all[name].change(dir))
			var got *model.Model
			var err error
			primustest.Cost(t, 16<<20, 4, func() { got, err = loadAny(t, dir) })
			if all[name].want == "" && err == nil {
				assertSame(t, m, got)
				return
			}
			require.Error(t, err)
			assert.ErrorContains(t, err, all[name].want)
			assert.Less(t, len(err.Error()), 4<<10)
			t.Log(err)
		})
	}
}

// loadAny opens a folder and loads its weights into a model that it describes, if that is small.
func loadAny(t *testing.T, dir string) (*model.Model, error) {
	t.Helper()
	f, err := weights.Open(t.Context(), dir, weights.Settings{})
	if err != nil {
		return nil, err
	}
	defer func() { assert.NoError(t, f.Close()) }()
	if f.Config().VocabSize > 1<<20 {
		return nil, fmt.Errorf("vocab_size %d", f.Config().VocabSize)
	}
	backend := cpu.New()
	got, err := model.New(f.Config(), backend)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		assert.NoError(t, got.Close())
		assert.NoError(t, backend.Close())
	})
	return got, f.Load(got)
}
