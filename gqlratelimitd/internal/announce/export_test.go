package announce

import "github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"

// TypeOf returns the type of the events of an action, empty if it has none.
func TypeOf(action access.Action) string { return types[action] }
