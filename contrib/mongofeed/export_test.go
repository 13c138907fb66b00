package mongofeed

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Translator returns what translates documents of limits, without a server.
func Translator(parameters map[string]tiers.Parameter) func(raw bson.Raw) ([]byte, error) {
	l := &Limits{
		fields:  Fields{Service: "service", General: "general_limits", Custom: "custom_limits", Updated: "last_updated"},
		ignored: map[string]bool{"service": true, "last_updated": true}, parameters: parameters,
	}
	return l.translate
}
