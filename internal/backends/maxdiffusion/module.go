package maxdiffusion

import "go.uber.org/fx"

// Module provides the backend.
var Module = fx.Module(Framework, fx.Provide(fx.Annotate(Factory, fx.ResultTags(`group:"backends"`))))
