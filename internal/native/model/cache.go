package model

import (
	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/opmanager"
	attentionops "github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

// KVCache holds the keys and values of the sequences of a Decoder and describes the rows of a step.
type KVCache struct {
	Slots, Capacity int
	Keys, Values    []*tensor.Tensor // of each layer [slots capacity groups d]
	Table           *tensor.Tensor   // i32 [slots 1]: every sequence stays in its slot
	NewEnds         *tensor.Tensor   // i32 [slots+1]: cumulative numbers of new tokens
	LengthEnds      *tensor.Tensor   // i32 [slots+1]: cumulative lengths, with the new tokens
	Firsts          *tensor.Tensor   // i32 [slots+1]: the first row of each slot
	RowEnds         *tensor.Tensor   // i32 [slots+2]: newEnds, and then the end of the unused rows
	Starts          *tensor.Tensor   // i32 [slots+1]: the position of the first new token; 0 for unused rows
}

// cachedAttention is attention over the keys and values in a cache.
type cachedAttention struct {
	cache        *KVCache
	keys, values *tensor.Tensor // [slots capacity groups d]
	k, v         *tensor.Tensor // the same, [slots·capacity groups d]
	copy         *opmanager.Bound[attentionops.CopyToKVCacheArgs]
}

func (b *Builder) cachedAttention() *cachedAttention {
	c := &cachedAttention{
		cache: b.Cache, keys: b.Cache.Keys[b.depth], values: b.Cache.Values[b.depth],
		copy: opmanager.MustBind(b.Fwd, attentionops.CopyToKVCache),
	}
	all := b.Cache.Slots * b.Cache.Capacity
	c.k, c.v = memory.Must(c.keys.Reshape(all, b.Config.Groups(), b.Config.HeadDim())), memory.Must(c.values.Reshape(all, b.Config.Groups(), b.Config.HeadDim()))
	return c
}

// append adds the keys and values of a call to the cache and makes the call use those of the cache.
func (c *cachedAttention) append(r *Run, a *attentionops.FusedAttnFwdArgs) {
	Call(r, c.copy, attentionops.CopyToKVCacheArgs{
		NewK: a.K, NewV: a.V, KCache: c.keys, VCache: c.values, PageTable: c.cache.Table,
		CuNewLens: c.cache.NewEnds, CuCachedLens: c.cache.LengthEnds, QKVFormat: attentionops.THD, IsNonPaged: true,
	})
	a.K, a.V, a.AttnMaskType = c.k, c.v, attentionops.PaddingCausalBottomRightMask
	a.CuSeqlensQ, a.CuSeqlensQPadded = c.cache.NewEnds, c.cache.NewEnds
	a.CuSeqlensKV, a.CuSeqlensKVPadded = c.cache.LengthEnds, c.cache.Firsts
}
