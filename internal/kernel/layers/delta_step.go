package layers

import "github.com/primus-fl/primus/internal/race"

// DeltaColumns is the most columns that a block of a state has.
const DeltaColumns = 64

// DeltaPosition is what a step takes of a position, beside its value: the key and the query, which
// have an element for each row of the state, their product Σ k·q, the decay and the strength of the
// update.
type DeltaPosition struct {
	K, Q                 []float32
	Product, Decay, Beta float32
}

// DeltaStep updates a block of a state, of len(p.K) rows of len(v) columns, and reads it. With S
// the state, a the decay and i its rows, for every column j:
//
//	d_j  = Beta·(v_j − a·Σ_i S_ij·K_i)
//	o_j  = a·Σ_i S_ij·Q_i + Product·d_j
//	S_ij = a·S_ij + K_i·d_j
//
// o may be v.
func DeltaStep(state []float32, p *DeltaPosition, v, o []float32) {
	rows, cols := len(p.K), len(v)
	state, o, q := state[:rows*cols], o[:cols], p.Q[:rows]
	race.Write(state)
	race.Read(p.K)
	race.Read(q)
	race.Read(v)
	race.Write(o)
	if rows == 0 {
		clear(o)
		return
	}
	for first := deltaStepVector(state, p, v, o); first < cols; first++ {
		deltaStepColumn(state[first:], p, v[first], &o[first], cols)
	}
}

func deltaStepColumn(state []float32, p *DeltaPosition, v float32, o *float32, pitch int) {
	key, query := float32(0), float32(0)
	for i, k := range p.K {
		s := state[i*pitch]
		key += s * k
		query += s * p.Q[i]
	}
	d := p.Beta * (v - p.Decay*key)
	*o = p.Decay*query + p.Product*d
	for i, k := range p.K {
		state[i*pitch] = p.Decay*state[i*pitch] + k*d
	}
}
