package mongofeed

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

// Codes of servers without change streams.
const (
	// A server that is part of no replica set has none.
	codeStandalone = 40573
	// FerretDB and older services of others have none.
	codeNotImplemented  = 238
	codeCommandNotFound = 59
	// So say those which do not know the stage.
	codeUnknownStage = 40324
)

// watch wakes at each event of a change stream, and begins without the token of an earlier one: whatever is missed between is
// read in full. Where the server has no streams it returns policy.ErrNoHints.
func watch(ctx context.Context, c *mongo.Collection, pipeline mongo.Pipeline, wake func()) error {
	// The events say that something has changed, and nobody reads what.
	pipeline = append(pipeline, bson.D{{Key: "$project", Value: bson.D{{Key: "_id", Value: 1}}}})
	stream, err := c.Watch(ctx, pipeline)
	if err != nil {
		return unwatched(err)
	}
	defer func() { _ = stream.Close(context.WithoutCancel(ctx)) }()
	wake()
	for stream.Next(ctx) {
		wake()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := stream.Err(); err != nil {
		return unwatched(err)
	}
	return errors.New("mongofeed: the change stream has ended")
}

// unwatched returns policy.ErrNoHints for the error of a server that has no change streams.
func unwatched(err error) error {
	var server mongo.ServerError
	if errors.As(err, &server) {
		for _, code := range [...]int{codeStandalone, codeNotImplemented, codeCommandNotFound, codeUnknownStage} {
			if server.HasErrorCode(code) {
				return policy.ErrNoHints
			}
		}
	}
	return wrap(err)
}
