package architecture

// NumParameters returns the number of weights.
func (c Config) NumParameters() int { return int(c.parameters()) }

// parameters is NumParameters without an upper limit, and exact up to 2⁵³.
func (c Config) parameters() float64 {
	h, vocab, qkv, up := float64(c.HiddenSize), float64(c.VocabSize), float64(c.QKVRows()), float64(c.UpRows())
	heads := float64(c.NumAttentionHeads) * float64(c.HeadDim())
	norm, norms, headNorms, biases := h, 2.0, 0.0, 0.0
	if c.HasPreNorms() && c.HasPostNorms() {
		norms = 4
	}
	if c.QKNorm {
		headNorms = 2 * float64(c.HeadDim())
		if c.QKNormWhole {
			headNorms = heads + float64(c.Groups()*c.HeadDim())
		}
	}
	if c.HasLayerNorm() {
		norm, headNorms = 2*norm, 2*headNorms
	}
	if c.HasQKVBias() {
		biases = qkv
	}
	if c.HasOutputBias() {
		biases += h
	}
	if c.HasMLPBias() {
		biases += up + h
	}
	mlp := h * (up + float64(c.downCols()))
	if c.Mixture() {
		mlp = (mlp + h) * float64(c.NumExperts)
	}
	n := vocab*h + float64(c.NumLayers)*(norms*norm+headNorms+qkv*h+heads*h+biases+mlp) + norm
	if c.LearnedPositions() {
		n += float64(c.Positions()) * h
	}
	if c.Untie {
		n += vocab * h
	}
	return n
}

// UnusedParameters returns the number of weights that belong to tokens above those of a tokenizer:
// rows of the embedding, which are never an input, and of the output layer, which are never a
// target.
func (c Config) UnusedParameters(tokens int) int {
	rows := max(c.VocabSize-tokens, 0)
	if c.Untie {
		rows *= 2
	}
	return rows * c.HiddenSize
}

// UpRows is the number of rows of the projection into an MLP or an expert.
func (c Config) UpRows() int {
	switch {
	case c.Mixture():
		return 2 * c.ExpertSize()
	case c.Gated():
		return 2 * c.FFNHiddenSize
	default:
		return c.FFNHiddenSize
	}
}

// downCols is the number of columns of the projection out of an MLP or an expert.
func (c Config) downCols() int {
	if c.Mixture() {
		return c.ExpertSize()
	}
	return c.FFNHiddenSize
}

// mlpWeights is the number of weights of the two projections of an MLP or an expert.
func (c Config) mlpWeights() int { return c.HiddenSize * (c.UpRows() + c.downCols()) }

// FLOPsPerToken returns the floating-point operations of a training step for one token of a
// sequence of seq_length:
//
//	6·W + 12·num_layers·num_attention_heads·head_dim·keys
//
// W counts the weights that enter matrix products of the token: all but norms, biases, embeddings
// of the input and experts that the token does not go to. Forward takes two operations a weight,
// backward four. Attention takes 12 for each head element and key; keys is the mean number of them
// that a token sees, which is half of seq_length or, with a window of w tokens, w −
// w²/(2·seq_length).
func (c Config) FLOPsPerToken() float64 {
	h := c.HiddenSize
	heads := c.NumAttentionHeads * c.HeadDim()
	mlp := c.mlpWeights()
	if c.Mixture() {
		mlp = mlp*c.Topk() + c.NumExperts*h
	}
	weights := c.NumLayers*(c.QKVRows()*h+heads*h+mlp) + c.VocabSize*h
	seq := float64(c.SeqLength)
	keys := seq / 2
	if w := float64(c.KeysBefore() + 1); w > 0 && w < seq {
		keys = w - w*w/(2*seq)
	}
	return 6*float64(weights) + 12*float64(c.NumLayers)*float64(heads)*keys
}

// WeightBytes returns the memory of the weights of a model and of their gradients, without what is
// between and after them. Beside adapters, only these have gradients. It is a float64, because the
// result may exceed what any machine can address.
func (c Config) WeightBytes() float64 {
	bytes := 4 * (c.parameters() + c.TrainedParameters())
	if c.Adapts() {
		bytes += 4 * c.TrainedParameters()
	}
	return bytes
}
