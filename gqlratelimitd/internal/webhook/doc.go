// Package webhook brings events to HTTP endpoints that tenants name, signed as Standard Webhooks 1.0.0 says
// (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md).
//
// A [Sender] makes one attempt, and trusts neither the URL nor the names in it nor the answer: it reaches public addresses over TLS, unless an
// operator allows more.
package webhook
