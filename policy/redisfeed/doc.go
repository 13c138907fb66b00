// Package redisfeed brings revisions of a policy to instances through a Redis, which they have anyway for their budgets.
//
// A Redis keeps one revision under one key: the newest. [Feed.Publish] replaces it if it is the one that the publisher
// expects, and publishes a hint; no script ever makes its number smaller. Instances subscribe to the hints, read, and read again at an
// interval (package policy). What a Redis loses, because it keeps nothing on disk or was flushed, its followers give back.
package redisfeed
