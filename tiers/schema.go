package tiers

import _ "embed"

// JSONSchema is the JSON Schema of the policy document (draft 2020-12). Editors complete and check
// documents with it; what only [Parse] can see, such as a tier that no one defined, it leaves to it.
//
//go:embed policy.schema.json
var JSONSchema string
