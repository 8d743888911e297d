package flagos

import "github.com/primus-fl/primus/opregistry"

func attentionImpls() []opregistry.Impl { return nil }
