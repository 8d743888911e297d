package policyfile

import _ "embed"

//go:embed schema.json
var schema string

// Schema returns the JSON Schema of policy files.
func Schema() string { return schema }
