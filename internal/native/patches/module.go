package patches

import "go.uber.org/fx"

// Module provides the patches of the backend.
var Module = fx.Module("native.patches", fx.Provide(fx.Annotate(All, fx.ResultTags(`group:"patches,flatten"`))))
