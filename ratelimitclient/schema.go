package ratelimitclient

import _ "embed"

// JSONSchema is the JSON Schema (draft 2020-12) of extensions.rateLimit, and under #/$defs/Refusal of the
// extensions of the error that a refusal is: for clients in other languages, and for tests. It allows keys
// that it does not name, because servers may add some; docs/reference/responses.md says what never changes.
//
//go:embed ratelimit.schema.json
var JSONSchema string
