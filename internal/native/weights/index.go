package weights

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/durable"
)

// shard is a file of tensors.
type shard struct {
	name    string
	tensors []string // nil for all of the file
}

// shards lists the files of tensors.
func (f *Folder) shards() ([]shard, error) {
	if f.Average {
		if !exists(f.path, averageName) {
			return nil, fmt.Errorf("%s has no %s, which a run with ema_decay saves: use its weights, not their averages", f.path, averageName)
		}
		if exists(f.path, ConfigFile) {
			return nil, fmt.Errorf("%s: %s holds the averages of adapters alone: use the weights, in which adapters are merged", f.path, averageName)
		}
		return []shard{{name: averageName}}, nil
	}
	if exists(f.path, weightsName) {
		return []shard{{name: weightsName}}, nil
	}
	if !exists(f.path, indexName) {
		return nil, fmt.Errorf("%s has neither %s nor %s: want weights in the safetensors format", f.path, weightsName, indexName)
	}
	name := filepath.Join(f.path, indexName)
	text, err := durable.ReadRegular(name, maxJSON)
	if err != nil {
		return nil, durable.Explain(err)
	}
	shards, err := parseIndex(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return shards, nil
}

// maxName is how many bytes the name of a file may have.
const maxName = 255

// parseIndex returns the files that an index lists, sorted by name, with the tensors of each.
func parseIndex(text []byte) ([]shard, error) {
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("given text that is not an index: %w", err)
	}
	if len(index.WeightMap) == 0 {
		return nil, fmt.Errorf("weight_map: given no tensors, want the file of each tensor")
	}
	tensors := map[string][]string{}
	for name, file := range index.WeightMap {
		if !filepath.IsLocal(file) || strings.ContainsAny(file, `/\`) || filepath.Ext(file) != ".safetensors" || len(file) > maxName {
			return nil, fmt.Errorf("weight_map: tensor %.255q: given the file %.255q, want the name of a file *.safetensors in the same folder", name, file)
		}
		tensors[file] = append(tensors[file], name)
	}
	var shards []shard
	for _, file := range slices.Sorted(maps.Keys(tensors)) {
		slices.Sort(tensors[file])
		shards = append(shards, shard{file, tensors[file]})
	}
	return shards, nil
}
