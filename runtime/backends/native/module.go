package native

import "go.uber.org/fx"

// Module provides the backend. Its patches are in package patches.
var Module = fx.Module(Framework, fx.Provide(fx.Annotate(Factory, fx.ResultTags(`group:"backends"`))))
