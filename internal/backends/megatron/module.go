package megatron

import "go.uber.org/fx"

// Module provides the backend and its patches.
var Module = fx.Module(Framework,
	fx.Provide(
		fx.Annotate(Factory, fx.ResultTags(`group:"backends"`)),
		fx.Annotate(Patches, fx.ResultTags(`group:"patches,flatten"`)),
	),
)
